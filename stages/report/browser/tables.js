// A table that is wider than its place becomes a list: each row names its values.
const widths = new WeakMap();

function fitTable(region) {
  region.classList.remove("stacked");
  if (region.scrollWidth <= region.clientWidth) return;
  nameCells(region.querySelector("table"));
  region.classList.add("stacked");
}

/** Give each cell the name of its column, and that of its group if there are several. */
function nameCells({ tHead, tBodies }) {
  const header = [...tHead.rows].at(-1);
  const spans = [...tHead.rows[0].cells].flatMap(cell => Array(cell.colSpan).fill(cell.textContent));
  const grouped = tHead.rows.length > 1 && new Set(spans.filter(Boolean)).size > 1;
  const names = [...header.cells].map((cell, at) => (grouped && spans[at] ? `${spans[at]}, ` : "") + cell.textContent);
  for (const row of tBodies[0].rows) for (const cell of row.cells) cell.dataset.label = names[cell.cellIndex];
}

const fitting = new ResizeObserver(entries => {
  for (const { target } of entries) {
    if (widths.get(target) === target.clientWidth) continue; // only its height has changed
    widths.set(target, target.clientWidth);
    fitTable(target);
  }
});
for (const region of document.querySelectorAll(".scroll:has(table)")) fitting.observe(region);
