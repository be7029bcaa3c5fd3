"""README's picture."""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from docs import picture
from docs.tables import ROOT


@pytest.fixture
def svg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / picture.CURVES).parent.mkdir(parents=True)
    shutil.copy(ROOT / picture.CURVES, tmp_path / picture.CURVES)
    monkeypatch.chdir(tmp_path)
    assert picture.main() == "docs/results.svg written"
    return picture.PICTURE.read_text(encoding="utf-8")


def test_the_committed_picture_is_the_one_that_is_drawn(svg: str) -> None:
    assert (ROOT / picture.PICTURE).read_text(encoding="utf-8") == svg, "run python -m docs.picture"


def test_the_picture_is_a_file_of_its_own_and_names_what_it_shows(svg: str) -> None:
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "currentColor" not in svg
    texts = set(re.findall(r">([^<>]+)</text>", svg))
    assert {"Batchwright's batches and loss", "random batches", "training step"} <= texts
