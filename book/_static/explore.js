// The two pictures of "Move the numbers". Plain functions first, so that a test can call them.
"use strict";

const explore = (() => {
  // Largest true positive rate at a false positive rate under (epsilon, delta). Kairouz et al. 2015.
  const largestTpr = (epsilon, delta, fpr) =>
    Math.max(0, Math.min(1, Math.exp(epsilon) * fpr + delta, 1 - Math.exp(-epsilon) * (1 - fpr - delta)));

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
  return { largestTpr, epsilon, divergences, toEpsilon };
})();

(() => {
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

  const wire = (id, draw) => {
    const box = document.getElementById(id);
    if (!box) return;
    const field = (name) => box.querySelector(`input[name=${name}]`);
    const say = (name, text) => {
      box.querySelector(`output[name=${name}]`).textContent = text;
      field(name).setAttribute("aria-valuetext", text);
    };
    const update = () => draw(box, (name) => 10 ** Number(field(name).value), say);
    box.addEventListener("input", update);
    update();
  };

  wire("explore-roc", (box, value, say) => {
    const [epsilon, delta] = [value("epsilon"), value("delta")];
    say("epsilon", shown(epsilon));
    say("delta", shown(delta));
    const svg = box.querySelector("svg");
    const ticks = [0, 0.25, 0.5, 0.75, 1];
    axes(svg, ticks.map((t) => [t, across(t)]), ticks.map((t) => [t, upward(t)]),
      ["false positive rate", "true positive rate"]);
    const rates = [...Array(201).keys()].map((i) => (i / 200) ** 3);
    const curve = rates.map((rate) => [across(rate), upward(explore.largestTpr(epsilon, delta, rate))]);
    const below = [...rates].reverse().map((rate) =>
      [across(rate), upward(1 - explore.largestTpr(epsilon, delta, 1 - rate))]);
    element(svg, "path", { d: `${path([...curve, ...below])}Z`, class: "region" });
    element(svg, "path", { d: path(curve), class: "curve" });
    element(svg, "path", { d: path([[across(0), upward(0)], [across(1), upward(1)]]), class: "guess" });
    const atOne = explore.largestTpr(epsilon, delta, 0.01);
    const advantage = (Math.expm1(epsilon) + 2 * delta) / (Math.exp(epsilon) + 1);
    box.querySelector(".says").textContent =
      `At one false alarm in a hundred, an attacker finds at most ${shown(100 * atOne)}% of the patients; `
      + `true minus false positive rate is at most ${shown(100 * advantage)}%.`;
  });

  wire("explore-epsilon", (box, value, say) => {
    const [sigma, q, steps, delta] = [value("sigma"), Math.min(1, value("q")), Math.round(value("steps")), value("delta")];
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
    const svg = box.querySelector("svg");
    axes(svg, [0, 1, 2, 3, 4, 5].map((p) => [(10 ** p).toLocaleString("en"), across(p / 5)]),
      [-2, -1, 0, 1, 2, 3].map((p) => [10 ** p, height(10 ** p)]), ["steps", "ε (nats)"]);
    const drawn = powers.map((power, i) => [across(Math.log10(power) / 5), height(spent[i])]).filter((_, i) => inside(spent[i]));
    element(svg, "path", { d: path(drawn), class: "curve" });
    const own = explore.toEpsilon(rdp, steps, delta);
    if (inside(own)) element(svg, "circle", { cx: across(Math.log10(steps) / 5), cy: height(own), r: 5, class: "point" });
    box.querySelector(".says").textContent =
      `After ${steps} steps: ε = ${shown(own)}${inside(own) ? "" : ", outside the picture,"} at δ = ${shown(delta)} (one patient added or removed, Poisson sampling, Rényi accountant).`;
  });
})();
