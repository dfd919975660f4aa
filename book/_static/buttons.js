// What the theme leaves open: its buttons act by a listener (the policy of a page runs no script from an attribute).
"use strict";

document.addEventListener("click", ({ target }) => {
  const button = target.closest(".btn-fullscreen-button, .btn-download-pdf-button");
  if (!button) return;
  if (button.matches(".btn-fullscreen-button")) toggleFullScreen();
  else window.print();
});

// Paper is light, whatever the screen is, and nothing on it can be opened. Plumbing stays folded,
// and so do the answers of a quiz.
let theme;
let opened = [];
addEventListener("beforeprint", () => {
  ({ theme } = document.documentElement.dataset);
  document.documentElement.dataset.theme = "light";
  opened = [...document.querySelectorAll("article details:not([open])")].filter(
    (one) => !one.closest(".tag_plumbing, .quiz-question"),
  );
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = theme;
  for (const one of opened) one.open = false;
});

// A formula is as large as MathJax draws it, and shrinks if its line is too short, as on a phone; the longest ones
// also scroll.
const fitFormulas = () => {
  const formulas = [...document.querySelectorAll("article .math > mjx-container")];
  for (const formula of formulas) formula.style.zoom = 1;
  const ratios = formulas.map((formula) => {
    const [line, drawn] = [formula.parentElement, formula.querySelector("mjx-math")];
    return line.getBoundingClientRect().width / drawn.getBoundingClientRect().width || 1;
  });
  formulas.forEach((formula, i) => (formula.style.zoom = Math.min(1, Math.max(0.7, ratios[i]))));
};
addEventListener("load", () => {
  window.MathJax?.startup?.promise.then(() => {
    const observer = new ResizeObserver(fitFormulas); // the window turns, or a fold opens
    for (const article of document.querySelectorAll("article")) observer.observe(article);
  });
});
