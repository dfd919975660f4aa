// Puts every page of the site after one another in the page that is open, ready to be printed.
"use strict";

const SHORT = 20; // lines of code that stay on one page

const make = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

const read = async (name, address) => {
  const text = await (await fetch(address)).text();
  const article = new DOMParser().parseFromString(text, "text/html").querySelector("article.bd-article");
  if (!article) throw new Error(`${name}: has no article`);
  return article;
};

// A script that came with the text of a page does not run; a new element does, and these in their order.
const runScripts = (article, address) => Promise.all([...article.querySelectorAll("script[src]")].map((old) =>
  new Promise((onload, onerror) => {
    const src = new URL(old.getAttribute("src"), address);
    old.replaceWith(make("script", { src, onload, onerror, async: false }));
  })));

// The same id on two pages is two places of the book: each gets the name of its page.
const anchor = (name, id) => (id ? `${name}:${id}` : name);

const leadInside = (article, names, name, address) => {
  for (const one of article.querySelectorAll("[id]")) one.id = anchor(name, one.id);
  article.id = name;
  for (const link of article.querySelectorAll("a[href]")) {
    const target = new URL(link.getAttribute("href"), address);
    if (target.origin !== location.origin) continue;
    const other = decodeURIComponent(target.pathname).slice(1).replace(/\.html$/, "");
    const id = decodeURIComponent(target.hash).slice(1);
    if (names.has(other)) link.setAttribute("href", `#${anchor(other, id)}`);
    else link.removeAttribute("href"); // a page outside the contents, such as the search
  }
};

const prepare = (article, address) => {
  for (const image of article.querySelectorAll("img")) {
    image.src = new URL(image.getAttribute("src"), address);
  }
  for (const link of article.querySelectorAll(".headerlink")) link.remove();
  for (const folded of article.querySelectorAll("details")) folded.open = true;
  // Names and signs look like any text; each alone would cost the PDF an element, two thirds of all it has.
  for (const one of article.querySelectorAll(".highlight :is(.n, .nn, .p, .w)")) one.replaceWith(one.textContent);
  article.normalize();
  for (const code of article.querySelectorAll("pre")) {
    code.classList.toggle("short", code.textContent.trimEnd().split("\n").length <= SHORT);
  }
};

const typeset = async (book) => {
  MathJax.typesetClear(); // the page that was open
  await MathJax.typesetPromise([book]);
  for (const { typesetRoot, math } of MathJax.startup.document.math) {
    // For a screen reader a picture, described by its source. MathJax draws letters with style sheets, and
    // Chromium leaves out a picture without a letter of text: it gets an invisible one.
    typesetRoot.role = "img";
    typesetRoot.ariaLabel = math;
    typesetRoot.querySelector("mjx-math").removeAttribute("aria-hidden");
    typesetRoot.append("\u2060");
  }
};

// Paper cannot be scrolled: what is too wide although its words are wrapped is made smaller.
const fit = (one) => {
  const room = one.parentElement.clientWidth;
  if (one.scrollWidth > room) one.style.zoom = room / one.scrollWidth;
};

// `parts` is [{caption, pages: [{name, level}]}]: the first part has no caption, level 2 is below a chapter.
const assemble = async ({ parts, title, front }) => {
  const names = new Set(parts.flatMap((part) => part.pages.map((page) => page.name)));
  const contents = make("nav", { className: "printed-contents" }, make("h1", {}, "Contents"));
  const header = make("header", {}, ...front.map((line) => make("p", {}, line)));
  const book = make("main", { className: "printed-book" }, header, contents);
  document.title = title;
  document.body.replaceChildren(book);
  for (const { caption, pages } of parts) {
    if (caption) contents.append(make("p", {}, caption));
    for (const { name, level } of pages) {
      const address = new URL(`/${name}.html`, location);
      const article = await read(name, address);
      book.append(article);
      await runScripts(article, address); // they look for the ids of their own page
      leadInside(article, names, name, address);
      prepare(article, address);
      const heading = article.querySelector("h1").textContent;
      contents.append(make("a", { href: `#${name}`, className: `level-${level}` }, heading));
      // Bookmarks nest as the contents do, and headings look as they did.
      for (const one of article.querySelectorAll("h1, h2, h3, h4")) {
        one.ariaLevel = Number(one.tagName[1]) + (caption ? level : 0);
      }
      if (caption && name === pages[0].name) article.prepend(make("h1", { className: "part" }, caption));
    }
  }
  await typeset(book);
  await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
  await document.fonts.ready;
  document.querySelectorAll("table, mjx-container[display]").forEach(fit);
};
