// The two pictures with sliders, each in an empty box of a page. Plain functions first, so that a test can call
// them. The printed book runs this file once for each page that has a picture.
"use strict";

window.explore = (() => {
  // Largest true positive rate at a false positive rate under (epsilon, delta). Kairouz et al. 2015.
  const largestTpr = (epsilon, delta, fpr) =>
    Math.max(0, Math.min(1, Math.exp(epsilon) * fpr + delta, 1 - Math.exp(-epsilon) * (1 - fpr - delta)));

  // Largest true minus false positive rate.
  const largestAdvantage = (epsilon, delta) => (Math.expm1(epsilon) + 2 * delta) / (Math.exp(epsilon) + 1);

  // Share of noisy counts above a threshold: a true count and Laplace noise of this budget.
  const above = (threshold, count, epsilon) => {
    const tail = Math.exp(-epsilon * Math.abs(threshold - count)) / 2;
    return threshold > count ? tail : 1 - tail;
  };

  const logFactorials = [0];
  const logFactorial = (n) => {
    for (let i = logFactorials.length; i <= n; i++) logFactorials.push(logFactorials[i - 1] + Math.log(i));
    return logFactorials[n];
  };

  // Renyi divergence of one step at a whole order. Mironov, Talwar and Zhang 2019, section 3.3.
  const stepRdp = (q, sigma, order) => {
    if (q === 1) return order / (2 * sigma * sigma);
    const terms = [];
    for (let k = 0; k <= order; k++) {
      const ways = logFactorial(order) - logFactorial(k) - logFactorial(order - k);
      terms.push(ways + k * Math.log(q) + (order - k) * Math.log1p(-q) + (k * (k - 1)) / (2 * sigma * sigma));
    }
    const largest = Math.max(...terms);
    return (largest + Math.log(terms.reduce((sum, term) => sum + Math.exp(term - largest), 0))) / (order - 1);
  };

  const ORDERS = [...Array(62).keys()].map((i) => i + 2).concat([72, 80, 96, 128, 160, 192, 256, 320, 384, 512]);

  const divergences = (q, sigma) => ORDERS.map((order) => stepRdp(q, sigma, order));

  // Conversion of Canonne, Kamath and Steinke 2020, proposition 12; the least over the orders.
  const toEpsilon = (rdp, steps, delta) =>
    Math.max(0, Math.min(...ORDERS.map((order, i) =>
      steps * rdp[i] + Math.log1p(-1 / order) - (Math.log(delta) + Math.log(order)) / (order - 1))));

  const epsilon = (q, sigma, steps, delta) => toEpsilon(divergences(q, sigma), steps, delta);
  return { largestTpr, largestAdvantage, above, epsilon, divergences, toEpsilon };
})();

