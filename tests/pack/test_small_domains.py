"""Domains that cannot fill a batch: refused, packed together, completed with their own pairs, or left out."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.core.paths import CLUSTERS
from batchwright.formats.clusters import read_draws
from batchwright.formats.pairs import read_pairs
from batchwright.formats.shards import REASONS, Manifest, ShardSet, read_reasons
from project.__main__ import main
from stages.pack import plan
from stages.pack.params import PackParams
from stages.pack.small_domains import described, small_domains
from stages.report.browser.section import read_browser
from tests.helpers import planted_vectors, project_environment, run_stage, topic_pairs, write_params
from tests.pack.corpora import RunPack, prepare
from trainers.common.job import planned_batches
from trainers.common.params import Common

OURS = Path("data/shards/contextual")
SMALL = {"ants": 7, "bees": 5, "flies": 6}
LARGE = topic_pairs(24, seed=9)


@pytest.fixture
def corpus(workspace: Path) -> Path:
    """``birds`` fills three batches of 8. ``ants``, ``bees`` and ``flies`` fill none, and repeat each other's texts."""
    ants, bees, flies = (topic_pairs(size - 2, seed=seed) for seed, size in enumerate(SMALL.values()))
    ants += [(flies[0][0].upper(), "topic0 an answer of ants"), ("topic1 asked by ants", f"{bees[0][1]}.")]
    bees += [(ants[0][0], "topic2 an answer of bees"), ("topic3 asked by bees", ants[1][1])]
    flies += [(ants[0][0], ants[0][1]), (bees[1][0], "topic2 an answer of flies")]
    prepare(birds=LARGE, ants=ants, bees=bees, flies=flies)
    return workspace


def batches(*names: str) -> list[dict[str, Any]]:
    """All batches of which the first pair is from one of the domains ``names``."""
    shards = ShardSet.open(OURS)
    shards.verify()
    found = [shards.batch(number) for number in range(len(shards))]
    return [
        {**batch.to_pydict(), "reasons": read_reasons(batch)} for batch in found if batch["domain"][0].as_py() in names
    ]


def form(text: str) -> str:
    return text.casefold().rstrip(".")


def test_refused_domains_are_named_and_nothing_is_written(corpus: Path) -> None:
    write_params(corpus, {"pack.small_domains": "refuse"})
    ended = run_stage("pack", "contextual", cwd=corpus)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "pack: error: pack.batch_size is 8, but these domains hold fewer training pairs: 'ants' (7), 'bees' (5), "
        "'flies' (6); lower pack.batch_size, or set pack.small_domains to merge, refill or drop\n"
    )
    assert not OURS.exists()


def test_merged_domains_share_batches_that_hold_each_pair_once(corpus: Path, run_pack: RunPack) -> None:
    done = run_pack("contextual")
    assert done.endswith("4 pairs left over; 3 domains smaller than a batch (18 pairs) packed together")
    shared, manifest = batches(*SMALL), Manifest.read(OURS)
    assert len(shared) == 4
    assert any(len(set(batch["domain"])) > 1 for batch in shared)
    ids = Counter(name for batch in shared for name in batch["id"])
    pairs = [read_pairs(Path("data/pairs"), name, "train") for name in SMALL]
    assert set(ids) <= {name for table in pairs for name in table["id"].to_pylist()}
    assert max(ids.values()) <= 2 == len(manifest.epochs)
    assert [epoch.left_over for epoch in manifest.epochs] == [{"birds": 0, "small domains": 2}] * 2
    assert {name: (small.pairs, small.packed_as) for name, small in manifest.small_domains.items()} == {
        name: (size, "small domains") for name, size in SMALL.items()
    }
    texts = {form(text) for table in pairs for text in table["document"].to_pylist()}
    assert manifest.documents["small domains"] == len(texts)
    assert set(read_json(Path("results/pack/contextual.json"), made_by="pack")["domains"]) == {"birds", "small domains"}


