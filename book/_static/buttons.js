// The theme's buttons that act, by a listener: the policy of a page runs no script from an attribute.
"use strict";

document.addEventListener("click", ({ target }) => {
  const button = target.closest(".btn-fullscreen-button, .btn-download-pdf-button");
  if (!button) return;
  if (button.matches(".btn-fullscreen-button")) toggleFullScreen();
  else window.print();
});
