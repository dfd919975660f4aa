// A deck: its theme, its keys, and a second window for the speaker. Nothing is asked of another host.
"use strict";

const SPEAKING = new URLSearchParams(location.search).has("speaker");
const setTheme = (theme) => (document.documentElement.dataset.theme = theme);
const dark = matchMedia("(prefers-color-scheme: dark)");
setTheme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));

// In a body that scrolls, the keys that scroll do not turn the slide.
const SCROLLING = ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", " "];
const isWide = (box) => box.scrollWidth > box.clientWidth + 1;
const isLong = (box) => isWide(box) || box.scrollHeight > box.clientHeight + 1;
const scrolls = ({ key, target }) => {
  const box = target.closest?.(".body, pre, [role=group]");
  return box && isLong(box) && (SCROLLING.includes(key) || (isWide(box) && key.startsWith("Arrow")));
};

// The deck and the speaker's window turn each other's slides; who is led does not answer.
let other = SPEAKING ? opener : null;
let led = false;
const lead = ({ indexh }) => {
  if (!led) other?.postMessage({ slide: indexh }, "*"); // a folder opened without a server has no origin to name
};
const follow = ({ source, data }) => {
  if (!source || source !== other || !Number.isInteger(data?.slide)) return;
  led = true;
  Reveal.slide(data.slide);
  led = false;
};

document.addEventListener("DOMContentLoaded", async () => {
  if (!document.querySelector(".reveal")) return;
  // What is a little too long gets smaller; what is still longer than its place scrolls, and Tab stops there.
  const fit = () => {
    const body = document.querySelector(".reveal .present .body");
    for (let percent = 100; percent >= 75; percent -= 5) {
      body.style.fontSize = `${percent}%`;
      if (!isLong(body)) break;
    }
    for (const box of [body, ...body.querySelectorAll("pre")]) {
      if (isLong(box)) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  await Reveal.initialize({
    width: 1280, height: 720, margin: 0.02, minScale: 0.1, maxScale: 4, center: false, display: "flex",
    hash: true, slideNumber: "c/t", transition: "none", backgroundTransition: "none", showNotes: SPEAKING,
    scrollActivationWidth: null, keyboardCondition: (event) => !scrolls(event),
  });
  document.documentElement.classList.toggle("speaking", SPEAKING);
  const add = (keyCode, key, description, act) => Reveal.addKeyBinding({ keyCode, key, description }, act);
  add(84, "T", "Show what to say", () => {
    Reveal.configure({ showNotes: !Reveal.getConfig().showNotes });
  });
  add(68, "D", "Light or dark", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  });
  add(83, "S", "Open a window for the speaker", () => {
    if (SPEAKING) return;
    const address = new URL(location.href);
    address.search = "?speaker";
    other = open(address, "speaker", "width=1200,height=700");
  });
  Reveal.on("slidechanged", lead);
  Reveal.on("slidechanged", fit);
  addEventListener("resize", fit);
  addEventListener("message", follow);
  window.MathJax?.startup?.promise?.then(fit);
  fit();
});
