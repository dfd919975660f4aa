// The ε of DP-SGD after each number of steps, by the Rényi accountant.
"use strict";

{
  const ORDERS = [...d3.range(2, 64), 72, 80, 96, 128, 160, 192, 256, 320, 384, 512];

  // Rényi divergence of one step at a whole order. Mironov, Talwar and Zhang 2019, section 3.3.
  const stepRdp = (sampleRate, sigma, order) => {
    if (sampleRate === 1) return order / (2 * sigma * sigma);
    const terms = d3.range(order + 1).map((k) => jStat.combinationln(order, k)
      + k * Math.log(sampleRate) + (order - k) * Math.log1p(-sampleRate) + (k * (k - 1)) / (2 * sigma * sigma));
    const largest = Math.max(...terms);
    return (largest + Math.log(d3.sum(terms, (term) => Math.exp(term - largest)))) / (order - 1);
  };

  // Conversion of Canonne, Kamath and Steinke 2020, proposition 12; the smallest over the orders.
  const toEpsilon = (rdp, steps, delta) => Math.max(0, d3.min(ORDERS, (order, i) =>
    steps * rdp[i] + Math.log1p(-1 / order) - (Math.log(delta) + Math.log(order)) / (order - 1)));

  picture("epsilon", {
    describes: "Epsilon against the number of steps, both on logarithmic axes, with one run",
    inputs: {
      sigma: { label: "Noise multiplier σ", min: 0.3, max: 20, value: 1, log: true },
      sampleRate: { label: "Sample rate q", min: 0.0001, max: 1, value: 0.1, log: true },
      steps: { label: "Steps T", min: 1, max: 100000, value: 150, step: 1, log: true },
      delta: { label: "δ", min: 1e-9, max: 0.01, value: 1e-5, log: true },
    },
    draw: ({ sigma, sampleRate, steps, delta }) => {
      const rdp = ORDERS.map((order) => stepRdp(sampleRate, sigma, order));
      const curve = d3.range(101).map((i) => 10 ** (i / 20)).map((after) => [after, toEpsilon(rdp, after, delta)]);
      const values = { epsilon: toEpsilon(rdp, steps, delta) };
      const inside = values.epsilon >= 0.01 && values.epsilon <= 1000;
      return {
        values,
        says: `After ${steps} steps: ε = ${picture.shown(values.epsilon)}${inside ? "" : ", outside the picture,"} at `
          + `δ = ${picture.shown(delta)} (one unit added or removed, Poisson sampling, Rényi accountant).`,
        plot: {
          x: { label: "Steps", type: "log", domain: [1, 1e5], ticks: 5, tickFormat: "," },
          y: { label: "ε (nats)", type: "log", domain: [0.01, 1000], grid: true, ticks: 5, tickFormat: "," },
          marks: [
            Plot.line(curve, { stroke: "var(--book-accent)", strokeWidth: 2, clip: true }),
            inside ? Plot.dot([[steps, values.epsilon]], { r: 6, fill: "var(--book-second)" }) : null,
          ],
        },
      };
    },
  });
}