(() => {
  const { explore } = window;
  const SPACE = { left: 64, right: 392, top: 12, bottom: 258 };
  const raised = (power) => [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
  const shown = (value) => {
    if (value < 1000 && value >= 0.001) return String(Number(value.toPrecision(3)));
    const [digits, power] = value.toExponential(1).split("e").map(Number);
    return digits === 1 ? `10${raised(power)}` : `${digits} × 10${raised(power)}`;
  };

  const element = (parent, name, attributes, text) => {
    const made = document.createElementNS(parent.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };

  const axes = (svg, x, y, labels) => {
    svg.replaceChildren();
    for (const [value, place] of x) {
      element(svg, "line", { x1: place, x2: place, y1: SPACE.top, y2: SPACE.bottom, class: "grid" });
      element(svg, "text", { x: place, y: SPACE.bottom + 16, "text-anchor": "middle" }, value);
    }
    for (const [value, place] of y) {
      element(svg, "line", { x1: SPACE.left, x2: SPACE.right, y1: place, y2: place, class: "grid" });
      element(svg, "text", { x: SPACE.left - 6, y: place + 4, "text-anchor": "end" }, value);
    }
    element(svg, "text", { x: 228, y: 292, "text-anchor": "middle" }, labels[0]);
    element(svg, "text", { x: 14, y: 135, "text-anchor": "middle", transform: "rotate(-90 14 135)" }, labels[1]);
  };

  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const across = (share) => SPACE.left + share * (SPACE.right - SPACE.left);
  const upward = (share) => SPACE.bottom - share * (SPACE.bottom - SPACE.top);

  const make = (parent, name, attributes = {}) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  };

  // Puts sliders, a picture, and a sentence into a box. A slider is [name, sign, min, max, step, start].
  const wire = (id, picture, sliders, draw) => {
    const box = document.getElementById(id);
    if (!box) return;
    box.replaceChildren();
    const fields = {};
    for (const [name, sign, min, max, step, value] of sliders) {
      const label = make(make(box, "p"), "label");
      label.append(`${sign}: `);
      const field = make(label, "input", { type: "range", name, min, max, step, value });
      fields[name] = [field, make(label, "output", { name })];
    }
    const svg = make(box, "div");
    svg.innerHTML = `<svg viewBox="0 0 440 300" role="img" aria-label="${picture}"></svg>`;
    const says = make(box, "p", { role: "status", class: "says" });
    const say = (name, text) => {
      fields[name][1].textContent = text;
      fields[name][0].setAttribute("aria-valuetext", text);
    };
    const at = (name) => Number(fields[name][0].value);
    const update = () => {
      says.textContent = draw(svg.firstChild, at, say);
    };
    box.addEventListener("input", update);
    update();
  };

  const DELTA = ["delta", "δ", -9, -2, 0.5, -5];

  wire("explore-roc", "Region of true and false positive rates that the budget allows, with one attacker", [
    ["epsilon", "ε", -2, 1.2, 0.01, 0], DELTA, ["threshold", "threshold t", -3, 6, 0.1, 1.5],
  ], (svg, at, say) => {
    const [epsilon, delta, threshold] = [10 ** at("epsilon"), 10 ** at("delta"), at("threshold")];
    say("epsilon", shown(epsilon));
    say("delta", shown(delta));
    say("threshold", threshold.toFixed(1));
    const ticks = [0, 0.25, 0.5, 0.75, 1];
    axes(svg, ticks.map((t) => [t, across(t)]), ticks.map((t) => [t, upward(t)]),
      ["false-positive rate", "true-positive rate"]);
    const rates = [...Array(201).keys()].map((i) => (i / 200) ** 3);
    const curve = rates.map((rate) => [across(rate), upward(explore.largestTpr(epsilon, delta, rate))]);
    const below = [...rates].reverse().map((rate) =>
      [across(rate), upward(1 - explore.largestTpr(epsilon, delta, 1 - rate))]);
    element(svg, "path", { d: `${path([...curve, ...below])}Z`, class: "region" });
    element(svg, "path", { d: path(curve), class: "curve" });
    element(svg, "path", { d: path([[across(0), upward(0)], [across(1), upward(1)]]), class: "guess" });
    const [accused, found] = [0, 1].map((count) => explore.above(threshold, count, epsilon));
    element(svg, "circle", { cx: across(accused), cy: upward(found), r: 5, class: "point" });
    const percent = (share) => `${shown(100 * share)}%`;
    return `At 1% false positives, no attacker finds more than ${percent(explore.largestTpr(epsilon, delta, 0.01))} `
      + `of the members, and no advantage is above ${percent(explore.largestAdvantage(epsilon, delta))}. `
      + `The attacker with the threshold ${threshold.toFixed(1)} accuses ${percent(accused)} of the others `
      + `and finds ${percent(found)} of the members.`;
  });

  wire("explore-epsilon", "Epsilon spent after each number of steps", [
    ["sigma", "σ", -0.5, 1.3, 0.01, 0], ["q", "q", -4, 0, 0.01, -1], ["steps", "T", 0, 5, 0.004, 2.176], DELTA,
  ], (svg, at, say) => {
    const [sigma, q, delta] = ["sigma", "q", "delta"].map((name) => 10 ** at(name));
    const steps = Math.round(10 ** at("steps"));
    say("sigma", shown(sigma));
    say("q", shown(q));
    say("steps", steps);
    say("delta", shown(delta));
    const rdp = explore.divergences(q, sigma);
    const powers = [...Array(101).keys()].map((i) => 10 ** (i / 20));
    const spent = powers.map((power) => explore.toEpsilon(rdp, power, delta));
    const [low, high] = [-2, 3];
    const height = (epsilon) => upward((Math.log10(epsilon) - low) / (high - low));
    const inside = (epsilon) => epsilon >= 10 ** low && epsilon <= 10 ** high;
    axes(svg, [0, 1, 2, 3, 4, 5].map((p) => [(10 ** p).toLocaleString("en"), across(p / 5)]),
      [-2, -1, 0, 1, 2, 3].map((p) => [10 ** p, height(10 ** p)]), ["steps", "ε (nats)"]);
    const drawn = powers.map((power, i) => [across(Math.log10(power) / 5), height(spent[i])]).filter((_, i) => inside(spent[i]));
    element(svg, "path", { d: path(drawn), class: "curve" });
    const own = explore.toEpsilon(rdp, steps, delta);
    if (inside(own)) element(svg, "circle", { cx: across(Math.log10(steps) / 5), cy: height(own), r: 5, class: "point" });
    return `After ${steps} steps: ε = ${shown(own)}${inside(own) ? "" : ", outside the picture,"} at δ = ${shown(delta)} (one unit added or removed, Poisson sampling, Rényi accountant).`;
  });
})();
