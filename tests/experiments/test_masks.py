"""Rules for false negatives are checked: cells, rules and figures against plain loops, and the verdicts' table."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from batchwright.core.files import read_tsv
from batchwright.core.fingerprint import content_id
from batchwright.formats.vectors import PairVectors
from experiments.masks import cells as cells_module
from experiments.masks.cells import Cells, Surrogate, View
from experiments.masks.measure import HARDEST, RULES, STRATA, Verdict, measure, over_half, read_verdicts
from experiments.masks.sets import Labelled, PairSet, find_sets
from tests.helpers import run_python, topic_pairs

COUNT, DEPTH = 30, 7


@pytest.fixture
def surrogate(monkeypatch: pytest.MonkeyPatch) -> Surrogate:
    """Pairs on five topics; documents 0 and 1 are duplicates."""
    monkeypatch.setattr(cells_module, "DEPTH", DEPTH)
    monkeypatch.setattr(cells_module, "BEYOND", DEPTH + 1)
    generator = np.random.default_rng(0)
    topic = generator.normal(size=(5, 16))[np.arange(COUNT) % 5]
    points = np.concatenate([topic, topic]) + 0.8 * generator.normal(size=(2 * COUNT, 16))
    unit = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float16)
    unit[COUNT + 1] = unit[COUNT]
    classes = np.arange(COUNT, dtype=np.int32)
    return Surrogate(
        View(
            vectors=PairVectors(vectors=unit, rows=np.arange(2 * COUNT).reshape(2, -1)),
            query_class=classes,
            document_class=np.maximum(classes, 1),
            queries=[f"asks {number}" for number in range(COUNT)],
            documents=[f"answers {number}" for number in range(COUNT)],
        )
    )


def sides(surrogate: Surrogate) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return surrogate.vectors.queries(slice(None)), surrogate.vectors.documents(slice(None))


def ranked(surrogate: Surrogate, row: int) -> list[int]:
    """The documents of other classes than the query's own, best first."""
    queries, documents = sides(surrogate)
    others = [other for other in range(COUNT) if max(other, 1) != max(row, 1)]
    return sorted(others, key=lambda other: -float(queries[row] @ documents[other]))


def test_cells_are_those_of_plain_loops(surrogate: Surrogate) -> None:
    queries, documents = sides(surrogate)
    best = surrogate.best_cells()
    assert list(zip(best.row, best.other, strict=True)) == [
        (row, other) for row in range(COUNT) for other in ranked(surrogate, row)[:DEPTH]
    ]
    for place, (i, j) in enumerate(zip(best.row, best.other, strict=True)):
        q, d, other_q, other_d = queries[i], documents[i], queries[j], documents[j]
        first, second = q + d, other_q + other_d
        expected = {
            "score": q @ other_d, "back": other_q @ d, "own": q @ d, "other_own": other_q @ other_d,
            "queries": q @ other_q, "documents": d @ other_d,
            "likeness": first @ second / np.linalg.norm(first) / np.linalg.norm(second),
            "rank": ranked(surrogate, i).index(j) + 1,
            "back_rank": min(ranked(surrogate, j).index(i), DEPTH) + 1,
        }  # fmt: skip
        assert {name: getattr(best, name)[place] for name in expected} == pytest.approx(expected, abs=1e-3)


def test_rules_are_those_of_one_cell_at_a_time() -> None:
    generator = np.random.default_rng(1)
    names = ("score", "back", "own", "other_own", "queries", "documents", "likeness")
    values = {name: generator.uniform(0.4, 1, 500).astype(np.float32) for name in names}
    ranks = {name: generator.integers(1, 65, 500) for name in ("row", "other", "rank", "back_rank")}
    of = Cells(**values, **ranks, typical=0.7, limit=0.6)  # type: ignore[arg-type]

    def one(place: int) -> dict[str, bool]:
        score, own, likeness = of.score[place], of.own[place], of.likeness[place]
        near = max(of.queries[place], of.documents[place])
        margin, alike = score >= own - np.float32(0.05), likeness >= 0.6
        return {
            "own - .05": margin,
            "own + .1": score - own >= 0.1,
            "own - .05, and the median own score": margin and score >= 0.7,
            "own - .05, and d' near d or q' near q: .7": margin and near >= 0.7,
            "own - .05, and d' near d or q' near q: .8": margin and near >= 0.8,
            "d' near d: .9": of.documents[place] >= 0.9,
            "likeness .75": likeness >= 0.75,
            "likeness .8": likeness >= 0.8,
            "likeness .85": likeness >= 0.85,
            "auto": alike,
            "auto, and own - .05": alike and margin,
            "auto, at most half of a row": alike and of.rank[place] <= 31,
            "auto, both in the other's first half": alike and of.rank[place] <= 31 and of.back_rank[place] <= 31,
        }

    expected = [one(place) for place in range(500)]
    assert RULES.keys() == expected[0].keys()
    for name, rule in RULES.items():
        assert rule(of).tolist() == [cell[name] for cell in expected], name
        assert 0 < rule(of).sum() < 500, name


