// The quiz at the end of a chapter. Without this script a question is a list with the answer folded below it;
// with it the list can be chosen from by mouse, keys or screen reader, and checked.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  document.querySelectorAll(".quiz-question").forEach((question, number) => {
    const asks = question.querySelector("p");
    const list = question.querySelector("ol");
    const reasons = [...question.querySelectorAll(".quiz-why")];
    const inputs = [...list.children].map((item, i) => {
      const input = make("input", { type: "radio", name: `quiz-${number}`, value: String(i) });
      const words = item.querySelector("p") ?? item;
      item.replaceChildren(make("label", {}, input, make("span", {}, ...words.childNodes)));
      return input;
    });
    const says = make("div", { className: "quiz-result" });
    says.setAttribute("role", "status"); // a screen reader says what is put into it
    const check = make("button", { type: "button", className: "quiz-check", textContent: "Check" });
    const forget = () => {
      says.replaceChildren();
      for (const item of list.children) item.classList.remove("quiz-yes", "quiz-no");
    };
    check.addEventListener("click", () => {
      forget();
      const chosen = inputs.findIndex((input) => input.checked);
      if (chosen < 0) {
        says.append(make("p", { textContent: "Choose an answer first." }));
        return;
      }
      const right = reasons[chosen].classList.contains("quiz-right");
      list.children[chosen].classList.add(right ? "quiz-yes" : "quiz-no");
      says.append(...[...reasons[chosen].childNodes].map((node) => node.cloneNode(true)));
    });
    list.addEventListener("change", forget);
    const legend = make("legend", {}, ...asks.childNodes);
    asks.replaceWith(make("fieldset", {}, legend, list, check, says));
  });
});
