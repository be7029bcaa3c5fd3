"""The recipe: which epochs of a domain are hard."""

from pathlib import Path

import numpy as np
import pytest

from batchwright.core.files import read_json
from batchwright.core.paths import PAIRS
from batchwright.formats.clusters import Clusters
from batchwright.formats.pairs import read_pairs
from batchwright.formats.shards import REASONS, Manifest
from stages.pack import plan
from stages.pack.plan import Recipe, choose
from tests.helpers import topic_pairs, write_params
from tests.pack.corpora import RunPack, prepare

BATCH, CLUSTER = 8, 4
HARD = CLUSTER / BATCH
MASKED = [f"masked_{reason}" for reason in REASONS]
UNMASKED = {"rows_mostly_masked": 0, **dict.fromkeys(MASKED, 0.0)}


def clusters(pairs: int, size: int = CLUSTER) -> Clusters:
    count = pairs // size
    return Clusters(
        assignment=(np.arange(pairs) // size).astype(np.int32),
        centroids=np.random.default_rng(0).normal(size=(count, 2, 3)).astype(np.float32),
    )


def chosen(pairs: int, lost: float, epochs: int = 4, reason: str = "score") -> Recipe:
    seen = []

    def measure(rows: np.ndarray) -> dict[str, float]:
        seen.append(rows)
        assert len(rows) == CLUSTER
        assert len(np.unique(rows // CLUSTER)) == 1
        return {"rows_mostly_masked": lost * CLUSTER, **dict.fromkeys(MASKED, 0.0), f"masked_{reason}": 0.1}

    found = choose(clusters(pairs), BATCH, epochs, measure, np.random.default_rng(1))
    assert len(seen) in (0, min(plan.SAMPLE, pairs // CLUSTER))
    assert len(found.shares) == epochs
    return found


def test_a_large_domain_is_random_first_and_hard_in_the_second_half() -> None:
    assert chosen(400, lost=0).shares == [0, 0, HARD, HARD]
    assert chosen(400, lost=0, epochs=3).shares == [0, 0, HARD]
    assert chosen(400, lost=0, epochs=1).shares == [0]


def test_clusters_of_single_pairs_are_no_hard_batches_and_large_ones_fill_a_batch() -> None:
    rng = np.random.default_rng(0)
    found = choose(clusters(400, 1), BATCH, 2, lambda _: UNMASKED, rng)
    assert found == Recipe(
        shares=[0.0, 0.0], reason="most clusters are single pairs; a larger cluster_size would make it hard"
    )
    assert choose(clusters(400, 16), BATCH, 2, lambda _: UNMASKED, rng).shares == [0, 1]


def test_no_more_clusters_than_a_sample_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SAMPLE", 10)
    chosen(400, lost=0)


@pytest.mark.parametrize(("smallest", "cure"), [(7, "; a batch_size of 7 would make it hard"), (8, "")])
def test_a_small_domain_stays_random(monkeypatch: pytest.MonkeyPatch, smallest: int, cure: str) -> None:
    monkeypatch.setattr(plan, "SMALLEST_BATCH", smallest)
    found = chosen(BATCH * (plan.FEWEST_BATCHES - 1), lost=0)
    assert found == Recipe(shares=[0.0] * 4, reason=f"24 batches an epoch, fewer than 25{cure}")


@pytest.mark.parametrize("reason", REASONS)
def test_a_domain_whose_hard_batches_would_be_masked_stays_random_and_what_masks_most_is_said(reason: str) -> None:
    found = chosen(400, lost=0.25, reason=reason)
    why = f"25% of the rows would lose most of their cluster to masks; {plan.CURES[reason]}"
    assert found == Recipe(shares=[0.0] * 4, reason=why)


def test_documents_that_repeat_do_not_keep_a_domain_from_hard_batches(
    workspace: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FEWEST_BATCHES", 5)
    changes = {"pack.cluster_share": "auto", "cluster.cluster_size": CLUSTER}
    write_params(workspace, {**changes, "filter.margin": None, "filter.threshold": 2.0})
    pairs = topic_pairs(100)
    prepare(repeats=[(query, pairs[place // 5 * 5][1]) for place, (query, _) in enumerate(pairs)])
    run_pack("contextual")
    measures = read_json(Path("results/pack/contextual.json"), made_by="pack")["domains"]["repeats"]
    assert measures["cluster_share"] == [0, HARD]
    assert "0.0% of the rows lose" in measures["because"]


@pytest.mark.parametrize("given", ["auto", [0.0, 1.0]])
def test_the_decision_and_its_reason_are_reported_unless_shares_are_given(
    workspace: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch, given: object
) -> None:
    monkeypatch.setattr(plan, "FEWEST_BATCHES", 5)
    monkeypatch.setattr(plan, "SMALLEST_BATCH", 4)
    changes = {"pack.cluster_share": given, "cluster.cluster_size": CLUSTER, "filter.margin": None}
    write_params(workspace, {**changes, "filter.threshold": 2.0})
    prepare(large=topic_pairs(100), small=topic_pairs(20), tiny=topic_pairs(9))
    said = run_pack("contextual")
    told = (
        "random batches only for\n  'small': 2 batches an epoch, fewer than 5; a batch_size of 4 would make it hard\n"
        "  'tiny': 1 batches an epoch, fewer than 5"
    )
    assert said.endswith(told) == (given == "auto")
    domains = read_json(Path("results/pack/contextual.json"), made_by="pack")["domains"]
    reasons = {name: found.get("because") for name, found in domains.items()}
    if given == "auto":
        assert domains["large"]["cluster_share"] == [0, HARD]
        assert domains["small"]["cluster_share"] == [0, 0]
        assert reasons["tiny"] == "1 batches an epoch, fewer than 5"
    else:
        assert reasons == {"large": None, "small": None, "tiny": None}
    manifest = Manifest.read(Path("data/shards/contextual"))
    assert manifest.epochs[1].hardness > manifest.epochs[0].hardness + 0.05
    hard = HARD if given == "auto" else 1.0
    never = [0, 0 if given == "auto" else hard]
    assert manifest.cluster_shares == {"large": [0, hard], "small": never, "tiny": never}
    texts = {name: set(read_pairs(PAIRS, name, "train")["document"].to_pylist()) for name in manifest.cluster_shares}
    assert manifest.documents == {name: len(found) for name, found in texts.items()}


def test_random_batches_have_no_clusters(workspace: Path, run_pack: RunPack) -> None:
    write_params(workspace, {"pack.cluster_share": [0.0, 1.0]})
    prepare(large=topic_pairs(100))
    run_pack("random")
    assert Manifest.read(Path("data/shards/random")).cluster_shares == {"large": [0, 0]}
