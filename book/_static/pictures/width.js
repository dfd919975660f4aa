// The interval of an AUC against the number of patients, and its verdict.
"use strict";

{
  // Standard error of an AUC near one half, with one note for each of n members and n controls: the
  // Mann-Whitney variance without ties.
  const errorOf = (patients) => Math.sqrt((2 * patients + 1) / (12 * patients * patients));
  const beyond = (z) => jStat.normal.cdf(-z, 0, 1);
  const reach = (level) => -jStat.normal.inv((1 - level) / 2, 0, 1);

  // The two questions. Schuirmann 1987.
  const ask = (gap, error, margin) => ({
    none: 2 * beyond(Math.abs(gap) / error),
    matters: beyond((margin - Math.abs(gap)) / error),
  });
  const verdictOf = ({ none, matters }) => (none < 0.05 ? "different" : matters < 0.05 ? "equivalent" : "undecided");

  const shown = (probability) => (probability < 0.001 ? "below 0.001" : picture.shown(probability));
  const numbers = d3.range(201).map((i) => 10 ** (1 + i / 50));

  picture("width", {
    describes: "Intervals of an AUC against the number of patients in each group, with the margin and the verdict",
    inputs: {
      auc: { label: "AUC", min: 0.5, max: 0.6, value: 0.51, step: 0.005 },
      patients: { label: "Patients in each group n", min: 10, max: 100000, value: 20, step: 1, log: true },
      margin: { label: "Margin Δ", min: 0.01, max: 0.1, value: 0.05, step: 0.01 },
    },
    draw: ({ auc, patients, margin }) => {
      const gap = auc - 0.5;
      const values = { error: errorOf(patients), ...ask(gap, errorOf(patients), margin) };
      values.low = auc - reach(0.9) * values.error;
      values.high = auc + reach(0.9) * values.error;
      const funnel = (level) => numbers.map((n) => ({
        n, low: auc - reach(level) * errorOf(n), high: auc + reach(level) * errorOf(n),
      }));
      // As n grows, no verdict comes back, so each has one range of numbers.
      const verdicts = d3.groups(numbers, (n) => verdictOf(ask(gap, errorOf(n), margin)));
      const wide = verdicts.filter(([, group]) => group.length > 40);
      const ends = { stroke: "var(--book-accent)", strokeDasharray: "4 3", clip: true };
      return {
        values,
        says: `With ${d3.format(",")(patients)} patients in each group and one note each, the standard error is `
          + `${picture.shown(values.error)}. The p-values are ${shown(values.none)} (no difference) and `
          + `${shown(values.matters)} (a difference of ${margin} or more). Verdict: ${verdictOf(values)}.`,
        plot: {
          x: { label: "Patients in each group", type: "log", domain: [10, 1e5], ticks: 4, tickFormat: "," },
          y: { label: "AUC", domain: [0.2, 0.8], grid: true },
          marks: [
            Plot.areaY(funnel(0.9), { x: "n", y1: "low", y2: "high", fill: "var(--book-accent-soft)", clip: true }),
            Plot.line(funnel(0.95), { x: "n", y: "low", ...ends }),
            Plot.line(funnel(0.95), { x: "n", y: "high", ...ends }),
            Plot.ruleY([0.5], { stroke: "currentColor" }),
            Plot.ruleY([0.5 - margin, 0.5 + margin], { stroke: "currentColor", strokeDasharray: "3 4" }),
            Plot.ruleX([patients], { y1: values.low, y2: values.high, stroke: "var(--book-second)", strokeWidth: 3, clip: true }),
            Plot.dot([[patients, auc]], { r: 6, fill: "var(--book-second)" }),
            Plot.text([[22, auc + 0.085]], { text: ["90%"], textAnchor: "start", dx: 4, ...picture.halo }),
            Plot.text([[40, auc + reach(0.95) * errorOf(40)]], { text: ["95%"], textAnchor: "start", dx: 3, dy: -6, ...picture.halo }),
            Plot.text([[1e5, 0.5 - margin]], { text: ["margin"], textAnchor: "end", dy: 9, ...picture.halo }),
            Plot.ruleX(verdicts.slice(1), { x: ([, group]) => group[0], stroke: "currentColor", strokeOpacity: 0.4 }),
            Plot.text(wide, {
              x: ([, group]) => Math.sqrt(group[0] * group.at(-1)), y: (_, i) => 0.24 + 0.06 * (i % 2), text: "0",
            }),
          ],
        },
      };
    },
  });
}
