// How many hits a true share gives by chance, and which shares make the hits that were counted a surprise.
"use strict";

{
  // The shares of Clopper and Pearson 1934: neither "as few" nor "as many" is rarer than 2.5%.
  const interval = (hits, patients) => [
    hits === 0 ? 0 : jStat.beta.inv(0.025, hits, patients - hits + 1),
    hits === patients ? 1 : jStat.beta.inv(0.975, hits + 1, patients - hits),
  ];

  picture("hits", {
    describes: "Probability of each number of hits at one true share; the numbers as extreme as the one that was counted are filled",
    inputs: {
      patients: { label: "Patients n", min: 20, max: 200, value: 100, step: 1, log: true },
      hits: { label: "Hits k", min: 0, max: 20, value: 0, step: 1 },
      share: { label: "True share", min: 0.001, max: 0.2, value: 0.01, log: true },
    },
    draw: ({ patients, hits, share }) => {
      const bars = d3.range(patients + 1).map((number) => ({ number, probability: jStat.binomial.pdf(number, patients, share) }));
      const fewer = d3.sum(bars.slice(0, hits + 1), ({ probability }) => probability);
      const more = d3.sum(bars.slice(hits), ({ probability }) => probability);
      const [low, high] = interval(hits, patients);
      const few = hits === 0 || fewer < more;
      const tail = few ? fewer : more;
      const surprise = tail < 0.025;
      const extreme = ({ number }) => (few ? number <= hits : number >= hits);
      const last = Math.max(20, Math.ceil(patients * share + 4 * Math.sqrt(patients * share)));
      return {
        values: { fewer, more, low, high },
        says: `If the true share were ${picture.percent(share)}, ${picture.percent(tail)} of all groups of ${patients} patients `
          + `would have ${hits === 0 ? "no hits" : `${picture.count(hits, "hit", "hits")} or ${few ? "fewer" : "more"}`}: ${surprise ? "a surprise" : "no surprise"}. `
          + `The 95% interval is ${picture.percent(low)} to ${picture.percent(high)}.`,
        plot: {
          x: { label: "Hits (patients)", domain: [-0.5, last + 0.5], ticks: 6 },
          y: { label: "Probability (%)", percent: true, grid: true, domain: [0, 120 * d3.max(bars, ({ probability }) => probability)] },
          marks: [
            Plot.rectY(bars.slice(0, last + 1), {
              x1: ({ number }) => number - 0.4, x2: ({ number }) => number + 0.4, y: "probability",
              stroke: "var(--book-accent)", fill: (bar) => (extreme(bar) ? "var(--book-second)" : "var(--book-accent-soft)"),
            }),
            Plot.ruleX([hits], { stroke: "var(--book-second)", strokeDasharray: "5 4" }),
            Plot.text([hits], { x: hits, frameAnchor: "top", text: ["counted"], textAnchor: hits > last / 2 ? "end" : "start", dx: hits > last / 2 ? -6 : 6, dy: 4 }),
          ],
        },
      };
    },
  });
}
