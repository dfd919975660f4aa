// Pictures that a reader changes: number fields and sliders above, a sentence below. Observable Plot draws them.
// A file next to this one calls `picture` once; the page has a box with its name. The printed book loads this
// file once for each page that has a picture.
"use strict";

{
  const raised = (power) => [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");

  // A number as a sentence shows it: three digits, and powers of ten where there are many zeros.
  const shown = (value, digits = 3) => {
    if (value === 0 || (Math.abs(value) < 1e5 && Math.abs(value) >= 0.001)) {
      return value.toLocaleString("en", { maximumSignificantDigits: digits });
    }
    const [factor, power] = value.toExponential(1).split("e").map(Number);
    return factor === 1 ? `10${raised(power)}` : `${factor} × 10${raised(power)}`;
  };
  // A label that stays readable on a line.
  const halo = { fill: "currentColor", stroke: "var(--pst-color-background)", strokeWidth: 5 };
  // Close to one, two digits more, so that 99.98% is not shown as 100%.
  const percent = (share) => `${shown(100 * share, share > 0.999 ? 5 : 3)}%`;
  const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

  const make = (parent, name, properties = {}) => {
    const made = Object.assign(document.createElement(name), properties);
    parent.append(made);
    return made;
  };

  // One line: a label, a slider, and a number field, which both change the same value.
  const addField = (form, id, { label, min, max, value, step = "any", log = false }) => {
    const [toSlider, fromSlider] = log ? [Math.log10, (place) => 10 ** place] : [Number, Number];
    const whole = step !== "any" && Number.isInteger(Number(step));
    const rounded = (number) => (whole ? Math.round(number) : Number(number.toPrecision(3)));
    make(form, "label", { htmlFor: id, textContent: label });
    const slider = make(form, "input", {
      type: "range", min: toSlider(min), max: toSlider(max), step: "any", value: toSlider(value), ariaLabel: `Slider: ${label}`,
    });
    slider.step = log || step === "any" ? (toSlider(max) - toSlider(min)) / 200 : step;
    slider.value = toSlider(value);
    const field = make(form, "input", { type: "number", id, min, max, step, value });
    const tell = () => { slider.ariaValueText = field.value; };
    slider.addEventListener("input", () => {
      const before = Number(field.value), place = Number(slider.value);
      let number = rounded(fromSlider(place));
      // On a logarithmic slider, one key must change a small count, too.
      if (whole && number === before) number += Math.sign(place - toSlider(before));
      field.value = Math.min(max, Math.max(min, number));
      if (whole) slider.value = toSlider(Number(field.value));
      tell();
    });
    field.addEventListener("input", () => {
      if (field.validity.valid && field.value !== "") slider.value = toSlider(Number(field.value));
      tell();
    });
    tell();
    return field;
  };

  // describes: what a screen reader says of the drawing. inputs: for each name a label, min, max, value, and
  // perhaps a step (a whole one for counts) or log: true. draw: from the values of the inputs to
  // { plot: options of Plot.plot, values: numbers by name, says: a sentence }, and perhaps shape: the height
  // over the width of the area between the axes, for a unit that is equally long on both.
  window.picture = (name, { describes, inputs, draw }) => {
    const box = document.querySelector(`[data-picture="${name}"]:not([data-drawn])`);
    if (!box) return;
    box.dataset.drawn = "";
    box.replaceChildren();
    const form = make(box, "form");
    form.addEventListener("submit", (event) => event.preventDefault());
    const fields = {};
    for (const [key, input] of Object.entries(inputs)) fields[key] = addField(form, `${name}-${key}`, input);
    const drawing = make(box, "div", { className: "drawing" });
    const says = make(box, "p", { className: "says" });
    says.setAttribute("role", "status");

    const update = () => {
      const given = {};
      for (const [key, field] of Object.entries(fields)) {
        const fits = field.value !== "" && field.validity.valid;
        field.setAttribute("aria-invalid", String(!fits));
        if (!fits) {
          const { label, min, max, step } = inputs[key];
          const kind = step === 1 ? "a whole number" : step ? `a multiple of ${step}` : "a number";
          says.textContent = `${label} must be ${kind} from ${shown(min)} to ${shown(max)}.`;
          return;
        }
        given[key] = Number(field.value);
      }
      const { plot, values, says: sentence, shape } = draw(given);
      box.values = values;
      says.textContent = sentence;
      const width = Math.min(560, box.clientWidth - 32);
      if (width < 160) return; // drawn as soon as it has room
      const [marginTop, marginRight, marginBottom, marginLeft] = [30, 30, 46, 58];
      const square = (width - marginLeft - marginRight) * shape + marginTop + marginBottom;
      const svg = Plot.plot({
        width, height: Math.round(shape ? square : Math.max(220, 0.62 * width)),
        marginTop, marginRight, marginBottom, marginLeft,
        style: { background: "none", overflow: "visible", fontFamily: "inherit", fontSize: "13px" }, ...plot,
      });
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", describes);
      drawing.replaceChildren(svg);
    };
    form.addEventListener("input", update);
    new ResizeObserver(update).observe(box);
    update();
  };

  Object.assign(window.picture, { shown, percent, count, halo });
}