def test_across_domains_only_equal_texts_are_masked_and_within_one_its_own_rule(
    corpus: Path, run_pack: RunPack
) -> None:
    write_params(corpus, {"pack.epochs": 10, "pack.cluster_share": [0]})
    run_pack("contextual")
    known: dict[str, set[str]] = {}
    for name in SMALL:
        for pair in read_pairs(Path("data/pairs"), name, "train").to_pylist():
            known.setdefault(form(pair["query"]), set()).add(form(pair["document"]))
    seen = Counter()
    for batch in batches(*SMALL):
        documents, domains = [form(text) for text in batch["document"]], batch["domain"]
        scores = planted_vectors(batch["query"]).astype(float) @ planted_vectors(batch["document"]).astype(float).T
        for i, j in np.ndindex(scores.shape):
            own = domains[i] == domains[j]
            reason = None
            if i != j and documents[i] == documents[j]:
                reason = "duplicate"
            elif i != j and documents[j] in known[form(batch["query"][i])]:
                reason = "known_positive"
            elif i != j and own and scores[i, j] >= scores[i, i] - 0.125:
                reason = "score"
            found = batch["reasons"][i, j]
            assert (None if found < 0 else REASONS[found]) == reason
            seen[own, reason] += 1
            seen["alike"] += not own and reason is None and scores[i, j] >= scores[i, i] - 0.125
    wanted = [(False, "duplicate"), (False, "known_positive"), (True, "score"), "alike"]
    assert all(seen[each] for each in wanted), seen


def test_similarities_across_domains_count_as_nothing(corpus: Path, run_pack: RunPack) -> None:
    run_pack("contextual")
    for batch in batches(*SMALL):
        scores = planted_vectors(batch["query"]).astype(float) @ planted_vectors(batch["document"]).astype(float).T
        own = np.array(batch["domain"])[:, None] == np.array(batch["domain"])
        left = (batch["reasons"] < 0) & ~np.eye(8, dtype=bool)
        expected = (scores * (own & left)).sum(axis=1) / np.maximum(left.sum(axis=1), 1)
        np.testing.assert_allclose(batch["hardness"], expected, atol=1e-4)


def test_what_became_of_small_domains_is_said() -> None:
    def told(sizes: dict[str, int], **settings: object) -> str:
        params = PackParams.model_validate({"batch_size": 8, **settings})
        every = small_domains({name: (pairs, pairs) for name, pairs in sizes.items()}, params)
        return described(every, params).removeprefix("; ")

    assert told({"ants": 3, "birds": 80}) == "1 domain smaller than a batch (3 pairs) completed with repeated pairs"
    assert told({"ants": 3, "bees": 6}) == "2 domains smaller than a batch (9 pairs) packed together"
    both = "packed together and completed with repeated pairs"
    assert told({"ants": 3, "bees": 4}) == f"2 domains smaller than a batch (7 pairs) {both}"
    assert told({"ants": 3, "bees": 4}, small_domains="drop") == "2 domains smaller than a batch (7 pairs) left out"
    assert told({"ants": 3, "bees": 6, "flies": 2}, weights={"flies": 2.0}) == (
        "2 domains smaller than a batch (9 pairs) packed together"
        "; 1 domain smaller than a batch (2 pairs) completed with repeated pairs"
    )


def test_small_domains_change_no_batch_of_a_large_one(corpus: Path, run_pack: RunPack) -> None:
    found = []
    for what in ("merge", "refill", "drop"):
        write_params(corpus, {"pack.small_domains": what})
        run_pack("contextual")
        found.append(sorted(str(batch["id"]) + str(batch["mask"]) for batch in batches("birds")))
    assert len(found[0]) == 6
    assert found[0] == found[1] == found[2]


def test_refilled_batches_repeat_the_pairs_of_their_domain_and_mask_the_copies(corpus: Path, run_pack: RunPack) -> None:
    write_params(corpus, {"pack.small_domains": "refill"})
    assert run_pack("contextual").endswith("; 3 domains smaller than a batch (18 pairs) completed with repeated pairs")
    for batch in batches(*SMALL):
        (domain,) = set(batch["domain"])
        times = Counter(batch["id"])
        assert (len(times), sum(times.values())) == (SMALL[domain], 8)
        assert max(times.values()) - min(times.values()) <= 1
        ids = np.array(batch["id"])
        copies = (ids[:, None] == ids) & ~np.eye(8, dtype=bool)
        assert copies.any()
        assert (batch["reasons"][copies] == REASONS.index("duplicate")).all()
    manifest = Manifest.read(OURS)
    for epoch in manifest.epochs:
        assert epoch.repeated == sum(8 - size for size in SMALL.values())
        assert epoch.left_over == dict.fromkeys(["ants", "bees", "birds", "flies"], 0)
    assert {small.packed_as for small in manifest.small_domains.values()} == set(SMALL)


