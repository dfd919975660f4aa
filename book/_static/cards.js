// A card over a link: a word of the glossary, a source, a theorem or a figure, without leaving the sentence.
// It comes with the pointer or the keyboard's focus, stays while either is on the link or the card, and goes
// with Escape (WCAG 1.4.13). Without this script a link is a link.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const LINKS = "article a.internal[href*='#']";
  const SHOW_MS = 250;
  const HIDE_MS = 300;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const card = document.createElement("div");
  card.id = "book-card";
  card.className = "book-card tex2jax_ignore mathjax_ignore";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  document.querySelector("article")?.append(card);

  // The browser's own tip would lie over the card, and no key opens it.
  const sources = new Map();
  for (const link of document.querySelectorAll(".bibtex-citation a[title]")) {
    sources.set(link, link.title);
    link.removeAttribute("title");
  }

  let data;
  const load = () =>
    (data ??= new Promise((done) => {
      const script = document.createElement("script");
      script.src = new URL("_static/cards-data.js", root);
      script.onload = () => done(window.bookCards);
      script.onerror = () => done({});
      document.head.append(script);
    }));

  // Return a copy of what a link of this page leads to, without what may stand in a page once only.
  const copyOf = (id) => {
    let target = document.getElementById(id);
    if (target?.matches("dt")) while (target && !target.matches("dd")) target = target.nextElementSibling;
    if (!target?.matches("dd, figure, .proof")) return [];
    const copy = target.cloneNode(true);
    for (const one of copy.querySelectorAll(".headerlink")) one.remove();
    for (const one of copy.querySelectorAll("[id]")) one.removeAttribute("id");
    for (const one of copy.querySelectorAll("a")) one.replaceWith(...one.childNodes);
    return [...copy.childNodes];
  };

  const contentOf = async (link) => {
    if (sources.has(link)) return [sources.get(link)];
    const url = new URL(link.href);
    if (url.pathname === location.pathname) return copyOf(decodeURIComponent(url.hash.slice(1)));
    const found = (await load())[decodeURIComponent(url.href.slice(root.href.length))];
    const made = document.createElement("template");
    made.innerHTML = found ?? ""; // of the pages of this site, which passed its checks
    for (const image of made.content.querySelectorAll("img")) image.src = new URL(image.getAttribute("src"), root);
    return [...made.content.childNodes];
  };

  let shown, timer;
  const hide = () => {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown = undefined;
    card.hidden = true;
  };
  const place = (link) => {
    const [line] = link.getClientRects();
    const { offsetWidth: width, offsetHeight: height } = card;
    const room = document.documentElement.clientWidth - width - 8;
    const above = line.bottom + height + 8 > innerHeight && line.top > height + 8;
    const origin = card.offsetParent.getBoundingClientRect();
    card.style.left = `${Math.max(8, Math.min(line.left, room)) - origin.left}px`;
    card.style.top = above ? "auto" : `${line.bottom + 4 - origin.top}px`;
    card.style.bottom = above ? `${origin.bottom - line.top + 4}px` : "auto";
  };
  const show = async (link) => {
    if (link === shown) return;
    hide();
    shown = link;
    const content = await contentOf(link);
    if (shown !== link || !content.length) return;
    card.replaceChildren(...content);
    card.hidden = false;
    link.setAttribute("aria-describedby", card.id);
    place(link);
    if (card.querySelector(".math:not(:has(mjx-container))")) await window.MathJax?.typesetPromise?.([card]);
    if (shown === link) place(link);
  };
  const later = (act, wait) => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };

  const linkOf = ({ target }) => target.closest?.(LINKS);
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return; // a tap follows the link
    const link = linkOf(event);
    if (link) later(() => show(link), link === shown ? 0 : SHOW_MS);
    else if (card.contains(event.target)) clearTimeout(timer);
    else later(() => shown !== document.activeElement && hide(), HIDE_MS);
  });
  document.addEventListener("focusin", (event) => {
    const link = linkOf(event);
    if (link?.matches(":focus-visible")) show(link);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target === shown) hide();
  });
  addEventListener("resize", () => card.hidden || place(shown));
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") hide();
  });
});
