import json
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import chdir
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from stages.report import stage
from tests.helpers import annotate_shards
from tests.report.artifacts import DOMAINS, write_artifacts

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
]
MEASURE = """
<script type="module">
const box = element => element.getBoundingClientRect();
const outside = text => {
  const inner = box(text), outer = box(text.ownerSVGElement);
  return inner.left < outer.left - 1 || inner.right > outer.right + 1;
};
const words = element => {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const broken = [];
  const range = document.createRange();
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(rect => Math.round(rect.top))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
};
const pause = () => new Promise(done => setTimeout(done, 300));
const until = async test => { for (let tries = 0; !test() && tries < 50; tries++) await pause(); };
const text = selector => document.querySelector(selector)?.textContent.trim();
const cells = row => [...row.cells].map(cell => cell.textContent);
const listed = () => [...document.querySelectorAll("#list tbody tr")].map(cells);
const choose = (id, value, event = "change") => {
  const control = document.getElementById(id);
  control.value = value;
  control.dispatchEvent(new Event(event));
};
await until(() => listed().length);
const found = await (async () => { ACT })();
const result = Object.assign(document.createElement("pre"), {id: "found", textContent: JSON.stringify(found)});
parent.document.body.append(result);
</script>
"""


SIZES = """
for (const folded of document.querySelectorAll("details")) folded.open = true;
location.hash = "#batch-3";
await until(() => text("#batch h3"));
const wide = element => element.scrollWidth > element.clientWidth + 1;
return {
  width: innerWidth,
  page: document.documentElement.scrollWidth,
  sections: [...document.querySelectorAll("section")].map(section => box(section).height),
  charts: [...document.querySelectorAll("svg")].map(chart => box(chart).height),
  outside: [...document.querySelectorAll("svg text")].filter(outside).map(text => text.textContent),
  broken: [...document.querySelectorAll("td, th, nav, button, p, li, summary, figcaption, h4")].flatMap(words),
  cut: [...document.querySelectorAll(".scroll")].filter(wide).map(region => region.ariaLabel),
};
"""
CONTRAST = """
location.hash = "#batch-3";
await until(() => text("#batch h3"));
const seen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const light = colour => {
  seen.fillStyle = colour;
  seen.fillRect(0, 0, 1, 1);
  const linear = [...seen.getImageData(0, 0, 1, 1).data.slice(0, 3)].map(value =>
    value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const page = light(getComputedStyle(document.body).backgroundColor);
const contrasts = {};
const texts = "h1, h2, p, nav a, th, td, .chip, summary, figcaption, svg text";
for (const element of document.querySelectorAll(texts)) {
  const own = light(getComputedStyle(element)[element.closest("svg") ? "fill" : "color"]);
  const ratio = (Math.max(own, page) + 0.05) / (Math.min(own, page) + 0.05);
  const name = `${element.closest("svg") ? "svg " : ""}${element.tagName} ${element.getAttribute("class") ?? ""}`;
  contrasts[name] = Math.min(ratio, contrasts[name] ?? 100);
}
return { page, contrasts };
"""
SEARCH = """
const all = listed();
location.hash = "#batch-3";
await until(() => text("#batch .query"));
choose("words", text("#batch .query").toUpperCase(), "input");
await until(() => / in /.test(text("#found")));
const searched = [text("#found"), listed()];
choose("words", "", "input");
choose("domain", "1");
choose("epoch", "1");
choose("order", "batch");
await pause();
return { all, searched, filtered: listed() };
"""
OPEN = """
location.hash = "#batch-3";
await until(() => text("#batch h3") === "Batch 3");
const chips = [...document.querySelectorAll("#batch li:first-of-type .chip")];
const told = chips.map(chip => { chip.focus(); return text("#tip"); });
const shown = () => !document.getElementById("tip").hidden && text("#tip");
dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
const escaped = shown();
const over = element => element.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
const hovered = chips.map(chip => { over(chip); return shown(); });
over(document.querySelector("#batch h3"));
const left = shown();
chips[0].focus();
chips[0].blur();
const blurred = shown();
const dots = [...document.querySelectorAll("#map a")];
dots[0].focus();
const cluster = text("#tip");
for (const key of ["ArrowRight", "ArrowLeft"]) {
  if (document.activeElement === dots[0]) dots[0].dispatchEvent(new KeyboardEvent("keydown", { key }));
}
const moved = dots.indexOf(document.activeElement);
return {
  told,
  escaped, hovered, left, blurred,
  cluster,
  reached: [...document.querySelectorAll("#batches a, #batches button, #batches select, #batches input, #map a")]
    .filter(each => each.getAttribute("tabindex") !== "-1" && !each.disabled && each.checkVisibility())
    .map(each => { each.focus(); return document.activeElement === each ? "" : each.outerHTML; }),
  about: text("#batch p"),
  rows: document.querySelectorAll("#batch li").length,
  first: text("#batch li .query"),
  said: [...document.querySelectorAll("#batch li")].map(row => row.querySelector("p.quiet")?.textContent ?? ""),
  dots: dots.length,
  moved,
  active: dots.filter(dot => dot.getAttribute("tabindex") === "0").length,
  described: chips.every(chip => chip.getAttribute("aria-describedby") === "tip"),
  scripts: document.querySelectorAll("#batches script:not([type])").length,
  wide: document.documentElement.scrollWidth <= innerWidth,
};
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small report, in which all pairs but the first of each batch have metadata."""
    folder = tmp_path_factory.mktemp("project")
    write_artifacts(folder)
    annotate_shards(folder / "data/shards/contextual")
    with chdir(folder):
        stage.main()
    return folder / "report/index.html"


