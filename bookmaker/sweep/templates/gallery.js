const table = document.getElementById("runs"), body = table.tBodies[0];
const cell = (row, at) => row.cells[at].textContent.trim();
table.tHead.rows[0].querySelectorAll("button").forEach((button, at) => button.addEventListener("click", () => {
  const head = button.parentElement, down = head.getAttribute("aria-sort") === "ascending";
  table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = (one, other) => {
    const [a, b] = [cell(one, at), cell(other, at)];
    if (!a || !b) return a ? -1 : b ? 1 : 0;
    const numbers = parseFloat(a) - parseFloat(b);  // of "0.53 [0.50, 0.56]", the estimate
    return (down ? -1 : 1) * (Number.isNaN(numbers) ? a.localeCompare(b) : numbers);
  };
  body.append(...[...body.rows].sort(order));
}));
const search = document.getElementById("search"), axes = [...document.querySelectorAll("select")];
const filter = () => {
  let seen = 0;
  for (const row of body.rows) {
    const fits = axes.every(axis => !axis.value || row.dataset[axis.dataset.axis] === axis.value);
    row.hidden = !(fits && row.textContent.toLowerCase().includes(search.value.toLowerCase()));
    seen += !row.hidden;
  }
  document.getElementById("count").textContent = `${seen} of ${body.rows.length} runs`;
};
[search, ...axes].forEach(field => field.addEventListener("input", filter));
