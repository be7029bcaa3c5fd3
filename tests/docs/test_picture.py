"""README's picture, and the table of schedules in docs."""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from docs import picture
from docs.schedule import schedule_table
from docs.tables import ROOT


@pytest.fixture
def svg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    shutil.copytree(ROOT / "results/train", tmp_path / "results/train")
    monkeypatch.chdir(tmp_path)
    assert picture.main() == "docs/results.svg written"
    return picture.PICTURE.read_text(encoding="utf-8")


def test_the_committed_picture_is_the_one_that_is_drawn(svg: str) -> None:
    assert (ROOT / picture.PICTURE).read_text(encoding="utf-8") == svg, "run python -m docs.picture"


def test_the_picture_is_a_file_of_its_own_and_names_what_it_shows(svg: str) -> None:
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "currentColor" not in svg
    texts = set(re.findall(r">([^<>]+)</text>", svg))
    assert {"Batchwright's batches", "random batches", "training step"} <= texts


def test_differences_are_paired_by_seed(tmp_path: Path) -> None:
    rows = ["domains\tsetting\tepochs\tseed\tndcg@10 home"]
    rows += [f"medquad\trandom\t4\t{seed}\t{value}" for seed, value in ((1, ".5"), (0, ".1"))]
    rows += [f"medquad\trandom, then contextual\t4\t{seed}\t{value}" for seed, value in ((0, ".3"), (1, ".5"))]
    (tmp_path / "quality.tsv").write_text("\n".join([*rows, "squad\trandom\t8\t0\t.9"]) + "\n")
    _, row = schedule_table([tmp_path / "quality.tsv"])
    assert row == ["4", ".300", ".400", "+.100 ± .100"]


def test_a_loss_is_shown_as_a_loss(tmp_path: Path) -> None:
    rows = ["domains\tsetting\tepochs\tseed\tndcg@10 home"]
    rows += [f"medquad\trandom\t4\t{seed}\t.5" for seed in (0, 1)]
    rows += [f"medquad\trandom, then contextual\t4\t{seed}\t.25" for seed in (0, 1)]
    (tmp_path / "quality.tsv").write_text("\n".join(rows) + "\n")
    assert schedule_table([tmp_path / "quality.tsv"])[1][-1] == "-.250 ± .000"
