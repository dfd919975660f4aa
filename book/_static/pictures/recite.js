// How often a model writes a number digit for digit, by its perplexity on the digits.
"use strict";

{
  // Probability of a text: the product over its tokens, or the perplexity to the power of minus their number.
  const written = (perplexity, digits) => perplexity ** -digits;

  const atLeastOnce = (probability, attempts) => -Math.expm1(attempts * Math.log1p(-probability));

  const GUESS = 10; // a guess chooses one of ten digits
  const perplexities = d3.range(121).map((i) => 12 ** (i / 120));
  const count = d3.format(",");

  picture("recite", {
    describes: "Probability that a model writes a number against its perplexity on the digits, in one attempt and in several",
    inputs: {
      perplexity: { label: "Perplexity k", min: 1, max: 12, value: 5, log: true },
      digits: { label: "Digits n", min: 1, max: 10, value: 7, step: 1 },
      attempts: { label: "Attempts", min: 10, max: 10000, value: 100, step: 1, log: true },
    },
    draw: ({ perplexity, digits, attempts }) => {
      const values = { once: written(perplexity, digits), guess: written(GUESS, digits) };
      values.found = atLeastOnce(values.once, attempts);
      const curve = perplexities.map((k) => {
        const once = written(k, digits);
        return { k, once, found: atLeastOnce(once, attempts) };
      });
      return {
        values,
        says: `At a loss of ${picture.shown(Math.log(perplexity))} nats per digit, the model writes the number in `
          + `${picture.percent(values.once)} of its attempts; a guess is right in ${picture.percent(values.guess)}. `
          + `The probability of at least one success in ${count(attempts)} is ${picture.percent(values.found)}.`,
        plot: {
          marginTop: 44,
          x: { label: "Perplexity k on the digits", type: "log", domain: [1, 12], ticks: 5 },
          y: {
            label: "Probability of the number", type: "log", domain: [1e-11, 1], grid: true, ticks: 6, tickFormat: picture.shown,
          },
          marks: [
            Plot.ruleX([GUESS], { stroke: "currentColor", strokeDasharray: "2 4" }),
            Plot.lineY(curve, { x: "k", y: "once", stroke: "currentColor", strokeDasharray: "6 4", strokeWidth: 2 }),
            Plot.lineY(curve, { x: "k", y: "found", stroke: "var(--book-accent)", strokeWidth: 2 }),
            Plot.dot([[perplexity, values.found]], { r: 6, fill: "var(--book-second)" }),
            Plot.dot([[perplexity, values.once]], {
              r: 5, stroke: "var(--book-second)", strokeWidth: 2, fill: "var(--pst-color-background)",
            }),
            Plot.text([[1, 1]], { text: [`in ${count(attempts)} attempts`], textAnchor: "start", dx: 4, dy: -12 }),
            Plot.text([[6, written(6, digits)]], { text: ["in one attempt"], textAnchor: "end", dx: -12, dy: 10 }),
            Plot.text([[GUESS, 1]], { text: ["guess"], dy: -12 }),
          ],
        },
      };
    },
  });
}
