// One step of a sampler over ten digits: what temperature, top k, and top p leave of the model's probabilities.
"use strict";

{
  const RIGHT = 7;
  const logits = [0.2, 2.6, -0.6, 1.9, 0.6, -1.0, 1.5, 1.0, -0.2, 0.4];
  const normalized = (weights) => weights.map((weight) => weight / d3.sum(weights));

  // Temperature, then top k, then top p of what is left. Holtzman et al. 2020, section 3.1.
  const sampler = (temperature, topK, topP) => {
    const weights = logits.map((logit) => Math.exp(logit / temperature));
    const best = d3.range(10).sort((one, other) => logits[other] - logits[one]).slice(0, topK);
    const total = d3.sum(best, (digit) => weights[digit]);
    let before = 0;
    const kept = best.filter((digit) => {
      const enters = before < topP;
      before += weights[digit] / total;
      return enters;
    });
    return normalized(weights.map((weight, digit) => (kept.includes(digit) ? weight : 0)));
  };
  const own = sampler(1, 10, 1);

  picture("sampler", {
    describes: "Probability of each of ten digits under the sampler, as bars, and under the model alone, as lines; one digit is right",
    inputs: {
      temperature: { label: "Temperature", min: 0.1, max: 10, value: 0.8, log: true },
      topK: { label: "Top k", min: 1, max: 10, value: 6, step: 1 },
      topP: { label: "Top p", min: 0.05, max: 1, value: 1, step: 0.05 },
    },
    draw: ({ temperature, topK, topP }) => {
      const drawn = sampler(temperature, topK, topP);
      const values = { right: drawn[RIGHT], kept: d3.sum(drawn, (probability) => probability > 0) };
      const digits = d3.range(10);
      return {
        values,
        says: `This sampler can draw ${values.kept} of 10 digits. It ${values.right
          ? `draws the right one with probability ${picture.percent(values.right)}` : "never draws the right one"}; `
          + `the model alone gives it ${picture.percent(own[RIGHT])}.`,
        plot: {
          x: { label: "Next digit", type: "band", domain: digits, padding: 0.25 },
          y: { label: "Probability (%)", percent: true, domain: [0, 100], grid: true, ticks: 5 },
          marks: [
            Plot.barY(digits, { x: digits, y: drawn, fill: (digit) => (digit === RIGHT ? "var(--book-second)" : "var(--book-accent)"), fillOpacity: 0.6 }),
            Plot.tickY(digits, { x: digits, y: own, stroke: "currentColor", strokeWidth: 2 }),
            Plot.text([RIGHT], { x: [RIGHT], y: [Math.max(drawn[RIGHT], own[RIGHT])], text: ["right"], dy: -13 }),
            Plot.text([2], { x: [2], y: [own[1]], text: ["model alone"], textAnchor: "start", dx: -6, ...picture.halo }),
          ],
        },
      };
    },
  });
}
