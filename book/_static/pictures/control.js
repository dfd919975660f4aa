// Hits on members and on controls of an imagined model: the count, and the difference that memory makes.
"use strict";

{
  const ATTEMPTS = 1400; // 50 records, 14 prompts, 2 texts for each
  const MODEL_A = { fluency: 1, memory: 0.1 };

  // Share of the attempts that hit a control: by chance, the text has the diagnosis, the drug, or both.
  const byChance = (fluency, size) => (fluency * (2 * size - 1)) / size ** 2;

  // Share of the attempts that hit a member: the record is repeated, or the text hits by chance.
  const onMember = (fluency, memory, size) => 1 - (1 - memory) * (1 - byChance(fluency, size));

  picture("control", {
    describes: "Hits on members and on controls against the model's fluency; the area between them is what memory adds",
    inputs: {
      fluency: { label: "Fluency", min: 0, max: 1, value: MODEL_A.fluency, step: 0.01 },
      memory: { label: "Memory", min: 0, max: 0.2, value: MODEL_A.memory, step: 0.01 },
      size: { label: "Diagnoses, and as many drugs", min: 6, max: 50, value: 12, step: 1 },
    },
    draw: ({ fluency, memory, size }) => {
      const [member, control] = [onMember(fluency, memory, size), byChance(fluency, size)];
      const ofA = ATTEMPTS * onMember(MODEL_A.fluency, MODEL_A.memory, size);
      const values = {
        members: ATTEMPTS * member,
        controls: ATTEMPTS * control,
        fall: 1 - (ATTEMPTS * member) / ofA,
        // Half of the middle 95% of the differences: normal approximation of two binomial counts.
        spread: jStat.normal.inv(0.975, 0, 1)
          * Math.sqrt(ATTEMPTS * (member * (1 - member) + control * (1 - control))),
      };
      const lines = d3.range(0, 1.01, 0.1).map((x) => ({
        x, members: ATTEMPTS * onMember(x, memory, size), controls: ATTEMPTS * byChance(x, size),
      }));
      const whole = d3.format(",.0f");
      const change = Math.abs(values.fall) < 1e-9 ? "as many as"
        : `${picture.percent(Math.abs(values.fall))} ${values.fall > 0 ? "fewer" : "more"} than`;
      return {
        values,
        says: `Of 1,400 attempts on members, about ${whole(values.members)} hit, ${change} for model A; of 1,400 on controls, `
          + `about ${whole(values.controls)}. The difference, about ${whole(values.members - values.controls)}, is what memory `
          + `adds; in 95% of such studies, chance moves it by at most ${whole(values.spread)}.`,
        plot: {
          x: { label: "Fluency", domain: [0, 1] },
          y: { label: "Hits in 1,400 attempts", domain: [0, 650], grid: true },
          marks: [
            Plot.areaY(lines, { x: "x", y1: "controls", y2: "members", fill: "var(--book-accent-soft)" }),
            Plot.ruleY([ofA], { stroke: "currentColor", strokeDasharray: "2 4" }),
            Plot.lineY(lines, { x: "x", y: "members", stroke: "var(--book-accent)", strokeWidth: 2 }),
            Plot.lineY(lines, { x: "x", y: "controls", stroke: "currentColor", strokeDasharray: "6 4", strokeWidth: 2 }),
            Plot.dot([[fluency, values.members]], { r: 6, fill: "var(--book-second)" }),
            Plot.dot([[fluency, values.controls]], {
              r: 5, stroke: "var(--book-second)", strokeWidth: 2, fill: "var(--pst-color-background)",
            }),
            Plot.text([[0, ofA]], { text: ["model A"], textAnchor: "start", dx: 6, dy: -9, ...picture.halo }),
            Plot.text(lines.slice(6, 7), { x: "x", y: "members", text: ["members"], textAnchor: "end", dx: -4, dy: -10, ...picture.halo }),
            Plot.text(lines.slice(7, 8), { x: "x", y: "controls", text: ["controls"], textAnchor: "start", dx: 4, dy: 10, ...picture.halo }),
          ],
        },
      };
    },
  });
}