def labelled(count: int) -> PairSet:
    """Pairs whose queries ask for one of three things."""
    pairs = [Labelled(f"q{row}", f"d{row}", str(row % 3), str(row % 3)) for row in range(count)]
    true = frozenset((str(label), str(label)) for label in range(3))
    return PairSet(name="birds", ids=[f"{row:032}" for row in range(count)], pairs=pairs, true=true)


def test_figures_are_those_of_plain_counts(surrogate: Surrogate) -> None:
    pairs, best = labelled(COUNT), surrogate.best_cells()
    rows = {row["rule"]: row for row in measure(pairs, surrogate, [])}
    for name, rule in RULES.items():
        masked = [cell for cell, hit in zip(zip(best.row, best.other, strict=True), rule(best), strict=True) if hit]
        true = [(i, j) for i, j in zip(best.row, best.other, strict=True) if i % 3 == j % 3]
        right = len(set(masked) & set(true))
        of_row = Counter(int(i) for i, _ in masked)
        assert rows[name]["masked"] == pytest.approx(len(masked) / (COUNT * DEPTH))
        assert rows[name]["recall"] == pytest.approx(right / len(true))
        assert rows[name]["precision"] == (pytest.approx(right / len(masked)) if masked else "")
        assert rows[name]["over_half"] == pytest.approx(sum(2 * count > DEPTH for count in of_row.values()) / COUNT)
        assert rows[name]["yes"] == ""


def test_exactly_half_is_not_over_half() -> None:
    assert over_half(np.array([0, 0, 1, 1, 3]), np.array([True, False, True, True, False])) == pytest.approx(1 / 3)


def test_cells_that_were_read_are_counted(surrogate: Surrogate) -> None:
    pairs = labelled(COUNT)
    best = surrogate.best_cells()
    hit = np.flatnonzero(RULES["own - .05"](best))[:3]
    left = np.flatnonzero(~RULES["own - .05"](best))[:3]

    def verdict(place: int, word: str, stratum: str = "margin .05", stands_for: float = 1.0) -> Verdict:
        ids = pairs.ids[best.row[place]], pairs.ids[best.other[place]]
        return Verdict("birds", *ids, stratum, word, stands_for)

    read = [
        *(verdict(place, word, stands_for=5.0) for place, word in zip(hit[:2], ("yes", "no"), strict=True)),
        verdict(hit[2], "yes", HARDEST),
        verdict(left[0], "yes"),
        *(verdict(place, word, HARDEST) for place, word in zip(left[1:], ("yes", "no"), strict=True)),
        verdict(hit[0], "yes")._replace(set="fish"),
        verdict(hit[0], "yes")._replace(pair="gone"),
    ]
    row = next(row for row in measure(pairs, surrogate, read) if row["rule"] == "own - .05")
    names = ("yes", "partly", "no", "yes_of_all", "hardest_left")
    assert [row[name] for name in names] == [1, 0, 1, 0.5, 1]


