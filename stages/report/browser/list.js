// The list of batches: search, filters, order and pages. A batch is opened by its link, #batch-NUMBER.
const PER_PAGE = 10;
const controls = Object.fromEntries(["words", "domain", "epoch", "order"].map(id => [id, document.getElementById(id)]));
const told = document.getElementById("found");
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
  if (words.length) told.textContent = "Searching …";
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
  told.textContent = hits ? `${several(pairs, "pair", "pairs")} in ${batches}` : batches;
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
