// What each order α says about one run: its divergence, what the conversion adds, and the smallest sum.
"use strict";

{
  const DELTA = 1e-5;

  picture("orders", {
    describes: "Epsilon against the order alpha, both on logarithmic axes: a rising divergence, a falling conversion, and their sum with its smallest value",
    inputs: {
      sigma: { label: "Noise multiplier σ", min: 0.5, max: 10, value: 2, log: true },
      sampleRate: { label: "Sample rate q", min: 0.001, max: 1, value: 0.1, log: true },
      steps: { label: "Steps T", min: 1, max: 10000, value: 150, step: 1, log: true },
      largest: { label: "Largest order of the list", min: 2, max: 512, value: 64, step: 1, log: true },
    },
    draw: ({ sigma, sampleRate, steps, largest }) => {
      const curve = privacy.ORDERS.map((order) => {
        const divergence = steps * privacy.stepRdp(sampleRate, sigma, order);
        const cost = privacy.conversionCost(order, DELTA);
        return { order, divergence, cost, epsilon: divergence + cost, classic: divergence - Math.log(DELTA) / (order - 1) };
      });
      const list = curve.filter(({ order }) => order <= largest);
      const best = d3.least(list, ({ epsilon }) => epsilon);
      const values = { epsilon: best.epsilon, order: best.order, classic: d3.min(list, ({ classic }) => classic) };
      const inside = best.epsilon <= 1000;
      const labeled = curve.find(({ divergence }) => divergence >= 0.2 && divergence <= 700);
      const steep = labeled?.order > 8; // more room left of the line than right of it
      return {
        values,
        says: `Up to order ${largest}, and at δ = ${picture.shown(DELTA)}, order ${best.order} gives the smallest ε, ${picture.shown(best.epsilon)}${inside ? "" : " (outside the picture)"}: `
          + `divergence ${picture.shown(best.divergence)}, conversion ${picture.shown(best.cost)}. `
          + `The classic conversion gives ${picture.shown(values.classic)}.`,
        plot: {
          x: { label: "Order α", type: "log", base: 2, domain: [2, 512], tickFormat: "d" },
          y: { label: "Nats", type: "log", domain: [0.005, 1000], grid: true, ticks: 5, tickFormat: "," },
          marks: [
            Plot.line(curve, { x: "order", y: "divergence", stroke: "currentColor", strokeDasharray: "5 4", clip: true }),
            Plot.line(curve, { x: "order", y: "cost", stroke: "currentColor", strokeDasharray: "1 4", strokeWidth: 2, clip: true }),
            Plot.line(curve, { x: "order", y: "epsilon", stroke: "var(--book-accent)", strokeOpacity: 0.3, strokeWidth: 2, clip: true }),
            Plot.line(list, { x: "order", y: "epsilon", stroke: "var(--book-accent)", strokeWidth: 3, clip: true }),
            Plot.ruleX([largest], { stroke: "var(--book-accent)" }),
            Plot.dot(inside ? [best] : [], { x: "order", y: "epsilon", r: 6, fill: "var(--book-second)" }),
            Plot.text(inside ? [best] : [], { x: "order", y: "epsilon", text: ["ε"], dy: -16, ...picture.halo }),
            Plot.text(labeled ? [labeled] : [], {
              x: "order", y: "divergence", text: ["divergence"], textAnchor: steep ? "end" : "start",
              dx: steep ? -8 : 8, dy: steep ? 0 : 12, ...picture.halo,
            }),
            Plot.text([[512, privacy.conversionCost(512, DELTA)]], { text: ["conversion"], textAnchor: "end", dy: -28, ...picture.halo }),
            Plot.text([[largest, 600]], { text: ["end of the list"], textAnchor: largest > 64 ? "end" : "start", dx: largest > 64 ? -8 : 8, ...picture.halo }),
          ],
        },
      };
    },
  });
}