def test_truth_and_samples(tmp_path: Path) -> None:
    rows = [("a", "x", "1"), ("b", "y", "1"), ("c", "z", "2"), ("a", "z", "3")]
    table = pa.table(dict(zip(("query", "document", "group"), map(list, zip(*rows, strict=True)), strict=True)))
    for name in ("banking77", "perspectrum", "scitldr", "birds"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    same = {
        "banking77": {("a x", "b y")},
        "perspectrum": {("a x", "a z")},
        "scitldr": {("z c", "z a")},  # swapped: documents are queries
        "birds": set(),
    }
    found = find_sets(tmp_path, None)
    for name, together in same.items():
        pairs = found[name]()
        assert sorted(pairs.ids) == sorted(content_id(name, query, document) for query, document, _ in rows)
        texts = [f"{pair.query} {pair.document}" for pair in pairs.pairs]
        numbers = np.arange(4)
        truth = pairs.truth(numbers[:, None], numbers)
        expected = {(one, other) for pair in together for one, other in (pair, pair[::-1])}
        assert {(texts[i], texts[j]) for i, j in np.argwhere(truth) if i != j} == expected
        assert (pairs.true is None) == (name == "birds")
        last = pairs.ids[-1]
        assert pairs.sample(1, {last}).ids == [pairs.ids[0], last]


def test_judged_documents_are_the_truth_of_beir(tmp_path: Path) -> None:
    for name, judged in (("several", ["1\ta\t1", "1\tb\t1", "2\tb\t1", "2\tc\t0"]), ("single", ["1\ta\t1", "2\tb\t1"])):
        (tmp_path / name / "qrels").mkdir(parents=True)
        (tmp_path / name / "qrels/test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
        texts = [f'{{"_id": "{key}", "text": "text {key}"}}' for key in "12abc"]
        (tmp_path / name / "queries.jsonl").write_text("\n".join(texts[:2]))
        (tmp_path / name / "corpus.jsonl").write_text("\n".join(texts[2:]))
    pq.write_table(pa.table({"query": ["a"], "document": ["b"], "group": [""]}), tmp_path / "birds.parquet")
    found = find_sets(tmp_path, tmp_path)
    assert "single" not in found  # no query has a second answer to be found
    pairs = found["several"]()
    order = [(pair.asks, pair.answers) for pair in pairs.pairs]
    assert sorted(order) == [("1", "a"), ("1", "b"), ("2", "b")]
    truth = pairs.truth(np.arange(3)[:, None], np.arange(3))
    for row, (asks, _) in enumerate(order):
        assert truth[row].tolist() == [(asks, answer) in order for _, answer in order]


def test_the_table_of_verdicts() -> None:
    verdicts = read_verdicts()
    assert len({(each.set, each.pair, each.other) for each in verdicts}) == len(verdicts)
    for each in verdicts:
        assert re.fullmatch("[0-9a-f]{32} [0-9a-f]{32}", f"{each.pair} {each.other}")
        assert each.pair != each.other
        assert each.verdict in ("yes", "partly", "no")
        assert each.stratum in STRATA
        assert each.stands_for >= 1
    read = Counter((each.set, each.stratum == HARDEST) for each in verdicts)
    others = {"perspectrum": 40, "finance_10k": 100, "fever": 104, "tatqa": 14, "policyqa": 80}
    assert {name: read.pop((name, False)) for name in others} == others
    sets = ("medquad", "nl2bash", "squad", "tldr_pages", "torch")
    assert read == {(name, hardest): 60 if hardest else 63 for name in sets for hardest in (True, False)}


@pytest.mark.slow
def test_the_commands(tmp_path: Path) -> None:
    rows = topic_pairs(140)
    table = {"query": [query for query, _ in rows], "document": [document for _, document in rows]}
    for name in ("banking77", "birds"):
        groups = [query.split()[0] for query, _ in rows]
        pq.write_table(pa.table({**table, "group": groups}), tmp_path / f"{name}.parquet")
    sets = [".", "--sets", "banking77", "birds"]
    done = run_python("-m", "experiments.masks", *sets, "--pairs", "80", "--output", "rules.tsv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = read_tsv(tmp_path / "rules.tsv", made_by="")
    assert [row["rule"] for row in found] == 2 * list(RULES)
    assert {row["pairs"] for row in found} == {"80"}
    assert float(found[0]["recall"]) > 0
    assert found[-1]["recall"] == ""
    done = run_python("-m", "experiments.masks", ".", "--sets", "fish", cwd=tmp_path)
    assert done.returncode == 1
    assert "fish: not among the sets, which are banking77, birds, torch" in done.stderr
