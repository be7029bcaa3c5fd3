"""Takes the pictures of docs/results.md: ``python -m docs.screenshots``, after ``dvc repro``; needs Chromium.

The first page and an opened batch, on a desktop and on a phone, in light and in dark.
"""

import shutil
import subprocess
import tempfile
from html import escape
from pathlib import Path
from typing import NamedTuple

from batchwright.core.command import command
from batchwright.core.errors import InputError
from batchwright.core.paths import REPORT

FOLDER = Path(__file__).parent


class View(NamedTuple):
    """Width and height in pixels, whether it is dark, and the address of the section or batch that is shown."""

    width: int
    height: int
    dark: bool
    address: str


VIEWS = {
    "report": View(1100, 1000, dark=False, address=""),
    "report_dark": View(1100, 1000, dark=True, address="#batch-400"),
    "report_phone": View(390, 800, dark=True, address="#batch-400"),
    "report_phone_light": View(390, 800, dark=False, address="#results"),
}


def main() -> str:
    """Write all pictures into ``docs``."""
    chromium = shutil.which("chromium")
    if not chromium or not REPORT.exists():
        raise InputError(f"needs 'chromium' on PATH and {REPORT}; install the one, run dvc repro for the other")
    for name, view in VIEWS.items():
        take(chromium, REPORT.read_text(encoding="utf-8"), view, FOLDER / f"{name}.png")
    return f"{len(VIEWS)} pictures"


def take(chromium: str, page: str, view: View, output: Path) -> None:
    """Take one picture. The page is in a frame, because a browser's own windows are at least 500 pixels wide."""
    act = f'<script type="module">location.hash = "{view.address}";</script>'
    content = escape(page.replace("</body>", f"{act}</body>"))
    frame = f'<iframe width="{view.width}" height="{view.height}" style="border: 0" srcdoc="{content}"></iframe>'
    with tempfile.TemporaryDirectory() as folder:
        host = Path(folder, "host.html")
        host.write_text(f'<!doctype html><meta charset="utf-8"><body style="margin: 0">{frame}', encoding="utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        command += [f"--user-data-dir={folder}/profile", f"--window-size={view.width},{view.height}"]
        command += [f"--blink-settings=preferredColorScheme={0 if view.dark else 1}", "--virtual-time-budget=20000"]
        subprocess.run([*command, f"--screenshot={output}", host.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    command(
        "docs.screenshots",
        "Takes the pictures of docs/results.md from report/index.html, in Chromium.",
        "python -m docs.screenshots",
    )
