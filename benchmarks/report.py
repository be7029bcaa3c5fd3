"""How large the report's batch browser is with many batches, and how fast it is in headless Chromium.

``python -m benchmarks.report [--batches 2000] [--size 128] [--keep FILE]``

Times are of one browser on this machine: until the list of batches is there, from batch to batch, and of a search.
"""

import json
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import chdir
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from batchwright.core.command import new_parser
from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.formats.clusters import Clusters
from benchmarks.planted_batches import WIDTH, plant_batches
from stages.report.page import render
from stages.report.sections.batches import section

DOMAINS = ("first", "second")
CLUSTERS = 200
BARS = {"megabytes": 15.0, "open, seconds": 2.0, "batch, seconds": 0.1}
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
MEASURE = """
<script type="module">
const until = async test => { while (!test()) await new Promise(done => setTimeout(done)); };
const timed = async (act, test) => {
  const start = performance.now();
  act();
  await until(test);
  document.body.getBoundingClientRect();
  return (performance.now() - start) / 1000;
};
const rows = () => document.querySelectorAll("#list tbody tr").length;
const heading = () => document.querySelector("#batch h3")?.textContent;
const hash = name => "#" + name.toLowerCase().replace(" ", "-");
const open = name => timed(() => { location.hash = hash(name); }, () => heading() === name);
await until(rows);
const found = { open: performance.now() / 1000, batches: [] };
const names = [...document.querySelectorAll("#list a")].map(link => link.textContent);
found.first = await open(names[0]);
for (const name of names.slice(1)) found.batches.push(await open(name));
const words = document.getElementById("words");
const told = document.getElementById("found");
const search = text => timed(() => { words.value = text; words.dispatchEvent(new Event("input")); },
  () => / in /.test(told.textContent) && words.dataset.last !== told.textContent);
found.search = await search("word17");
words.dataset.last = told.textContent;
found.next_search = await search("word17 word3");
await fetch("/found", { method: "POST", body: JSON.stringify(found) });
</script>
"""


def main() -> None:
    """Make the page, measure it and print what was found, beside the bars."""
    parser = new_parser("benchmarks.report", str(__doc__), "python -m benchmarks.report --batches 2000")
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--keep", type=Path, help="write the page to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        page = make_page(Path(folder), arguments.batches, arguments.size)
        print(f"made in {time.perf_counter() - start:.0f} s, with its data")
        if arguments.keep:
            arguments.keep.write_text(page, encoding="utf-8")
        found = measure(page, Path(folder) / "profile")
    measured = {
        "megabytes": len(page.encode()) / 1e6,
        "open, seconds": found["open"],
        "batch, seconds": statistics.median(found["batches"]),
    }
    for name, value in measured.items():
        print(f"{name}: {value:.3f} ({'within' if value <= BARS[name] else 'MISSES'} the bar of {BARS[name]})")
    print(f"first batch, with unpacking: {found['first']:.3f} s; slowest of the others: {max(found['batches']):.3f} s")
    print(f"first search: {found['search']:.3f} s; next search: {found['next_search']:.3f} s, of which .15 s waiting")


def make_page(folder: Path, batches: int, size: int) -> str:
    """Plant so many batches, in two epochs, and return a page with the section on batches."""
    plant_batches(folder / "data", DOMAINS, batches // 2, size=size, clusters=CLUSTERS)
    pairs = -(-batches // 2 // len(DOMAINS)) * size
    centroids = np.random.default_rng(0).normal(size=(CLUSTERS, 2, WIDTH)).astype(np.float32)
    for name in DOMAINS:
        assignment = (np.arange(pairs) % CLUSTERS).astype(np.int32)
        Clusters(assignment=assignment, centroids=centroids).write(folder / "data/clusters", name, 0)
    counts = {"train": pairs, "test": 0, "queries": pairs, "documents": pairs}
    write_json(folder / "results/ingest.json", {"sources": {}, "domains": dict.fromkeys(DOMAINS, counts)})
    write_json(folder / "results/cluster.json", {name: {"clusters": CLUSTERS} for name in DOMAINS})
    with chdir(folder):
        return render(Markup("Generated batches."), [section()])


def measure(page: str, profile: Path) -> dict[str, Any]:
    """Return what a browser measures in the page.

    Raises:
        InputError: there is no Chromium, or it took more than two minutes.
    """
    if not (browser := shutil.which("chromium")):
        raise InputError("no 'chromium' on PATH; install it")
    found: dict[str, Any] = {}
    done = threading.Event()
    content = page.replace("</body>", MEASURE + "</body>").encode()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, content, found, done))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    command = [browser, *FLAGS, f"--user-data-dir={profile}", url]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        finished = done.wait(120)
        process.terminate()
    server.shutdown()
    if not finished:
        raise InputError("the browser took more than two minutes; is the machine busy?")
    return found


class _Handler(BaseHTTPRequestHandler):
    """Serves one page, and takes what it found."""

    def __init__(self, page: bytes, found: dict[str, Any], done: threading.Event, *given: Any) -> None:
        self._page, self._found, self._done = page, found, done
        super().__init__(*given)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self._page if self.path == "/" else b"")

    def do_POST(self) -> None:
        self._found.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()
        self._done.set()

    def log_message(self, format: str, *given: Any) -> None:
        """Say nothing."""


if __name__ == "__main__":
    main()
