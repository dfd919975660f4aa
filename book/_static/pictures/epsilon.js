// The ε of DP-SGD after each number of steps, by the Rényi accountant.
"use strict";

{
  // The smallest over the orders; a divergence R bounds the total variation by sqrt(1 - exp(-R)), too.
  const toEpsilon = (rdp, steps, delta) => Math.max(0, d3.min(privacy.ORDERS, (order, i) =>
    Math.expm1(-steps * rdp[i]) > -(delta ** 2) ? 0 : steps * rdp[i] + privacy.conversionCost(order, delta)));

  picture("epsilon", {
    describes: "Epsilon against the number of steps, both on logarithmic axes, with one run",
    inputs: {
      sigma: { label: "Noise multiplier σ", min: 0.3, max: 20, value: 1, log: true },
      sampleRate: { label: "Sample rate q", min: 0.0001, max: 1, value: 0.1, log: true },
      steps: { label: "Steps T", min: 1, max: 100000, value: 150, step: 1, log: true },
      delta: { label: "δ", min: 1e-9, max: 0.01, value: 1e-5, log: true },
    },
    draw: ({ sigma, sampleRate, steps, delta }) => {
      const rdp = privacy.ORDERS.map((order) => privacy.stepRdp(sampleRate, sigma, order));
      const curve = d3.range(101).map((i) => 10 ** (i / 20)).map((after) => [after, toEpsilon(rdp, after, delta)]);
      const values = { epsilon: toEpsilon(rdp, steps, delta) };
      const inside = values.epsilon >= 0.01 && values.epsilon <= 1000;
      return {
        values,
        says: `After ${picture.count(steps, "step", "steps")}: ε = ${picture.shown(values.epsilon)}${inside ? "" : ", outside the picture,"} at `
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
