// Every attack that (ε, δ) allows, and one attacker: a threshold on a count with Laplace noise.
"use strict";

{
  // Largest difference between the two rates.
  const largestAdvantage = (epsilon, delta) => (Math.expm1(epsilon) + 2 * delta) / (Math.exp(epsilon) + 1);

  // Share of noisy counts above a threshold, for a true count and Laplace noise of scale 1/ε.
  const above = (threshold, count, epsilon) => {
    const tail = Math.exp(-epsilon * Math.abs(threshold - count)) / 2;
    return threshold > count ? tail : 1 - tail;
  };

  const rates = d3.range(201).map((i) => (i / 200) ** 3);

  picture("roc", {
    describes: "True-positive rate against false-positive rate: the region that the budget allows, and one attacker in it",
    inputs: {
      epsilon: { label: "ε", min: 0.01, max: 16, value: 1, log: true },
      delta: { label: "δ", min: 1e-9, max: 0.01, value: 1e-5, log: true },
      threshold: { label: "Threshold t", min: -3, max: 6, value: 1.5, step: 0.1 },
    },
    draw: ({ epsilon, delta, threshold }) => {
      const region = rates.map((fpr) => ({
        fpr, most: privacy.largestTpr(epsilon, delta, fpr), least: 1 - privacy.largestTpr(epsilon, delta, 1 - fpr),
      }));
      const values = {
        fpr: above(threshold, 0, epsilon),
        tpr: above(threshold, 1, epsilon),
        ceiling: privacy.largestTpr(epsilon, delta, 0.01),
        advantage: largestAdvantage(epsilon, delta),
      };
      return {
        values,
        says: `At 1% false positives, no attacker finds more than ${picture.percent(values.ceiling)} of the members, `
          + `and no advantage is above ${picture.percent(values.advantage)}. This attacker accuses `
          + `${picture.percent(values.fpr)} of the others and finds ${picture.percent(values.tpr)} of the members.`,
        plot: {
          x: { label: "False-positive rate", domain: [0, 1] },
          y: { label: "True-positive rate", domain: [0, 1], grid: true },
          marks: [
            Plot.areaY(region, { x: "fpr", y1: "least", y2: "most", fill: "var(--book-accent-soft)" }),
            Plot.lineY(region, { x: "fpr", y: "most", stroke: "var(--book-accent)", strokeWidth: 2 }),
            Plot.line([[0, 0], [1, 1]], { stroke: "currentColor", strokeDasharray: "3 4" }),
            Plot.dot([values], { x: "fpr", y: "tpr", r: 6, fill: "var(--book-second)" }),
          ],
        },
      };
    },
  });
}
