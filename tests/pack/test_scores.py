"""What a source says of its pairs reaches the shards of all domains; mined negatives have no scores."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from batchwright.core.errors import InputError
from batchwright.export import export
from batchwright.formats.pairs import ANNOTATED_PAIRS, SCORED_PAIRS, pairs_file, read_pairs, write_table
from batchwright.formats.shards import SCORED_SCHEMA, ShardSet
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.pack import stage as pack
from tests.helpers import topic_pairs, write_params
from tests.pack.corpora import prepare

PAIRS = Path("data/pairs")


def test_scores_of_one_domain_are_those_of_its_pairs_and_others_have_none(workspace: Path) -> None:
    write_params(workspace, {"filter.mine": {"count": 2, "depth": 10}})
    _prepare_four()
    for domain in ("birds", "small"):
        _score(domain)
    shards = _packed()
    assert shards.scored
    met = set()
    for number in range(len(shards)):
        batch = shards.batch(number)
        assert batch.schema.equals(SCORED_SCHEMA, check_metadata=True)
        for row in batch.to_pylist():
            scores, count = row["scores"], len(row["negatives"])
            met.add(row["domain"])
            if row["domain"] in ("fish", "few"):
                assert scores == []
                continue
            assert row["negatives"][0] == "a bad answer" and len(scores) == 1 + count
            assert scores[:2] == [len(row["document"]), 0.5] and np.isnan(scores[2:]).all()
    assert met == {"birds", "fish", "small", "few"}
    assert count > 0


@pytest.mark.parametrize("scored", [False, True])
def test_weights_and_metadata_of_some_domains_reach_the_shards_of_all(workspace: Path, scored: bool) -> None:
    _prepare_four()
    if scored:
        _score("fish")
    for domain in ("birds", "small"):
        _annotate(domain)
    shards = _packed()
    assert (shards.annotated, shards.scored, shards.metadata_names) == (True, scored, ["length"])
    met = set()
    for row in (row for number in range(len(shards)) for row in shards.batch(number).to_pylist()):
        met.add(row["domain"])
        length = len(row["document"])
        said = (length / 8, f'{{"length": "{length}"}}') if row["domain"] in ("birds", "small") else (1, "{}")
        assert (row["weight"], row["metadata"]) == said
        assert not scored or row["scores"] == ([length, 0.5] if row["domain"] == "fish" else [])
    assert met == {"birds", "fish", "small", "few"}
    assert "| `metadata` |" in (shards.folder / "README.md").read_text()
    assert ("| `scores` |" in (shards.folder / "README.md").read_text()) == scored


@pytest.mark.parametrize("weight", [0.5, 1, 2])
def test_each_time_a_pair_comes_it_has_the_next_of_its_many_hard_negatives(workspace: Path, weight: float) -> None:
    write_params(workspace, {"pack.hard_negatives": 2, "pack.epochs": 4, "pack.weights": {"birds": weight}})
    _prepare_four()
    many = [f"bad answer {number}" for number in range(5)]
    _score("birds", many)
    _score("small")
    shards = _packed()
    turns: dict[str, list[list[str]]] = {}
    for row in (row for number in range(len(shards)) for row in shards.batch(number).to_pylist()):
        if row["domain"] == "birds":
            turns.setdefault(row["id"], []).append(row["negatives"])
            assert row["scores"] == [len(row["document"]), *(0.5 + many.index(text) for text in row["negatives"])]
        elif row["domain"] == "small":
            assert (row["negatives"], row["scores"][1:]) == (["a bad answer"], [0.5])
    expected = [[many[2 * turn % 5], many[(2 * turn + 1) % 5]] for turn in range(8)]
    assert max(map(len, turns.values())) >= 4 * weight
    # Batches of an epoch are shuffled after pairs have taken turns.
    assert all(sorted(of_pair) == sorted(expected[: len(of_pair)]) for of_pair in turns.values())
    said = export(shards.folder, Path("pairs.jsonl"), file_format="flagembedding")
    assert "; those of each pair's first batch, since pack.hard_negatives is 2" in said
    with pytest.raises(InputError, match=r"the most are 2; lower --negatives, or raise pack\.hard_negatives from 2"):
        export(shards.folder, Path("pairs.jsonl"), 3)


def _prepare_four() -> None:
    """Prepare four domains, two of them small."""
    prepare(
        birds=topic_pairs(20), fish=topic_pairs(20, seed=1), small=topic_pairs(3, seed=2), few=topic_pairs(6, seed=3)
    )


def _packed() -> ShardSet:
    judge.main()
    cluster.main()
    pack.main("random")
    return ShardSet.open(Path("data/shards/random"))


def _annotate(domain: str) -> None:
    """Give each pair a weight and metadata."""
    rows = [
        row | {"scores": [], "weight": length / 8, "metadata": f'{{"length": "{length}"}}'}
        for row in read_pairs(PAIRS, domain).to_pylist()
        for length in [len(row["document"])]
    ]
    write_table(pairs_file(PAIRS, domain), pa.Table.from_pylist(rows, ANNOTATED_PAIRS), ANNOTATED_PAIRS)


def _score(domain: str, negatives: Sequence[str] = ("a bad answer",)) -> None:
    """Give each pair ``negatives``, and all documents a score."""
    scores = [0.5 + number for number in range(len(negatives))]
    rows = [
        row | {"negatives": list(negatives), "scores": [len(row["document"]), *scores]}
        for row in read_pairs(PAIRS, domain).to_pylist()
    ]
    write_table(pairs_file(PAIRS, domain), pa.Table.from_pylist(rows, SCORED_PAIRS), SCORED_PAIRS)
