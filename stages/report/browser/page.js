// The page: the data in it, elements and their texts, tips, and tables that fit the width.

// ---- Data: JSON, compressed and in base64, in a script element of the page itself.
const unpacked = new Map();

/** Return a promise of the JSON in the script element `id`, which is unpacked once. */
function unpack(id) {
  if (!unpacked.has(id)) unpacked.set(id, read(id));
  return unpacked.get(id);
}

async function read(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) bytes[place] = text.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// ---- Elements. Texts come from strangers: they become text nodes, never HTML.
const JOINT = /(?<=[\p{L}\p{N}][^\p{L}\p{N}\s]|[^\p{L}\p{N}\s_]{2})(?=[\p{L}\p{N}])/u;

/** Return a new element with attributes and children: elements, or strings as text. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for an element of a drawing. */
function draw(tag, attributes = {}, ...children) {
  const { namespaceURI } = document.getElementById("map");
  return fill(document.createElementNS(namespaceURI, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Return the text as nodes: a long word may go on in the next line where something begins after a sign. */
function breakable(text) {
  const parts = text.split(/(\S{20,})/).map((part, place) => (place % 2 ? part.split(JOINT) : [part]));
  return parts.flatMap(part => part.flatMap((piece, place) => (place ? [make("wbr"), piece] : [piece])));
}

/** Return the text as nodes, with the words found marked. */
function marked(text, words) {
  if (!words.length) return breakable(text);
  const pattern = words.map(word => word.replace(/[.*+?^$()|[\]\\{}]/g, "\\$&")).join("|");
  const parts = text.split(new RegExp(`(${pattern})`, "giu"));
  return parts.flatMap((part, place) => (place % 2 ? [make("mark", {}, ...breakable(part))] : breakable(part)));
}

/** Format a share as the tables of the page do: `.676`. */
function share(value, digits = 3) {
  return value.toFixed(digits).replace(/^(-?)0\./, "$1.");
}

function percent(value) {
  return `${(100 * value).toFixed(1)}%`;
}

for (const element of document.querySelectorAll("td, th, li, summary, summary strong")) {
  for (const node of [...element.childNodes]) if (node instanceof Text) node.replaceWith(...breakable(node.data));
}

// ---- Tips: one for the whole page, which tells more about what the pointer or the keyboard's focus is on.
const tip = make("div", { id: "tip", role: "tooltip", hidden: "" });
document.body.append(tip);

const tells = new WeakMap();
let subject = null; // the element that the tip is about

/** Show what `tell` returns, a list of nodes and strings, while `element` is hovered or focused. */
function explain(element, tell) {
  element.setAttribute("aria-describedby", "tip");
  tells.set(element, tell);
}

function showTip(event) {
  subject = event.target.closest?.("[aria-describedby=tip]");
  tip.hidden = !subject;
  if (!subject) return;
  tip.replaceChildren(...tells.get(subject)());
  placeTip();
}

/** Put the tip above its element, or below if there is no room. */
function placeTip() {
  if (tip.hidden) return;
  const target = subject.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const most = document.documentElement.clientWidth - own.width - 8;
  const above = target.top - own.height - 8;
  tip.style.left = `${Math.max(Math.min(target.left, most), 8)}px`;
  tip.style.top = `${above > 0 ? above : target.bottom + 8}px`;
}

function hideTip() {
  tip.hidden = true;
}

addEventListener("pointerover", showTip);
addEventListener("focusin", showTip);
addEventListener("focusout", hideTip);
addEventListener("keydown", event => event.key === "Escape" && hideTip());
addEventListener("scroll", placeTip, { passive: true, capture: true });

// ---- Tables: one that is wider than its place becomes a list, in which each row names its values.
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
