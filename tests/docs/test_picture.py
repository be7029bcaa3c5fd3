"""README's picture shows what the report shows."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from docs import picture
from tests.report.artifacts import BASELINES, write_artifacts


def draw(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    assert picture.main() == "docs/results.svg written"
    return (folder / "docs/results.svg").read_text(encoding="utf-8")


def test_the_picture_is_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_artifacts(tmp_path)
    svg = draw(tmp_path, monkeypatch)
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "currentColor" not in svg
    assert not (tmp_path / "report").exists()
    assert draw(tmp_path, monkeypatch) == svg


def test_the_picture_shows_every_system_and_kind_of_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_artifacts(tmp_path, variants=("seed", "cde"), mined=("mined-1",))
    texts = re.findall(r">([^<>]+)</text>", draw(tmp_path, monkeypatch))
    systems = [*BASELINES, "seed", "seed-random", "cde", "cde-random", "seed-mined-1"]
    assert [text for text in texts if text in systems] == systems
    assert [text for text in texts if re.fullmatch(r"\.\d{3}", text)] == [
        ".411", ".522", ".623", ".587", ".633", ".597", ".654",
    ]  # fmt: skip
    assert {"contextual", "random", "hardness of a batch"} <= set(texts)