def test_small_domains_that_cannot_fill_a_batch_together_repeat_their_pairs(workspace: Path, run_pack: RunPack) -> None:
    prepare(birds=LARGE, ants=topic_pairs(3), bees=topic_pairs(2, seed=1))
    run_pack("contextual")
    assert all(len(set(batch["id"])) == 5 for batch in batches("ants", "bees"))
    assert [epoch.repeated for epoch in Manifest.read(OURS).epochs] == [3, 3]


def test_dropped_domains_are_counted_and_a_pair_says_why(
    corpus: Path, run_pack: RunPack, capsys: pytest.CaptureFixture[str]
) -> None:
    write_params(corpus, {"pack.small_domains": "drop"})
    done = run_pack("contextual")
    assert done.endswith("36 pairs left over; 3 domains smaller than a batch (18 pairs) left out")
    assert not batches(*SMALL)
    manifest = Manifest.read(OURS)
    assert all(epoch.left_over == {"birds": 0, **SMALL} for epoch in manifest.epochs)
    assert {small.packed_as for small in manifest.small_domains.values()} == {None}
    main(["show", "asked by ants"])
    said = " ".join(capsys.readouterr().out.split())
    assert "epoch 0: left over, pack.small_domains leaves out 'ants', which cannot fill a batch of 8" in said


def test_only_small_domains_that_are_dropped_leave_no_batch(workspace: Path, run_pack: RunPack) -> None:
    write_params(workspace, {"pack.small_domains": "drop"})
    prepare(ants=topic_pairs(5))
    with pytest.raises(InputError, match=r"no batch is left; raise pack\.weights, or lower pack\.batch_size"):
        run_pack("contextual")


def test_small_domains_of_another_weight_have_batches_of_their_own(corpus: Path, run_pack: RunPack) -> None:
    write_params(corpus, {"pack.weights": {"ants": 2, "bees": 2}})
    run_pack("contextual")
    manifest, domains = Manifest.read(OURS), Counter(ShardSet.open(OURS).domains())
    assert domains == {"birds": 6, "small domains": 2, "small domains, weight 2": 4}
    assert [manifest.packed_as(name) for name in ("ants", "flies")] == ["small domains, weight 2", "small domains"]
    times = Counter(name for batch in batches("ants", "bees") for name in batch["id"])
    assert max(times.values()) <= 4


def test_the_recipe_of_merged_domains_is_decided_for_all_of_them(
    corpus: Path, run_pack: RunPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "FEWEST_BATCHES", 2)
    write_params(corpus, {"pack.cluster_share": "auto", "filter.margin": None, "filter.threshold": 2.0})
    prepare()
    run_pack("contextual")
    decided = read_json(Path("results/pack/contextual.json"), made_by="pack")["domains"]["small domains"]
    assert decided["because"].startswith("2 batches an epoch, and ")
    assert Manifest.read(OURS).cluster_shares["small domains"] == [0, 1]


def test_readers_of_batches_know_those_that_are_shared(
    corpus: Path, run_pack: RunPack, capsys: pytest.CaptureFixture[str]
) -> None:
    run_pack("contextual")
    shards = ShardSet.open(OURS)
    shared = [number for number, domain in enumerate(shards.domains()) if domain == "small domains"]
    assert len(shared) == 4
    common = Common(
        **{"epochs": 2, "mini_batch_size": 8, "learning_rate": 0.1, "warmup_ratio": 0, "weight_decay": 0},
        **{"max_grad_norm": 1, "domains": ["small domains"]},
    )
    assert planned_batches(shards, common) == shared
    assert shards.stands_for(shared[0], shards.batch(shared[0])).min() >= 1
    main(["show", str(shared[0])])
    said = capsys.readouterr().out
    assert "small domains" in said
    assert "no scores and limits: the batch is of" in " ".join(said.split())
    browser = read_browser(
        {name: read_draws(CLUSTERS, name, size) for name, size in {**SMALL, "birds": 24}.items()}, 100
    )
    assert (browser.total, browser.shared, browser.batches["batch"]) == (
        6,
        4,
        [number for number in range(len(shards)) if number not in shared],
    )


def test_hundreds_of_small_domains_are_merged_with_few_files_open(workspace: Path) -> None:
    prepare(**{f"d{number}": topic_pairs(3, seed=number) for number in range(100)})
    command = f"ulimit -n 120; exec {sys.executable} -m stages pack random"
    environment = project_environment()
    ended = subprocess.run(["sh", "-c", command], cwd=workspace, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("pack: 74 random batches of 8")
