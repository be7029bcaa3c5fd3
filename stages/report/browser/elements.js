// Elements of the page. Texts come from strangers: they become text nodes, never HTML.

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
