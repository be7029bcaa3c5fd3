// One opened batch: its pairs, what is masked for each query and why, and the hardest negatives that are left.
const opened = document.getElementById("batch");
const HARDEST = 6; // numbers per row: row and similarity of three negatives
const AT_ONCE = 24; // rows that are there at once; the others follow when these have been painted
const WHY = {
  known_positive: "It is paired with this query in another training pair.",
  duplicate: "It is a duplicate of the query’s own document.",
  judged: "A judgement says that it answers this query.",
  score: "It is so alike that it probably answers this query.",
};

const ORDERS = {
  "as packed": () => 0,
  "most masked first": (batch, row) => batch.masked[row]?.[0] ?? 0,
  "hardest first": (batch, row) => batch.hardness[row],
};

/** Open the batch that the page's address names, if any. */
async function openBatch() {
  const number = /^#batch-(\d+)$/.exec(location.hash)?.[1];
  if (number === undefined) return;
  const [list, rows, texts] = await Promise.all(["data-batches", "data-rows", "data-texts"].map(unpack));
  const at = list.batch.indexOf(Number(number));
  if (at < 0) return;
  opened.hidden = false;
  showBatch(list, at, rows[at], texts);
  opened.scrollIntoView();
  opened.querySelector("h3").focus({ preventScroll: true });
}

function showBatch(list, at, batch, texts) {
  const why = list.reasons
    .map((reason, place) => `${named(reason)} ${batch.reasons[place].toLocaleString("en")}`)
    .filter((_, place) => batch.reasons[place]);
  const about =
    `${list.domains[list.domain[at]]}, epoch ${list.epoch[at]}. ${batch.pairs.length} pairs, ` +
    `hardness ${share(list.hardness[at])}, ${percent(list.masked[at])} of negatives masked`;
  const rows = make("ol", { class: "rows", tabindex: "0", "aria-label": "Pairs" });
  const show = row => showRow(list.reasons, batch, row, texts);
  const fill = by => {
    const order = rowOrder(batch, by);
    rows.replaceChildren(...order.slice(0, AT_ONCE).map(show));
    setTimeout(() => rows.append(...order.slice(AT_ONCE).map(show)));
  };
  const order = make("select", {}, ...Object.keys(ORDERS).map(name => make("option", {}, name)));
  order.addEventListener("change", () => fill(order.value));
  fill(order.value);
  opened.replaceChildren(
    make("h3", { tabindex: "-1" }, `Batch ${list.batch[at]}`),
    make("p", {}, why.length ? `${about}: ${why.join(", ")}.` : `${about}.`),
    make("p", { class: "pages" }, ...neighbours(list, at), make("label", {}, "Rows ", order)),
    rows,
    make("p", { class: "pages" }, ...neighbours(list, at)),
  );
}

function neighbours(list, at) {
  const link = (place, text) => make("a", { href: `#batch-${list.batch[place]}` }, text);
  const before = at > 0 ? [link(at - 1, "← previous batch")] : [];
  const after = at + 1 < list.batch.length ? [link(at + 1, "next batch →")] : [];
  return [...before, make("a", { href: "#batches" }, "all batches"), ...after];
}

/** Return the rows in order; those that were searched for come first. */
function rowOrder(batch, by) {
  const found = row => (hits ? hits[batch.pairs[row]] : 0);
  const value = ORDERS[by];
  const rows = [...batch.pairs.keys()];
  return rows.sort((one, other) => found(other) - found(one) || value(batch, other) - value(batch, one) || one - other);
}

function showRow(reasons, batch, row, texts) {
  const pair = batch.pairs[row];
  const words = hits?.[pair] ? searched() : [];
  const masked = maskedChips(reasons, batch, row, texts);
  const left = hardChips(batch, row, texts);
  return make(
    "li",
    { class: words.length ? "hit" : "" },
    make("span", { class: "number" }, String(row)),
    make("p", { class: "query" }, ...marked(texts.texts[texts.query[pair]], words)),
    make("p", { class: "document" }, ...marked(texts.texts[texts.document[pair]], words)),
    make(
      "p",
      { class: "chips" },
      `hardness ${share(batch.hardness[row] / 1000)}`,
      ...(masked.length ? [make("span", {}, "masked"), ...masked] : []),
      ...(left.length ? [make("span", {}, "hardest left"), ...left] : []),
    ),
  );
}

/** What is masked for a query: a button for each of the first documents, and how many more there are. */
function maskedChips(reasons, batch, row, texts) {
  const [count, ...cells] = batch.masked[row] ?? [0];
  const chips = [];
  for (let place = 0; place < cells.length; place += 2) {
    const [other, reason] = [cells[place], reasons[cells[place + 1]]];
    const about = `Masked, ${named(reason)}. ${WHY[reason] ?? ""}`;
    chips.push(chip(batch, texts, other, reason, `${other} ${named(reason)}`, about));
  }
  return count > chips.length ? [...chips, `and ${count - chips.length} more`] : chips;
}

function hardChips(batch, row, texts) {
  const numbers = batch.hardest.slice(HARDEST * row, HARDEST * (row + 1));
  const chips = [];
  for (let place = 0; place < numbers.length && numbers[place] >= 0; place += 2) {
    const similarity = share(numbers[place + 1] / 100, 2);
    const about = `A negative that is left, with similarity ${similarity} to the query.`;
    chips.push(chip(batch, texts, numbers[place], "hard", `${numbers[place]} at ${similarity}`, about));
  }
  return chips;
}

/** A button that names another row of the batch: it tells what that row's document is. */
function chip(batch, texts, row, kind, name, about) {
  const button = make("button", { type: "button", class: `chip ${kind}` }, name);
  const pair = batch.pairs[row];
  explain(button, () => [
    make("strong", {}, about),
    make("p", {}, ...breakable(`Document of row ${row}: ${texts.texts[texts.document[pair]]}`)),
    make("p", { class: "quiet" }, ...breakable(`Its own query: ${texts.texts[texts.query[pair]]}`)),
  ]);
  return button;
}

function named(reason) {
  return reason.replaceAll("_", " ");
}
