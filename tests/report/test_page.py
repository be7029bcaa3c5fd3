import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from formats.errors import InputError
from formats.results import write_tsv
from tests.report.artifacts import DOMAINS, PIPELINE, scores, write_artifacts, write_runs

Report = Callable[..., str]
SECTIONS = ["results", "pipeline", "counts", "clusters", "hardness", "curves"]


class Reader(HTMLParser):
    """Tags, ids and table cells of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def page_in(folder: Path) -> str:
    return (folder / "report/index.html").read_text(encoding="utf-8")


def test_the_page_has_all_sections_in_order(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    assert "best nDCG@10 on held-out queries 0.623 (biencoder, contextual batches)" in make_report()
    page = page_in(tmp_path)
    assert re.findall(r'<section id="(\w+)"', page) == SECTIONS
    assert '<html lang="en">' in page
    assert "<title>Batchwright report</title>" in page


def test_pretraining_and_rounds_are_shown_where_there_are_any(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("seed", "cde"), pretrained=("seed",), rounds=("mined-1",))
    assert "best nDCG@10 on held-out queries 0.654 (seed-mined-1 batches)" in make_report()
    page = page_in(tmp_path)
    section = page[page.index('<section id="pretraining"') :]
    captions = re.findall("<figcaption>(.*?)</figcaption>", section)
    assert captions == [
        "Loss on held-out text, nats a token",
        "h0 gap, nats a token",
        "Cosine of two random texts",
        "Cosine of CLS and decoder state",
    ]
    assert "20 steps" in page
    assert "on contextual and on random and on mined-1 batches" in page
    (tmp_path / "results/pretrain/seed-position.tsv").write_text("\n")
    make_report()
    assert "h0 gap, nats" not in page_in(tmp_path)


def test_results_of_variants_that_are_not_in_the_parameters_are_left_out(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("biencoder", "cde"))
    write_artifacts(tmp_path)
    make_report()
    assert "cde" not in page_in(tmp_path)


def test_the_same_artifacts_give_the_same_bytes_in_another_process(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    first = page_in(tmp_path)
    root = Path(__file__).parents[2]
    (tmp_path / "report/index.html").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "stages.report"], cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True
    )
    assert done.stdout.startswith(b"report: report/index.html")
    assert done.stderr == b""
    assert page_in(tmp_path) == first


@pytest.mark.parametrize("collections", [(), ("scifact",), ("scifact", "cran$field$", "<i>vaswani")])
def test_the_table_of_results_holds_every_number(tmp_path: Path, make_report: Report, collections: tuple[str, ...]):
    write_artifacts(tmp_path, collections)
    make_report()
    rows = Reader(page_in(tmp_path)).rows
    for system, ndcg in (("BM25", 0.411), ("untrained", 0.522), ("biencoder, contextual batches", 0.623)):
        expected = [
            f"{value:.3f}".lstrip("0")
            for place in range(len(collections) + 1)
            for value in scores(ndcg + place / 50).values()
        ]
        assert [system, *expected] in rows


def test_the_best_of_each_column_is_bold_and_no_other(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    table = page_in(tmp_path).split("<tbody>")[1].split("</tbody>")[0]
    *others, best = re.findall("<tr>.*</tr>", table)
    assert best.count("<strong>") == 6
    assert not any("<strong>" in row for row in others)


def test_variants_share_one_table_and_differing_systems_get_a_row_each(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, variants=("biencoder", "cde"))
    make_report()
    rows = Reader(page_in(tmp_path)).rows
    start = next(place for place, row in enumerate(rows) if row[0] == "System")
    assert [row[0] for row in rows[start + 1 : start + 8]] == [
        "BM25",
        "untrained",
        "biencoder, random batches",
        "biencoder, contextual batches",
        "untrained (cde)",
        "cde, random batches",
        "cde, contextual batches",
    ]


def test_texts_of_users_are_escaped(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("<i>scifact",))
    make_report()
    reader = Reader(page_in(tmp_path))
    assert not reader.tags.keys() & {"script", "i", "b"}
    assert [DOMAINS[1], "40", "4", "43", "39"] in reader.rows


def test_counts_are_in_the_order_of_the_sources(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    make_report()
    rows = Reader(page_in(tmp_path)).rows
    first = rows.index(["first <b>", "92", "87", "5", "query is empty 3, duplicate 2"])
    assert rows[first + 1] == ["last", "1", "1", "0", "-"]


def test_the_page_needs_nothing_else(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    page, reader = page_in(tmp_path), Reader(page_in(tmp_path))
    assert not re.search(r"https?:|src=|@import|url\((?!#)", page)
    assert not reader.tags.keys() & {"script", "link", "img", "iframe"}
    assert str(tmp_path) not in page


def test_ids_are_unique_and_every_reference_has_one(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact", "vaswani"), ("biencoder", "cde"))
    make_report()
    page = page_in(tmp_path)
    ids = Reader(page).ids
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) <= set(ids)


def test_every_chart_says_what_it_shows(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path, ("scifact",))
    make_report()
    page = page_in(tmp_path)
    labels = re.findall(r'<svg[^>]*role="img" aria-label="([^"]+)"', page)
    assert len(labels) == len(set(labels)) == page.count("<svg") == 7


def test_a_long_table_is_folded(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    file = tmp_path / "results/ingest.json"
    counts = '{"train": 1, "test": 1, "queries": 2, "documents": 2}'
    many = ", ".join(f'"domain {number}": {counts}' for number in range(13))
    file.write_text(f'{{"sources": {{}}, "domains": {{{many}}}}}')
    make_report()
    assert "<summary>Pairs of each domain (13)</summary>" in page_in(tmp_path)


@pytest.mark.parametrize(
    ("missing", "stage"),
    [
        ("results/ingest.json", "ingest"),
        ("results/cluster.json", "cluster"),
        ("results/pack/random.tsv", "pack"),
        ("results/train/biencoder-random.tsv", "train"),
        ("results/evaluate/biencoder.json", "evaluate"),
    ],
)
def test_a_missing_artifact_is_named_with_its_stage(tmp_path: Path, make_report: Report, missing: str, stage: str):
    write_artifacts(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(InputError, match=f"run the stage '{stage}' first"):
        make_report()
    assert not (tmp_path / "report").exists()


def test_a_result_of_another_form_is_refused(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    (tmp_path / "results/train/biencoder.tsv").write_text("step\tloss\taccuracy\n1\tlow\t0.5\n")
    with pytest.raises(InputError, match=r"biencoder\.tsv, at 0\.loss: .*run the stage 'train' again"):
        make_report()


@pytest.mark.parametrize("text", ["", "stages: [a]", "stages: {a: 1}", ": :"])
def test_a_broken_pipeline_is_refused(tmp_path: Path, make_report: Report, text: str):
    write_artifacts(tmp_path)
    (tmp_path / "dvc.yaml").write_text(text)
    with pytest.raises(InputError, match=r"dvc\.yaml: "):
        make_report()


def test_the_picture_is_a_file_of_its_own(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    assert make_report("--picture", "docs/results.svg") == "docs/results.svg written"
    picture = (tmp_path / "docs/results.svg").read_text(encoding="utf-8")
    assert ".623" in picture
    assert "currentColor" not in picture
    assert not (tmp_path / "report").exists()
    make_report("--picture", "docs/again.svg")
    assert (tmp_path / "docs/again.svg").read_text(encoding="utf-8") == picture


def test_the_pipeline_names_its_stages_and_their_counts(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    make_report()
    page = page_in(tmp_path)
    shown = re.findall(r"<text [^>]*>([^<]*)</text>", page.split("Stages from left")[1].split("</svg>")[0])
    assert [name for name in shown if f"\n  {name}:" in PIPELINE] == [
        "ingest",
        "embed",
        "cluster",
        "filter",
        "pack",
        "train",
        "control",
        "evaluate",
        "report",
    ]
    assert {"88 pairs", "164 texts", "10 clusters", "20 batches", "30 steps", "2,468 queries"} <= set(shown)


def test_what_is_masked_is_told_by_reason(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    make_report()
    rows = {row[0]: row[1:] for row in Reader(page_in(tmp_path)).rows if row}
    assert rows["Negatives masked"] == ["25.0%", "25.0%"]
    assert rows["… as duplicate"] == ["5.00%", "5.00%"]
    assert rows["… as score"] == ["20.00%", "20.00%"]


def test_an_experiment_shows_its_settings_and_the_spread_over_seeds(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    write_runs(tmp_path / "experiments/cde/home.tsv")
    (tmp_path / "experiments/cde/cost.tsv").write_text("kind\tseconds\nx\t1\n")
    make_report()
    page = page_in(tmp_path)
    assert re.findall(r'<section id="(\w+)"', page) == [*SECTIONS, "experiments"]
    assert "<figcaption>cde/home (domains: a b, epochs: 4)</figcaption>" in page
    assert "cost" not in page
    rows = Reader(page).rows
    first = rows.index(["model", "batches", "last loss", "nDCG@10 home"])
    assert rows[first + 1 :] == [
        ["cde", "random", "1.250 ± .354", ".500 ± .141"],
        ["cde", "<i>", ".125", "-"],
        ["biencoder", "random", ".750", ".250"],
    ]
    assert "i" not in Reader(page).tags


def test_runs_whose_measures_are_no_numbers_are_refused(tmp_path: Path, make_report: Report):
    write_artifacts(tmp_path)
    file = tmp_path / "experiments/cde/home.tsv"
    file.parent.mkdir(parents=True)
    file.write_text("model\tseed\tbatches\ncde\t0\trandom\n")
    with pytest.raises(InputError, match=r"cde/home\.tsv: .*'random'; columns behind 'seed' hold numbers"):
        make_report()
    assert not (tmp_path / "report").exists()


def test_retrieval_by_tokens_and_what_training_retrieved_are_shown_where_there_are_any(
    tmp_path: Path, make_report: Report
):
    write_artifacts(tmp_path, variants=("biencoder", "xtr"), by_tokens=("xtr",))
    make_report()
    assert "Retrieval by tokens" not in page_in(tmp_path)
    before = page_in(tmp_path).count("<svg")
    for run in ("xtr", "xtr-random"):
        rows = [{"step": step, "loss": 1, "accuracy": 0, "z": 3, "missed_positives": 0.1} for step in range(1, 5)]
        write_tsv(tmp_path / f"results/train/{run}.tsv", rows)
    retrieved = [
        {"retrieved": count, "imputation": name, "ndcg@10": 0.5, "recall@100": 0.8, "imputed": 0.4}
        for count in (10, 100)
        for name in ("last", "none")
    ]
    write_tsv(tmp_path / "results/evaluate/tokens/xtr.tsv", retrieved)
    write_tsv(tmp_path / "results/evaluate/tokens/xtr-ranks.tsv", [{"rank": 1, "lexical": 0.5, "gold": 0.2}] * 2)
    make_report()
    page = page_in(tmp_path)
    assert re.findall(r'<section id="(\w+)"', page) == [*SECTIONS, "tokens"]
    assert page.count("<svg") == before + 2 + 4
    assert "<figcaption>Missed positives</figcaption>" in page
