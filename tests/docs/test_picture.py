"""The pictures of README and of why."""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from docs import picture
from docs.tables import ROOT


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file, (rows, _) in picture.PICTURES.items():
        for folder in (file.parent, rows.parent):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / rows, tmp_path / rows)
    monkeypatch.chdir(tmp_path)
    assert picture.main() == "docs/results.svg, experiments/rivals/lessons.svg written"
    return tmp_path


def test_the_committed_pictures_are_those_that_are_drawn(drawn: Path) -> None:
    for file in picture.PICTURES:
        assert (ROOT / file).read_bytes() == (drawn / file).read_bytes(), "run python -m docs.picture"


def test_pictures_are_files_of_their_own_and_name_what_they_show(drawn: Path) -> None:
    shown = {
        "docs/results.svg": {"Batchwright's batches and loss", "nDCG@10 over tuned random batches", "medquad", "squad"},
        "experiments/rivals/lessons.svg": {"InfoNCE, nl2bash", "Batchwright's loss, medquad", "size of the lesson"},
    }
    for name, texts in shown.items():
        svg = (drawn / name).read_text(encoding="utf-8")
        assert ET.fromstring(svg).tag.endswith("svg")
        assert "currentColor" not in svg
        assert texts <= set(re.findall(r">([^<>]+)</text>", svg))
