import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from tests.report.artifacts import write_artifacts, write_tokens

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
<script>
const box = element => element.getBoundingClientRect();
const outside = text => {
  const inner = box(text), outer = box(text.ownerSVGElement);
  return inner.left < outer.left - 1 || inner.right > outer.right + 1;
};
const found = {
  width: innerWidth,
  page: document.documentElement.scrollWidth,
  sections: [...document.querySelectorAll("section")].map(section => box(section).height),
  charts: [...document.querySelectorAll("svg")].map(chart => box(chart).height),
  outside: [...document.querySelectorAll("svg text")].filter(outside).map(text => text.textContent),
};
const result = Object.assign(document.createElement("pre"), {id: "found", textContent: JSON.stringify(found)});
parent.document.body.append(result);
</script>
"""


def measure(page: Path, width: int, profile: Path) -> dict[str, Any]:
    """Measure the page in a frame of ``width``, because a browser's own windows are at least 500 wide."""
    content = escape(page.read_text(encoding="utf-8").replace("</body>", MEASURE + "</body>"))
    host = page.with_name("host.html")
    frame = f'<iframe width="{width}" height="900" style="border: 0" srcdoc="{content}"></iframe>'
    host.write_text(f'<!doctype html><meta charset="utf-8"><body>{frame}</body>', encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "--window-size=1400,1000", "--dump-dom"]
    done = subprocess.run([*command, host.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found: dict[str, Any] = json.loads(unescape(re.findall(r'<pre id="found">(.*?)</pre>', done.stdout)[-1]))
    return found


@pytest.mark.skipif(CHROMIUM is None, reason="no 'chromium' on PATH")
@pytest.mark.parametrize("width", [400, 1200])
def test_a_browser_shows_the_whole_page_without_scrolling_sideways(
    tmp_path: Path, make_report: Callable[..., str], width: int
):
    collections = ("scifact", "a_collection_with_an_unusually_long_name")
    write_artifacts(tmp_path, collections, ("seed_encoder", "xtr"), ("seed_encoder",), ("mined-1",), ("xtr",))
    write_tokens(tmp_path, "xtr")
    make_report()
    found = measure(tmp_path / "report/index.html", width, tmp_path / "profile")
    assert found["width"] == width
    assert found["page"] <= width
    assert len(found["sections"]) == 8
    assert min(found["sections"]) > 100
    assert len(found["charts"]) == 18
    assert min(found["charts"]) > 50
    assert found["outside"] == []
