import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from batchwright.core.errors import InputError
from stages.report.stage import SECTIONS
from tests.report.artifacts import DOMAINS, write_artifacts, write_dev_curve
from tests.report.reader import Reader, page_in, section_of

Report = Callable[[], str]
ALWAYS = ["outcome", "batches", "hardness", "examples", "results", "counts", "curves"]
SCRIPTS = 5
"""Four with data, and one that shows it."""


def test_the_page_has_all_sections_with_content_in_order(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    assert "best nDCG@10 on held-out queries 0.623 (biencoder)" in make_report()
    page = page_in(tmp_path)
    assert re.findall(r'<section id="(\w+)"', page) == ALWAYS
    assert '<html lang="en">' in page
    assert "<title>Batchwright report</title>" in page
    write_artifacts(tmp_path, variants=("seed", "xtr"), pretrained=("seed",))
    write_dev_curve(tmp_path, "seed", [0.25, 0.5])
    make_report()
    expected = [*ALWAYS, "pretraining"]
    assert re.findall(r'<section id="(\w+)"', page_in(tmp_path)) == expected
    assert len(SECTIONS) == len(expected)


def test_the_page_starts_with_a_summary(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    make_report()
    summary = page_in(tmp_path).split('<p class="summary">')[1].split("</p>")[0]
    pairs, ndcg = summary.split("; ")
    assert pairs == "88 pairs in 2 domains, 10 contextual batches"
    assert ndcg == "best nDCG@10 on held-out queries <strong>.623</strong> (biencoder)."


def test_runs_that_are_not_in_the_parameters_are_left_out(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("biencoder", "cde"))
    write_artifacts(tmp_path)
    make_report()
    assert "cde" not in page_in(tmp_path)


def test_the_same_results_give_the_same_bytes_at_another_time_and_place(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",), ("biencoder", "cde"), ("cde",), mined=("mined-1",))
    make_report()
    first = page_in(tmp_path)
    make_report()
    assert page_in(tmp_path) == first
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(tmp_path, elsewhere, ignore=shutil.ignore_patterns("elsewhere", "report"))
    changes = {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1", "TZ": "Asia/Kathmandu"}
    done = subprocess.run(
        [sys.executable, "-m", "stages", "report"],
        cwd=elsewhere,
        env=os.environ | changes | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
    )
    assert done.stdout.startswith(b"report: report/index.html")
    assert done.stderr == b""
    assert page_in(elsewhere) == first


def test_user_text_is_escaped(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("<i>scifact",), ("biencoder", "cde"), ("cde",), ("mined",))
    make_report()
    reader = Reader(page_in(tmp_path))
    assert not reader.tags.keys() & {"i", "b"}
    assert reader.tags["script"] == SCRIPTS
    assert [DOMAINS[1], "40", "0", "4", "43", "39"] in reader.rows


def test_the_page_is_self_contained(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    page, reader = page_in(tmp_path), Reader(page_in(tmp_path))
    assert not re.search(r"https?:|src=|@import|url\((?!#)", page)
    assert not reader.tags.keys() & {"link", "img", "iframe"}
    assert str(tmp_path) not in page


def test_ids_are_unique_and_every_reference_resolves(tmp_path: Path, make_report: Report):
    variants = ("biencoder", "cde", "seed")
    write_artifacts(tmp_path, ("scifact", "vaswani"), variants, variants[1:], ("mined-1", "mined-2"))
    make_report()
    page = page_in(tmp_path)
    ids = Reader(page).ids
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) <= set(ids)


def test_every_chart_has_its_own_description(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",), ("seed", "cde"), ("seed", "cde"))
    make_report()
    page = page_in(tmp_path)
    labels = re.findall(r'<svg[^>]*role="img" aria-label="([^"]+)"', page)
    expected = {"outcome": 3, "results": 2, "hardness": 1, "curves": 4, "pretraining": 8}
    assert {name: section_of(page, name).count("<svg") for name in expected} == expected
    assert len(labels) == len(set(labels)) == page.count("<svg") - 1 == sum(expected.values())


def test_a_long_table_is_folded(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    file = tmp_path / "results/ingest.json"
    ingested = json.loads(file.read_text())
    ingested["domains"] |= {f"domain {number}": ingested["domains"][DOMAINS[0]] for number in range(11)}
    file.write_text(json.dumps(ingested))
    make_report()
    assert "<summary>Pairs of each domain (13)</summary>" in page_in(tmp_path)


@pytest.mark.parametrize(
    ("missing", "stage"),
    [
        ("results/ingest.json", "ingest"),
        ("results/cluster.json", "cluster"),
        ("results/pack/random.json", "pack"),
        ("data/shards/contextual/manifest.json", "pack"),
        ("data/vectors/small/encoder.json", "embed"),
        ("data/clusters/provenance.json", "cluster"),
        ("results/baselines-examples.tsv", "baselines"),
        ("results/evaluate/biencoder-examples.tsv", "evaluate"),
        ("results/pack/random.tsv", "pack"),
        ("results/pretrain/biencoder-length.tsv", "pretrain"),
        ("results/train/biencoder-random.tsv", "train"),
        ("results/baselines.json", "baselines"),
        ("results/baselines.tsv", "baselines"),
        ("results/evaluate/biencoder.json", "evaluate"),
        ("results/evaluate/biencoder.tsv", "evaluate"),
    ],
)
def test_a_missing_artifact_is_named_with_its_stage(tmp_path: Path, make_report: Report, missing: str, stage: str):
    write_artifacts(tmp_path, pretrained=("biencoder",))
    (tmp_path / missing).unlink()
    with pytest.raises(InputError, match=f"run the stage '{stage}' first"):
        make_report()
    assert not (tmp_path / "report").exists()


def test_a_malformed_result_is_refused(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    (tmp_path / "results/train/biencoder.tsv").write_text("step\tloss\taccuracy\n1\tlow\t0.5\n")
    with pytest.raises(InputError, match=r"biencoder\.tsv, at 0\.loss: .*run the stage 'train' again"):
        make_report()
