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
