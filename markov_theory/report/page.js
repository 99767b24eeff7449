"use strict";

// What a cell is sorted by: its exact text, as a number where the column holds numbers; null where there is none.
function keyOf(cell, numeric) {
  const text = (cell.dataset.value ?? cell.textContent).trim();
  if (text === "") return null;
  if (!numeric) return text;
  return { inf: Infinity, "-inf": -Infinity }[text] ?? Number(text);
}

function compare(a, b) {
  return typeof a === "number" ? (a < b ? -1 : a > b ? 1 : 0) : a.localeCompare(b, "en", { numeric: true });
}

// Cells without a value come last, whichever the direction; rows that are equal keep their order.
function sort(table, column, sign) {
  const numeric = table.tHead.rows[0].cells[column].classList.contains("number");
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, (row) => [keyOf(row.cells[column], numeric), row]);
  keyed.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
  body.append(...keyed.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = Array.from(table.tHead.rows[0].cells);
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const direction = heading.ariaSort === "ascending" ? "descending" : "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", direction);
      sort(table, column, direction === "ascending" ? 1 : -1);
    });
  });
}

// On paper nothing stays folded.
window.addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
