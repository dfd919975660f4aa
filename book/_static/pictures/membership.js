// Two densities of a score, and one threshold on it.
"use strict";

{
  const xs = d3.range(-4, 8.01, 0.05);

  picture("membership", {
    describes: "Densities of a score among controls and among members, with a threshold; right of it, someone is accused",
    inputs: {
      distance: { label: "Distance of the means", min: 0, max: 4, value: 0.5, step: 0.1 },
      threshold: { label: "Threshold", min: -3, max: 7, value: 1.5, step: 0.1 },
    },
    draw: ({ distance, threshold }) => {
      const above = (mean) => jStat.normal.cdf(mean - threshold, 0, 1);
      const values = {
        fpr: above(0),
        tpr: above(distance),
        auc: jStat.normal.cdf(distance / Math.SQRT2, 0, 1),
        tprAtOnePercent: jStat.normal.cdf(distance + jStat.normal.inv(0.01, 0, 1), 0, 1),
      };
      const curve = (mean) => xs.map((x) => [x, jStat.normal.pdf(x, mean, 1)]);
      const accused = (mean) => [[threshold, jStat.normal.pdf(threshold, mean, 1)], ...curve(mean).filter(([x]) => x > threshold)];
      return {
        values,
        says: `This threshold accuses ${picture.percent(values.fpr)} of the controls and finds `
          + `${picture.percent(values.tpr)} of the members. Over all thresholds, the AUC is ${picture.shown(values.auc)}; `
          + `at 1% false positives, ${picture.percent(values.tprAtOnePercent)} of the members are found.`,
        plot: {
          x: { label: "Score (standard deviations)", domain: [-4, 8] },
          y: { label: "Density", domain: [0, 0.45], grid: true },
          marks: [
            Plot.areaY(accused(0), { x: "0", y: "1", fill: "currentColor", fillOpacity: 0.15 }),
            Plot.areaY(accused(distance), { x: "0", y: "1", fill: "var(--book-second)", fillOpacity: 0.25 }),
            Plot.line(curve(0), { stroke: "currentColor", strokeDasharray: "5 4", strokeWidth: 2 }),
            Plot.line(curve(distance), { stroke: "var(--book-second)", strokeWidth: 2 }),
            Plot.ruleX([threshold], { stroke: "var(--book-accent)", strokeWidth: 2 }),
            Plot.text([[0, 0.45]], { text: ["controls"], textAnchor: "end", dx: -6, dy: -9 }),
            Plot.text([[distance, 0.45]], { text: ["members"], textAnchor: "start", dx: 6, dy: -9 }),
          ],
        },
      };
    },
  });
}