in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no 'chromium' on PATH")


def measure(page: Path, width: int, profile: Path, act: str = SIZES, *flags: str) -> dict[str, Any]:
    """Act in the page, in a frame of ``width``, because a browser's own windows are at least 500 wide."""
    script = MEASURE.replace("ACT", act)
    content = escape(page.read_text(encoding="utf-8").replace("</body>", script + "</body>"))
    host = page.with_name("host.html")
    frame = f'<iframe width="{width}" height="900" style="border: 0" srcdoc="{content}"></iframe>'
    host.write_text(f'<!doctype html><meta charset="utf-8"><body>{frame}</body>', encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, *flags, f"--user-data-dir={profile}", "--window-size=1400,1000"]
    command += ["--virtual-time-budget=20000", "--dump-dom"]
    done = subprocess.run([*command, host.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found: dict[str, Any] = json.loads(unescape(re.findall(r'<pre id="found">(.*?)</pre>', done.stdout)[-1]))
    return found


@in_chromium
@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_shows_the_whole_page_without_scrolling_sideways(
    tmp_path: Path, make_report: Callable[..., str], width: int
):
    collections = ("scifact", "a_collection_with_an_unusually_long_name")
    write_artifacts(tmp_path, collections, ("seed_encoder", "xtr"), ("seed_encoder",), ("mined-1",))
    make_report()
    found = measure(tmp_path / "report/index.html", width, tmp_path / "profile")
    assert found["width"] == width
    assert found["page"] <= width
    assert len(found["sections"]) == 8
    assert min(found["sections"]) > 100
    assert len(found["charts"]) == 16
    assert min(found["charts"]) > 50
    assert found["outside"] == []
    assert found["broken"] == []
    assert found["cut"] == []


@in_chromium
@pytest.mark.parametrize("dark", [False, True])
def test_everything_can_be_read_in_light_and_dark(page: Path, tmp_path: Path, dark: bool):
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    found = measure(page, 1200, tmp_path / "profile", CONTRAST, scheme)
    assert (found["page"] < 0.1) == dark
    assert len(found["contrasts"]) > 12
    assert {name: ratio for name, ratio in found["contrasts"].items() if ratio < 4.5} == {}


@in_chromium
def test_batches_are_searched_and_filtered(page: Path, tmp_path: Path):
    found = measure(page, 1200, tmp_path / "profile", SEARCH)
    assert sorted(row[0] for row in found["all"]) == [f"Batch {number}" for number in range(10)]
    assert {row[2] for row in found["all"]} == set(DOMAINS)
    told, rows = found["searched"]
    assert told == "1 pair in 2 batches of 10"  # in each epoch
    assert [row[-1] for row in rows] == ["1", "1"]
    assert "Batch 3" in [row[0] for row in rows]
    assert [row[:3] for row in found["filtered"]] == [[f"Batch {number}", "1", DOMAINS[0]] for number in (5, 7, 9)]


@in_chromium
def test_an_opened_batch_says_why_documents_are_masked(page: Path, tmp_path: Path):
    found = measure(page, 390, tmp_path / "profile", OPEN)
    assert found["about"].startswith(f"{DOMAINS[1]}, epoch 0. 4 pairs, hardness .375, 25.0% of negatives masked: ")
    assert found["about"].endswith("known positive 1, duplicate 1, judged 1.")
    assert found["rows"] == 4
    assert re.match(r"query \d+ word", found["first"])
    assert [told.partition(" · their id: ")[0] for told in found["said"]] == ["", "place: 1", "place: 2", "place: 3"]
    masked, *hardest = found["told"]
    assert masked.startswith("Masked, known positive. It is paired with this query in another training pair.")
    assert "Document of row 1: document " in masked
    assert len(hardest) == 2
    assert all(told.startswith("A negative that is left, with similarity ") for told in hardest)
    assert found["described"]
    assert found["hovered"] == found["told"]
    assert (found["escaped"], found["left"], found["blurred"]) == (False, False, False)
    assert found["wide"]
    assert found["scripts"] == 0


@in_chromium
def test_the_map_of_clusters_is_walked_with_arrow_keys(page: Path, tmp_path: Path):
    found = measure(page, 390, tmp_path / "profile", OPEN)
    assert found["dots"] == 10
    assert found["moved"] > 0
    assert found["active"] == 1
    assert found["cluster"].startswith(f"Cluster 0, {DOMAINS[1]}: 3 pairs, hardness ")
    assert "query 0 word" in found["cluster"]


@in_chromium
def test_without_a_mouse_every_control_of_the_browser_can_be_reached(page: Path, tmp_path: Path):
    found = measure(page, 390, tmp_path / "profile", OPEN)
    assert len(found["reached"]) > 20
    assert set(found["reached"]) == {""}
