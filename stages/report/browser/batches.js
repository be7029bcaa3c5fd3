// The browser of batches: the search, the list, and the batch that is opened.

// ---- Search: which pairs contain all words, in their query or in their document.
let lowered; // all texts in lower case, from the first search on

/** Return the words of a search, in lower case. */
function wordsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 8);
}

/** Return a byte for each pair: 1 if it contains all words. */
function pairsWith(words, texts) {
  lowered ??= texts.texts.map(text => text.toLowerCase());
  const all = (1 << words.length) - 1;
  const held = new Uint8Array(lowered.length);
  words.forEach((word, bit) => {
    for (let place = 0; place < lowered.length; place++) if (lowered[place].includes(word)) held[place] |= 1 << bit;
  });
  return Uint8Array.from(texts.query, (query, pair) => (held[query] | held[texts.document[pair]]) === all);
}

// ---- The list: filters, order and pages. A batch is opened by its link, #batch-NUMBER.
const PER_PAGE = 10;
const controls = Object.fromEntries(["words", "domain", "epoch", "order"].map(id => [id, document.getElementById(id)]));
const statusLine = document.getElementById("found");
const listed = document.querySelector("#list tbody");
const [previousPage, nextPage] = document.querySelectorAll("#pages button");
let page = 0;
let hits = null; // a byte for each pair, or null if nothing is searched for

function searched() {
  return wordsOf(controls.words.value);
}

async function startList() {
  const list = await unpack("data-batches");
  const option = (value, text) => make("option", { value }, text);
  controls.domain.append(...list.domains.map((name, number) => option(number, name)));
  controls.epoch.append(...[...new Set(list.epoch)].map(epoch => option(epoch, epoch)));
  controls.domain.parentElement.hidden = list.domains.length < 2;
  let waiting;
  controls.words.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 150, 0);
  });
  for (const name of ["domain", "epoch", "order"]) controls[name].addEventListener("change", () => update(0));
  controls.words.form.addEventListener("submit", event => event.preventDefault());
  previousPage.addEventListener("click", () => update(page - 1));
  nextPage.addEventListener("click", () => update(page + 1));
  await update(0);
}

/** Show a page of the batches that pass the filters. */
async function update(number) {
  const words = searched();
  const list = await unpack("data-batches");
  if (words.length) statusLine.textContent = "Searching …";
  hits = words.length ? pairsWith(words, await unpack("data-texts")) : null;
  const rows = hits && (await unpack("data-rows"));
  const counts = hits && rows.map(batch => batch.pairs.reduce((sum, pair) => sum + hits[pair], 0));
  const passing = chosen(list, counts);
  const last = Math.max(Math.ceil(passing.length / PER_PAGE) - 1, 0);
  page = Math.min(Math.max(number, 0), last);
  previousPage.disabled = page === 0;
  nextPage.disabled = page === last;
  document.getElementById("page").textContent = `page ${page + 1} of ${last + 1}`;
  document.getElementById("list").classList.toggle("searched", Boolean(hits));
  listed.replaceChildren(...passing.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map(at => entry(list, at, counts)));
  fitTable(document.getElementById("list").parentElement);
  const batches = `${several(passing.length, "batch", "batches")} of ${list.batch.length.toLocaleString("en")}`;
  const pairs = hits?.reduce((sum, one) => sum + one, 0);
  statusLine.textContent = hits ? `${several(pairs, "pair", "pairs")} in ${batches}` : batches;
}

function several(count, one, more) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
}

/** Return the places of the batches that pass the filters, in order. */
function chosen(list, counts) {
  const { domain, epoch, order } = controls;
  const passing = [...list.batch.keys()].filter(
    at =>
      (!counts || counts[at]) &&
      (domain.value === "" || list.domain[at] === Number(domain.value)) &&
      (epoch.value === "" || list.epoch[at] === Number(epoch.value)),
  );
  const by = order.value === "batch" ? counts : list[order.value];
  return by ? passing.sort((one, other) => by[other] - by[one] || one - other) : passing;
}

function entry(list, at, counts) {
  const link = make("a", { href: `#batch-${list.batch[at]}` }, `Batch ${list.batch[at]}`);
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, link),
    make("td", {}, String(list.epoch[at])),
    make("td", { class: "words" }, ...breakable(list.domains[list.domain[at]])),
    make("td", {}, share(list.hardness[at])),
    make("td", {}, percent(list.masked[at])),
    make("td", { class: "found" }, counts ? String(counts[at]) : ""),
  );
}

// ---- The opened batch: its pairs, what is masked for each query and why, and the hardest negatives that are left.
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
  const metadata = texts.metadata?.[pair] ?? -1;
  return make(
    "li",
    { class: words.length ? "hit" : "" },
    make("span", { class: "number" }, String(row)),
    make("p", { class: "query" }, ...marked(texts.texts[texts.query[pair]], words)),
    make("p", { class: "document" }, ...marked(texts.texts[texts.document[pair]], words)),
    ...(metadata < 0 ? [] : [make("p", { class: "quiet" }, ...breakable(texts.texts[metadata]))]),
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

// ---- Start: first the list, which is small; rows and texts are unpacked when the page has been painted.
addEventListener("hashchange", openBatch);
startList()
  .then(startMap)
  .then(openBatch)
  .then(() => unpack("data-rows"))
  .catch(error => {
    statusLine.textContent = `This browser cannot show the batches (${error.message}); a newer one can.`;
  });
