// The ε that right guesses at coin tosses certify, against the share of right guesses.
"use strict";

{
  // Largest ε that so many right guesses refute at δ = 0: their probability reaches the allowed error where the
  // probability of one is this beta quantile. Steinke, Nasr and Jagielski 2023 (pure differential privacy).
  const certifies = (guesses, right, error) => {
    const probability = jStat.beta.inv(error, right, guesses - right + 1);
    return Math.max(0, Math.log(probability / (1 - probability)));
  };

  const count = d3.format(",");
  const shares = d3.range(101).map((i) => 0.5 + i / 200);
  // What endless guesses with a share of right ones certify.
  const limit = d3.range(0, 9.01, 0.1).map((epsilon) => [1 / (1 + Math.exp(-epsilon)), epsilon]);

  picture("audit", {
    describes: "Certified epsilon against the share of right guesses, with the promised epsilon and the limit of endless guesses",
    inputs: {
      guesses: { label: "Guesses r", min: 1, max: 3000, value: 100, step: 1, log: true },
      share: { label: "Right guesses (%)", min: 50, max: 100, value: 90, step: 1 },
      confidence: { label: "Confidence (%)", min: 80, max: 99, value: 95, step: 1 },
      promise: { label: "Promised ε", min: 0.5, max: 7, value: 2, log: true },
    },
    draw: ({ guesses, share, confidence, promise }) => {
      const bound = (right) => certifies(guesses, right, 1 - confidence / 100);
      const values = { right: Math.round(guesses * share / 100) };
      values.certified = bound(values.right);
      values.perfect = bound(guesses);
      const whole = [...new Set(shares.map((one) => Math.round(one * guesses)))];
      const curve = whole.map((right) => [right / guesses, bound(right)]);
      return {
        values,
        says: `Right guesses: ${count(values.right)} of ${count(guesses)}. With ${confidence}% confidence, ε is at least `
          + `${picture.shown(values.certified)} (δ = 0), which ${values.certified > promise ? "refutes" : "does not refute"} `
          + `the promise. If all were right, ε would be at least ${picture.shown(values.perfect)}.`,
        plot: {
          marginRight: 72,
          x: { label: "Right guesses (%)", domain: [50, 100], transform: (one) => 100 * one },
          y: { label: "ε (nats)", domain: [0, 9], grid: true },
          marks: [
            Plot.rectY([[0.5, 1]], { x1: "0", x2: "1", y1: promise, y2: 9, fill: "var(--book-accent-soft)" }),
            Plot.ruleY([promise], { stroke: "currentColor" }),
            Plot.line(limit, { stroke: "currentColor", strokeDasharray: "3 4" }),
            Plot.line(curve, { stroke: "var(--book-accent)", strokeWidth: 2 }),
            Plot.dot([[values.right / guesses, values.certified]], { r: 6, fill: "var(--book-second)" }),
            Plot.text([[0.51, promise]], { text: ["promise"], textAnchor: "start", dy: -9 }),
            Plot.text([[1, 8.6]], { text: ["endless guesses"], textAnchor: "end", dx: -8 }),
            Plot.text([[1, values.perfect]], { text: [`r = ${count(guesses)}`], textAnchor: "start", dx: 9 }),
          ],
        },
      };
    },
  });
}
