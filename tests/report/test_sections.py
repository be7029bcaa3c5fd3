"""What the sections other than results show."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from batchwright.core.files import write_tsv
from stages.report import charts
from stages.report.browser import section as browser
from stages.report.browser.batch import Texts
from tests.report.artifacts import DOMAINS, write_artifacts, write_examples, write_recipe
from tests.report.reader import Reader, page_in, section_of

Report = Callable[[], str]


def captions(section: str) -> list[str]:
    return re.findall("<figcaption>(.*?)</figcaption>", section)


def test_counts_are_in_the_order_of_the_sources(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    make_report()
    rows = Reader(page_in(tmp_path)).rows
    first = rows.index(["first <b>", "92", "87", "5", "query is empty 3, duplicate 2"])
    assert rows[first + 1] == ["last", "1", "1", "0", "-"]


def test_the_recipe_of_each_domain_is_shown_with_its_reason(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    make_report()
    header = ["Domain", "Epochs", "Because"]
    assert header not in Reader(page_in(tmp_path)).rows
    write_recipe(tmp_path)
    make_report()
    rows = Reader(section_of(page_in(tmp_path), "hardness")).rows
    table = rows.index(header)
    assert rows[table + 1] == [DOMAINS[0], "random, hard", "90 batches an epoch"]
    assert rows[table + 2] == ["Domain", "Limit", "No limit found because"]
    assert rows[table + 3 : table + 5] == [[DOMAINS[1], "-", "2% can be exchanged"], [DOMAINS[0], "0.85", ""]]
    assert rows[table + 5][0] == "Batches"  # the next table


def test_epochs_of_both_policies_are_measured_apart(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    make_report()
    rows = Reader(section_of(page_in(tmp_path), "hardness")).rows
    assert rows[:5] == [
        ["Epoch", "Batches", "Hardness", "Masked"],
        ["contextual, epoch 0", "5", ".250", "12.5%"],
        ["contextual, epoch 1", "5", ".300", "12.5%"],
        ["random, epoch 0", "5", ".100", "5.0%"],
        ["random, epoch 1", "5", ".150", "5.0%"],
    ]
    assert [f"{DOMAINS[0]}, epoch 0", "3", ".250", "12.5%", "3", ".100", "5.0%"] in rows


def test_masked_shares_are_shown_by_reason(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    make_report()
    rows = Reader(section_of(page_in(tmp_path), "hardness")).rows
    assert ["Batches", "duplicate", "score", "Pairs left over"] in rows
    assert ["contextual", "5.00%", "20.00%", "7"] in rows


def test_a_variants_curves_are_one_line_per_run_in_the_colour_of_its_batches(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("seed", "cde"), mined=("mined-1",))
    make_report()
    section = section_of(page_in(tmp_path), "curves")
    assert re.findall("<h3>(.*?)</h3>", section) == ["seed", "cde"]
    assert captions(section) == ["Loss", "Accuracy"] * 2
    seed, _, cde, _ = section.split("<svg")[1:]
    runs = {"seed": "contextual", "seed-random": "random", "seed-mined-1": "mined-1"}
    assert 'aria-label="Curves of loss in the training of seed: seed and seed-random and seed-mined-1."' in seed
    assert [text for text in re.findall(r">([^<>]+)</text>", seed) if text in runs] == list(runs)
    assert "seed" not in cde
    colours = dict.fromkeys(re.findall(r"stroke: (#\w{6}); stroke-width: 2", seed))
    assert list(colours) == [charts.colour(batches) for batches in runs.values()]


def test_runs_on_the_same_batches_differ_in_their_dashes(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    params = yaml.safe_load((tmp_path / "params.yaml").read_text())
    params["runs"]["biencoder-random"]["batches"] = "contextual"
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    make_report()
    loss = section_of(page_in(tmp_path), "curves").split("<svg")[1]
    styles = re.findall(r'style="([^"]*stroke: #\w{6}; stroke-width: 2[^"]*)"', loss)
    assert len(set(styles)) == 2


def test_pretraining_is_shown_with_the_decoders_charts_if_there_was_a_decoder(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("seed", "cde"), pretrained=("seed",))
    make_report()
    section = section_of(page_in(tmp_path), "pretraining")
    of_decoder = ["h0 gap, nats per token", "Cosine of CLS and decoder state"]
    assert captions(section) == [
        "Loss on held-out text, nats per token",
        of_decoder[0],
        "Cosine of two random texts",
        of_decoder[1],
    ]
    (tmp_path / "results/pretrain/seed-position.tsv").write_text("\n")
    make_report()
    others = captions(section_of(page_in(tmp_path), "pretraining"))
    assert others == [caption for caption in captions(section) if caption not in of_decoder]


def test_a_measure_is_shown_if_all_runs_of_a_variant_have_it(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("biencoder", "xtr"))
    rows = [{"step": step, "loss": 1, "accuracy": 0, "z": 3, "missed_positives": 0.1} for step in range(1, 5)]
    common = ["Loss", "Accuracy"]
    for run, expected in (("xtr", common), ("xtr-random", [*common, "Z", "Missed positives"])):
        write_tsv(tmp_path / f"results/train/{run}.tsv", rows)
        make_report()
        assert captions(section_of(page_in(tmp_path), "curves")) == common + expected


def test_queries_are_shown_before_and_after_training(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    write_examples(tmp_path / "results/evaluate/biencoder-examples.tsv", {"biencoder": 57})
    make_report()
    section = section_of(page_in(tmp_path), "examples")
    assert section.count("first answer at rank 2 → 57") == 2
    assert "<strong>&lt;i&gt;why&lt;/i&gt; &amp; when?</strong>" in section
    assert "&lt;b&gt;biencoder&lt;/b&gt; 3" in section
    assert "&lt;b&gt;biencoder&lt;/b&gt; 57" not in section  # only its rank is told
    assert section.count("<details open>") == 1
    assert section.count('<details class="example" open>') == 2


@pytest.mark.parametrize(
    ("most_bytes", "batches", "told"),
    [
        (None, None, "read it. Texts are cut at 400 characters."),
        (1.0, None, "read it. Texts are cut at 400 characters."),
        (0.9, None, "read it. Texts are cut at 200 characters."),
        (0.01, None, "Of 10 batches, the page has 1, evenly spaced. Texts are cut at 400 characters."),
        (None, 5, "Of 10 batches, the page has 5, evenly spaced. Texts are cut at 400 characters."),
    ],
)
def test_the_page_carries_what_fits_and_tells_what_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: float | None, batches: int | None, told: str
):
    write_artifacts(tmp_path)
    monkeypatch.chdir(tmp_path)
    noise = random.Random(0).randbytes(40_000).hex()  # what no packing makes smaller than half
    monkeypatch.setattr(Texts, "cut", lambda _, length: {"texts": [noise[: length * 100]], "query": [], "document": []})
    _, data, length = browser._fit()
    assert length == 400
    if most_bytes:
        monkeypatch.setattr(browser, "MOST_BYTES", sum(map(len, data.values())) * most_bytes)
    if batches:
        monkeypatch.setattr(browser, "MOST_BATCHES", batches)
    assert told in browser.section().intro


def test_one_domain_has_no_tables_by_domain(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    for file in tmp_path.glob("results/**/*.tsv"):
        file.write_text(file.read_text().replace(DOMAINS[1], DOMAINS[0]))
    make_report()
    for section in ("hardness", "results"):
        assert Reader(section_of(page_in(tmp_path), section)).rows
        assert not [name for name in captions(section_of(page_in(tmp_path), section)) if "by domain" in name]
