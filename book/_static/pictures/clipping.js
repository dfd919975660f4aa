// One step in the plane: eight gradients, shortened to length C, and how far the noise moves their mean.
"use strict";

{
  // Equally frequent: six pull to the right, two far upward.
  const gradients = [[1.3, 0.3], [1.1, -0.3], [0.9, 0.7], [1.5, 0.0], [0.5, 0.2], [0.8, -0.5], [-1.9, 2.3], [-1.2, 2.7]];
  // Abadi et al. 2016, algorithm 1.
  const clip = (gradient, bound) => gradient.map((part) => part * Math.min(1, bound / Math.hypot(...gradient)));
  const mean = (vectors) => [0, 1].map((axis) => d3.mean(vectors, (vector) => vector[axis]));
  const turn = d3.range(101).map((i) => [Math.cos((i * Math.PI) / 50), Math.sin((i * Math.PI) / 50)]);
  const circle = (radius, [x, y]) => turn.map(([cos, sin]) => [x + radius * cos, y + radius * sin]);
  const raw = mean(gradients);
  // In the plane, 95% of Gaussian noise is within this many standard deviations of its center.
  const disc = Math.sqrt(jStat.chisquare.inv(0.95, 2));
  const arrows = (tips, options) => Plot.arrow(tips, { x1: 0, y1: 0, x2: "0", y2: "1", headLength: 6, ...options });

  picture("clipping", {
    describes: "Eight gradients as arrows, a circle of radius C that shortens them, their mean before and after, and a disc of noise",
    inputs: {
      bound: { label: "Clipping norm C", min: 0.1, max: 4, value: 1, log: true },
      sigma: { label: "Noise multiplier σ", min: 0.2, max: 10, value: 2, log: true },
      patients: { label: "Patients in a step qN", min: 8, max: 800, value: 16, step: 1, log: true },
    },
    draw: ({ bound, sigma, patients }) => {
      const clipped = gradients.map((gradient) => clip(gradient, bound));
      const center = mean(clipped);
      const values = {
        clipped: d3.sum(gradients, (gradient) => Math.hypot(...gradient) > bound),
        bias: Math.hypot(center[0] - raw[0], center[1] - raw[1]),
        signal: Math.hypot(...center),
        noise: (sigma * bound) / patients,
      };
      return {
        values,
        shape: 0.7,
        says: `${values.clipped} of 8 gradients ${values.clipped === 1 ? "is" : "are"} clipped. This moves their mean by ${picture.shown(values.bias)} (the bias) and leaves it `
          + `${picture.shown(values.signal)} long. The noise of the mean has a standard deviation of ${picture.shown(values.noise)} in each `
          + `coordinate; it leaves 95% of the means in the disc.`,
        plot: {
          x: { label: "First coordinate", domain: [-2.8, 3.2], ticks: 6 },
          y: { label: "Second coordinate", domain: [-1.2, 3], ticks: 4 },
          marks: [
            Plot.line(circle(disc * values.noise, center), { fill: "var(--book-second)", fillOpacity: 0.25, stroke: "var(--book-second)", clip: true }),
            Plot.line(circle(bound, [0, 0]), { stroke: "var(--book-accent)", strokeDasharray: "1 4", strokeWidth: 2, clip: true }),
            arrows(gradients, { stroke: "currentColor", strokeOpacity: 0.4, strokeDasharray: "5 4" }),
            arrows(clipped, { stroke: "var(--book-accent)", strokeWidth: 2 }),
            arrows([raw], { stroke: "currentColor", strokeWidth: 3 }),
            arrows([center], { stroke: "var(--book-second)", strokeWidth: 4 }),
            Plot.text([[-bound, 0]], { text: ["C"], textAnchor: "end", dx: -5, clip: true, ...picture.halo }),
            Plot.text([raw], { text: ["mean"], textAnchor: "end", dx: -6, dy: -8, ...picture.halo }),
            Plot.text([center], { text: ["clipped mean"], textAnchor: "start", dx: 6, dy: -8, ...picture.halo }),
          ],
        },
      };
    },
  });
}
