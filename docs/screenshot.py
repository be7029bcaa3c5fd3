"""Takes the picture of docs/results.md: ``python -m docs.screenshot``, after ``dvc repro``; needs Chromium."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from batchwright.core.command import command
from batchwright.core.errors import InputError
from batchwright.core.paths import REPORT

PICTURE = Path(__file__).with_name("report.png")
WIDTH, HEIGHT = 1100, 1000
BATCH = "#batch-400"
"""The address of the batch that is open."""
FRAME = '<body style="margin: 0"><iframe src="{page}" width="{width}" height="{height}" style="border: 0"></iframe>'
"""Chromium takes the picture of a page's top, but of a frame as it has been scrolled."""


def main() -> str:
    """Take the picture of an opened batch, in the dark."""
    chromium = shutil.which("chromium")
    if not chromium or not REPORT.exists():
        raise InputError(f"needs 'chromium' on PATH and {REPORT}; install the one, run dvc repro for the other")
    with tempfile.TemporaryDirectory() as folder:
        frame = Path(folder, "frame.html")
        page = REPORT.resolve().as_uri() + BATCH
        frame.write_text(FRAME.format(page=page, width=WIDTH, height=HEIGHT))
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        options += [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}"]
        options += ["--blink-settings=preferredColorScheme=0", "--virtual-time-budget=20000"]
        line = [chromium, *options, f"--screenshot={PICTURE}", frame.as_uri()]
        subprocess.run(line, check=True, capture_output=True)
    return f"{PICTURE.name} written"


if __name__ == "__main__":
    command(
        "docs.screenshot",
        "Takes the picture of docs/results.md from report/index.html, in Chromium.",
        "python -m docs.screenshot",
    )
