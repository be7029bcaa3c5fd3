// A table that is wider than its place becomes a list: each row names its values.
const widths = new WeakMap();

function fitTable(region) {
  region.classList.remove("stacked");
  region.classList.toggle("stacked", region.scrollWidth > region.clientWidth);
}

const fitting = new ResizeObserver(entries => {
  for (const { target } of entries) {
    if (widths.get(target) === target.clientWidth) continue; // only its height has changed
    widths.set(target, target.clientWidth);
    fitTable(target);
  }
});
for (const region of document.querySelectorAll(".scroll:has(table)")) fitting.observe(region);
