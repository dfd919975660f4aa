// What one noisy average says about David: its densities with David and with Eve, and the belief in David.
"use strict";

{
  const OTHERS = 90 + 80 + 80; // points of Alice, Bob, and Charlie
  const EVE = (OTHERS + 90) / 4;
  const REACH = 100 / 4; // how far one score can move the average of four

  // Density of a noisy average, with Laplace noise of scale REACH / ε. Dwork, McSherry, Nissim and Smith 2006, section 3.
  const density = (y, average, epsilon) => (epsilon / (2 * REACH)) * Math.exp((-epsilon * Math.abs(y - average)) / REACH);

  // Theorem of Bayes; logOdds are what the answer adds to the logarithm of the odds.
  const belief = (prior, logOdds) => 1 / (1 + (1 / prior - 1) * Math.exp(-logOdds));

  const ys = d3.range(-30, 186);

  picture("release", {
    describes: "Densities of the noisy average with David and with Eve; the first stays in a region around the second",
    inputs: {
      epsilon: { label: "ε", min: 0.1, max: 4, value: 1, log: true },
      prior: { label: "Belief before, π", min: 0.01, max: 0.99, value: 0.5, step: 0.01 },
      score: { label: "David's score (points)", min: 0, max: 100, value: 30, step: 1 },
      y: { label: "Noisy average y (points)", min: -30, max: 185, value: 20, step: 1 },
    },
    draw: ({ epsilon, prior, score, y }) => {
      const david = (OTHERS + score) / 4;
      const peak = density(EVE, EVE, epsilon);
      const top = 1.8 * peak;
      const values = {
        belief: belief(prior, (epsilon * (Math.abs(y - EVE) - Math.abs(y - david))) / REACH),
        least: belief(prior, -epsilon),
        most: belief(prior, epsilon),
      };
      const curves = ys.concat(david, EVE).sort(d3.ascending).map((at) => {
        const eve = density(at, EVE, epsilon);
        const [least, most] = [eve * Math.exp(-epsilon), Math.min(top, eve * Math.exp(epsilon))];
        return { at, eve, david: density(at, david, epsilon), least, most };
      });
      const [left, right] = [Math.min(david, EVE), Math.max(david, EVE)];
      return {
        values,
        says: `The belief in David was ${picture.percent(prior)}. After a noisy average of ${y} points it is `
          + `${picture.percent(values.belief)}; no answer can move it below ${picture.percent(values.least)} or above `
          + `${picture.percent(values.most)}.`,
        plot: {
          x: { label: "Noisy average y (points)", domain: [-30, 185] },
          y: { label: "Density (per point)", domain: [0, top], grid: true },
          marks: [
            Plot.areaY(curves, { x: "at", y1: "least", y2: "most", fill: "var(--book-accent-soft)" }),
            Plot.lineY(curves, { x: "at", y: "eve", stroke: "currentColor", strokeDasharray: "6 4", strokeWidth: 2 }),
            Plot.lineY(curves, { x: "at", y: "david", stroke: "var(--book-accent)", strokeWidth: 2 }),
            Plot.ruleX([y], { stroke: "var(--book-second)" }),
            Plot.dot([[y, density(y, david, epsilon)]], { r: 6, fill: "var(--book-second)" }),
            Plot.dot([[y, density(y, EVE, epsilon)]], {
              r: 5, stroke: "var(--book-second)", strokeWidth: 2, fill: "var(--pst-color-background)",
            }),
            Plot.text([[left, peak]], { text: [left === EVE ? "Eve" : "David"], textAnchor: "end", dx: -8, dy: -6, ...picture.halo }),
            Plot.text([[right, peak]], { text: [left === EVE ? "David" : "Eve"], textAnchor: "start", dx: 8, dy: -6, ...picture.halo }),
          ],
        },
      };
    },
  });
}
