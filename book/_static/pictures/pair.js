// What each pair (ε, δ) of one Gaussian mechanism lets an attack find, and the smallest of these limits.
"use strict";

{
  const FPR = 0.01;
  const DELTA = 1e-5;
  const below = (z) => jStat.normal.cdf(z, 0, 1);

  // δ of a mechanism with N(0, 1) against N(μ, 1) at each ε. Balle and Wang 2018, theorem 8.
  const deltaOf = (mu, epsilon) =>
    Math.max(0, below(mu / 2 - epsilon / mu) - Math.exp(epsilon) * below(-mu / 2 - epsilon / mu));

  const muOf = (epsilon) => {
    let [low, high] = [0.01, 10];
    for (let i = 0; i < 60; i += 1) {
      const middle = (low + high) / 2;
      if (deltaOf(middle, epsilon) < DELTA) low = middle; else high = middle;
    }
    return low;
  };

  // Members of 1,000 that (ε, δ) allows.
  const allowed = (epsilon, delta) => 1000 * privacy.largestTpr(epsilon, delta, FPR);

  const epsilons = d3.range(0, 10.01, 0.05);

  picture("pair", {
    describes: "Members that each pair of a curve allows an attack to find, against the pair's epsilon, with the smallest number",
    inputs: {
      budget: { label: "ε at δ = 10⁻⁵", min: 0.5, max: 10, value: 8, log: true },
      epsilon: { label: "ε of the pair", min: 0, max: 10, value: 8, step: 0.1 },
    },
    draw: ({ budget, epsilon }) => {
      const mu = muOf(budget);
      const values = { mu, delta: deltaOf(mu, epsilon) };
      values.pair = allowed(epsilon, values.delta);
      // The smallest limit: the ROC curve itself. Dong, Roth and Su 2022, section 2.2.
      values.curve = 1000 * below(jStat.normal.inv(FPR, 0, 1) + mu);
      return {
        values,
        says: `The pair with ε = ${epsilon} has δ ${values.delta < 1e-9 ? "below 10⁻⁹" : `= ${picture.shown(values.delta)}`}. At 1% `
          + `false alarms, it allows an attack to find ${d3.format(",.0f")(values.pair)} of 1,000 members. The whole curve allows `
          + `${Math.round(values.curve)}.`,
        plot: {
          x: { label: "ε of the pair (nats)", domain: [0, 10] },
          y: { label: "Members found at most, of 1,000", type: "log", domain: [10, 1000], grid: true, ticks: 3, tickFormat: "," },
          marks: [
            Plot.line(epsilons.map((one) => [one, allowed(one, deltaOf(mu, one))]), { stroke: "var(--book-accent)", strokeWidth: 2 }),
            Plot.ruleY([values.curve], { stroke: "currentColor", strokeDasharray: "3 4" }),
            Plot.dot([[epsilon, values.pair]], { r: 6, fill: "var(--book-second)" }),
            Plot.text([[10, values.curve]], { text: ["whole curve"], textAnchor: "end", dy: -9 }),
          ],
        },
      };
    },
  });
}
