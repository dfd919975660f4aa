// What the theme leaves open: its buttons act by a listener (the policy of a page runs no script from an attribute).
"use strict";

document.addEventListener("click", ({ target }) => {
  const button = target.closest(".btn-fullscreen-button, .btn-download-pdf-button");
  if (!button) return;
  if (button.matches(".btn-fullscreen-button")) toggleFullScreen();
  else window.print();
});

// Paper is light, whatever the screen is.
let theme;
addEventListener("beforeprint", () => {
  ({ theme } = document.documentElement.dataset);
  document.documentElement.dataset.theme = "light";
});
addEventListener("afterprint", () => (document.documentElement.dataset.theme = theme));
