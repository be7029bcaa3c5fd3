"""Curves of trainings while they run."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from batchwright.core.files import append_tsv, read_tsv, write_json
from tests.report.artifacts import write_artifacts, write_dev_curve
from tests.report.reader import section_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def live(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """One run is trained, one is in training, two have not begun, and the stages after training have no results."""
    write_artifacts(tmp_path, variants=("biencoder", "cde"))
    for gone in ("results/train/cde.tsv", "results/train/cde-dev.tsv", "results/train/cde-random.tsv"):
        (tmp_path / gone).unlink()
    (tmp_path / "results/compare.tsv").unlink()
    write_json(tmp_path / "results/train/biencoder-random.json", {})
    command = [sys.executable, "-m", "stages.report.live"]
    env = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=-1, stderr=-1, text=True)
    yield process
    process.kill()
    process.communicate()


def read_page(folder: Path, word: str) -> str:
    """Wait until the page has the word."""
    end = time.monotonic() + 120
    page = folder / "report/live.html"
    while time.monotonic() < end:
        if page.exists() and word in (text := page.read_text()):
            return text
        time.sleep(0.2)
    raise AssertionError(f"no {word!r} in {page}")


def test_the_page_grows_with_the_curves_until_it_is_interrupted(tmp_path: Path, live: "subprocess.Popen[str]"):
    page = read_page(tmp_path, "In training: biencoder, step 30. No curve yet: cde, cde-random.")
    assert re.findall(r'<section id="(\w+)"', page) == ["curves"]
    assert "cde" not in section_of(page, "curves")
    assert '<meta http-equiv="refresh" content="5">' in page
    assert "<script" not in page

    curve = tmp_path / "results/train/biencoder.tsv"
    append_tsv(curve, {**read_tsv(curve, made_by="train")[-1], "step": 31})
    write_dev_curve(tmp_path, "biencoder", [0.25, 0.5])
    page = read_page(tmp_path, "In training: biencoder, step 31.")
    assert "Quality by step, biencoder" in section_of(page, "quality")

    live.send_signal(signal.SIGINT)
    out, error = live.communicate(timeout=60)
    assert out.startswith("live: open report/live.html")
    assert (live.returncode, error.count("\n")) == (130, 1)
