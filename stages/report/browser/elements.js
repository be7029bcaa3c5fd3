// Elements of the page. Texts come from strangers: they become text nodes, never HTML.

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

/** Return the text as nodes, with the words found marked. */
function marked(text, words) {
  if (!words.length) return [text];
  const pattern = words.map(word => word.replace(/[.*+?^$()|[\]\\{}]/g, "\\$&")).join("|");
  const parts = text.split(new RegExp(`(${pattern})`, "giu"));
  return parts.map((part, place) => (place % 2 ? make("mark", {}, part) : part));
}

/** Format a share as the tables of the page do: `.676`. */
function share(value, digits = 3) {
  return value.toFixed(digits).replace(/^(-?)0\./, "$1.");
}

function percent(value) {
  return `${(100 * value).toFixed(1)}%`;
}
