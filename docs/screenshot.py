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


def main() -> str:
    """Take the picture of an opened batch, in the dark."""
    chromium = shutil.which("chromium")
    if not chromium or not REPORT.exists():
        raise InputError(f"needs 'chromium' on PATH and {REPORT}; install the one, run dvc repro for the other")
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        options += [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}"]
        options += ["--blink-settings=preferredColorScheme=0", "--virtual-time-budget=20000"]
        page = REPORT.resolve().as_uri() + BATCH
        subprocess.run([chromium, *options, f"--screenshot={PICTURE}", page], check=True, capture_output=True)
    return f"{PICTURE.name} written"


if __name__ == "__main__":
    command(
        "docs.screenshot",
        "Takes the picture of docs/results.md from report/index.html, in Chromium.",
        "python -m docs.screenshot",
    )
