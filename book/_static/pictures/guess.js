// How often printed values hit a given patient by chance, and any of many patients, by the size of the space.
"use strict";

{
  // Bits of the spaces of some synthetic identifiers, as in the chapter's table.
  const SPACES = { SSN: Math.log2(20196), MRN: Math.log2(1e7), "e-mail": Math.log2(7.8e8) };

  // Probability that a given value is among different printed ones.
  const hitsOne = (bits, printed) => printed / 2 ** bits;

  // Probability that at least one of the patients' values is, if these are independent.
  const hitsAny = (bits, printed, patients) => -Math.expm1(patients * Math.log1p(-hitsOne(bits, printed)));

  const count = d3.format(",");

  picture("guess", {
    describes: "Probability of a hit by chance against the bits of the space, for a given patient and for any patient",
    inputs: {
      bits: { label: "Size of the space (bits)", min: 14, max: 36, value: 14.3, step: 0.1 },
      printed: { label: "Values printed", min: 10, max: 10000, value: 100, step: 1, log: true },
      patients: { label: "Patients", min: 10, max: 20000, value: 1000, step: 1, log: true },
    },
    draw: ({ bits, printed, patients }) => {
      const values = { one: hitsOne(bits, printed), any: hitsAny(bits, printed, patients), ...SPACES };
      const curve = d3.range(14, 36.01, 0.1).map((size) => ({
        size, one: hitsOne(size, printed), any: hitsAny(size, printed, patients),
      }));
      const falling = Math.min(30, Math.max(17, Math.log2(printed * patients) + 3)); // where its label has room
      return {
        values,
        says: `A space of ${bits} bits has about ${d3.format(",.2r")(2 ** bits)} values. If ${count(printed)} different `
          + `ones are printed at random, a given patient's is among them with probability ${picture.percent(values.one)}, `
          + `and at least one of ${count(patients)} patients' with probability ${picture.percent(values.any)}.`,
        plot: {
          marginTop: 44,
          x: { label: "Size of the space (bits)", domain: [14, 36] },
          y: {
            label: "Probability of a hit by chance", type: "log", domain: [1e-11, 1], grid: true, ticks: 5, tickFormat: picture.shown,
          },
          marks: [
            Plot.ruleX(Object.values(SPACES), { strokeOpacity: 0.4 }),
            Plot.text(Object.keys(SPACES), { x: Object.values(SPACES), frameAnchor: "top", lineAnchor: "bottom", dy: -8 }),
            Plot.lineY(curve, { x: "size", y: "one", stroke: "currentColor", strokeDasharray: "6 4", strokeWidth: 2 }),
            Plot.lineY(curve, { x: "size", y: "any", stroke: "var(--book-accent)", strokeWidth: 2 }),
            Plot.dot([[bits, values.any]], { r: 6, fill: "var(--book-second)" }),
            Plot.dot([[bits, values.one]], {
              r: 5, stroke: "var(--book-second)", strokeWidth: 2, fill: "var(--pst-color-background)",
            }),
            Plot.text([[falling, hitsAny(falling, printed, patients)]], {
              text: ["any patient"], textAnchor: "start", dx: 8, dy: -4, ...picture.halo,
            }),
            Plot.text([[24, hitsOne(24, printed)]], { text: ["a given patient"], textAnchor: "end", dx: -6, dy: 8, ...picture.halo }),
          ],
        },
      };
    },
  });
}
