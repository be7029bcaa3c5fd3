"""The comparison with rivals: what is held out, what batches are made of, how differences are judged."""

import math
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import ir_measures
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from ir_measures import nDCG
from numpy.typing import NDArray

from batchwright.core.files import read_tsv, write_tsv
from batchwright.formats.negatives import NO_PAIR
from batchwright.formats.vectors import PairVectors
from batchwright.training.losses import static_temperature
from docs import table_kinds
from docs.table_kinds import masked_ways_table, rivals_table
from experiments.rivals import (
    SEEN,
    confused,
    cross_encoder,
    hardness,
    knowledge,
    lessons,
    noise,
    sets,
    spread,
    temperatures,
    together,
    trials,
)
from experiments.rivals.arms import ARMS, FOUR, MINILM, RANDOM, mining
from experiments.rivals.compare import compare
from experiments.rivals.cross_encoder import score_with, trained_on
from experiments.rivals.knowledge import doubt
from experiments.rivals.masks import RULES, likeness_limits
from experiments.rivals.negatives import (
    Score,
    Teacher,
    choose_documents,
    ranks_first,
    score_alike,
    score_with_cross_encoder,
    score_with_minilm,
    taught,
)
from experiments.rivals.orders import B3_SKIPPED, ORDERS, communities, steps
from experiments.rivals.recipes import confusion, mix
from experiments.rivals.runs import Run, Runs
from experiments.rivals.sets import BATCH, Training, read_set
from experiments.rivals.sizes import sample
from experiments.rivals.summary import COSTS, main, share_to_reach
from experiments.rivals.training import DEPTH as RANKS
from experiments.rivals.training import Batch, Curve, Settings, Temperature, ndcg
from experiments.rivals.tuning import choose, first_settings, settings_at
from tests.helpers import REPO, run_python

SIZES = {"birds": 1700, "fish": 1400}
TEMPERATURE = torch.tensor(0.05)


def topics(count: int, side: int) -> NDArray[np.float16]:
    """Unit vectors of queries (``side`` 0) or documents (1): 20 topics, each pair with a direction of its own."""
    topic = np.random.default_rng(2).normal(size=(20, 384))[np.arange(count) % 20]
    pair = np.random.default_rng(3).normal(size=(count, 384))
    points = topic + pair + 0.3 * np.random.default_rng(side).normal(size=(count, 384))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float16)


@pytest.fixture(scope="module")
def training() -> Training:
    count = sum(SIZES.values())
    both = np.concatenate([topics(count, 0), topics(count, 1)])
    return Training(
        queries=[f"query number {row}" for row in range(count)],
        documents=[f"document number {row} about topic {row % 20}" for row in range(count)],
        domains=np.repeat(list(SIZES), list(SIZES.values())),
        groups=np.array([f"topic {row % 20}" for row in range(count)]),
        vectors=PairVectors(vectors=both, rows=np.arange(2 * count).reshape(2, -1)),
    )


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """1,200 pairs; each query has two documents, and each second document is shared by two queries."""
    rows = [{"query": f"q{n // 2}", "document": f"d{n if n % 2 else n // 4}", "domain": "one"} for n in range(1200)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "linked.parquet")
    for surrogate in ("tfidf", "minilm"):
        file = tmp_path / f"linked-{surrogate}.npz"
        np.savez(file, query=topics(1200, 0), document=topics(1200, 1), seconds=np.float64(2))
    return tmp_path


def test_held_out_queries_share_nothing_with_training(pairs: Path) -> None:
    found = read_set("linked", [pairs / "linked.parquet"], pairs)
    truth = pq.read_table(pairs / "linked.parquet").to_pylist()
    asked = set(found.held_out.queries)
    relevant = {
        (query, found.held_out.documents[place])
        for query, places in zip(found.held_out.queries, found.held_out.relevant, strict=True)
        for place in places
    }
    assert 100 <= len(relevant) <= 160
    assert relevant == {(row["query"], row["document"]) for row in truth if row["query"] in asked}
    assert asked.isdisjoint(found.training.queries)
    assert {document for _, document in relevant}.isdisjoint(found.training.documents)
    assert len(found.training) == 1200 - len(relevant)


@pytest.mark.parametrize("size", [BATCH, 64])
@pytest.mark.parametrize(
    "name",
    [
        *ORDERS,
        *("ours", "ours, neighbours", "ours, a cluster a batch, InfoNCE"),
        *("ours, half random", "ours, half random, confused", "ours, clusters by the model"),
    ],
)
def test_batches_are_full_of_different_pairs_and_of_one_domain(name: str, size: int, training: Training) -> None:
    epochs, training = 2, replace(training, batch=size)
    count = steps(training, epochs)
    found, again, other = (
        [batch.rows for batch in islice(ARMS[name].batches(training, epochs, seed), count)] for seed in (0, 0, 1)
    )
    assert len(found) == count == epochs * sum(pairs // size for pairs in SIZES.values())
    assert all(len(np.unique(rows)) == size for rows in found)
    assert all(len(np.unique(training.domains[rows])) == 1 for rows in found)
    assert np.array_equal(found, again)
    assert not np.array_equal(found, other)


def test_our_schedule_is_random_first_and_hard_then(training: Training) -> None:
    ours, whole, random = (
        [batch.rows for batch in ARMS[name].batches(training, 2, 0)]
        for name in ("ours", "ours, a cluster a batch, InfoNCE", "random")
    )
    assert _hardness(training, ours[:22]) == pytest.approx(_hardness(training, random), abs=0.01)
    assert _hardness(training, ours[22:]) > 1.5 * _hardness(training, random)  # most of a batch is like random ones
    assert _hardness(training, whole[22:]) > 2 * _hardness(training, random)


def test_a_tour_puts_the_same_clusters_into_harder_batches(training: Training) -> None:
    ours, neighbours = (list(ARMS[name].batches(training, 2, 0)) for name in ("ours", "ours, neighbours"))
    assert all(np.array_equal(one.rows, other.rows) for one, other in zip(ours[:22], neighbours[:22], strict=True))
    assert _groups(ours[22:]) == _groups(neighbours[22:])
    at_random, on_a_tour = (_hardness(training, [batch.rows for batch in of[22:]]) for of in (ours, neighbours))
    assert on_a_tour > 1.2 * at_random


def test_batches_that_are_hard_in_part_keep_the_clusters_that_confuse(training: Training) -> None:
    batches = list(ARMS["ours"].batches(training, 2, 0))[steps(training, 1) :]
    doubt = np.random.default_rng(5).random(len(training), dtype=np.float32)
    mixed = mix(batches, doubt, training, np.random.default_rng(0))
    kept = {tuple(rows) for batch in mixed for rows in batch.rows[:64].reshape(4, -1).tolist()}
    assert len(kept) == 4 * len(batches) and kept < _groups(batches)
    for name in SIZES:
        of = [rows for rows in _groups(batches) if training.domains[rows[0]] == name]
        doubts = sorted(doubt[list(rows)].mean() for rows in of)
        assert min(doubt[list(rows)].mean() for rows in kept & set(of)) == doubts[len(of) // 2]
    assert all(len(np.unique(batch.groups)) == 4 + 64 for batch in mixed)
    rows = [np.sort(np.concatenate([batch.rows for batch in made])) for made in (batches, mixed)]
    assert np.array_equal(*rows)


def test_a_query_is_confused_by_the_best_document_that_is_not_its_own(training: Training) -> None:
    rows = np.arange(len(training))
    scores = training.vectors.queries(rows) @ training.vectors.documents(rows).T
    own = scores.diagonal().copy()
    scores[training.classes[1][:, None] == training.classes[1]] = -1
    assert confusion(training) == pytest.approx(scores.max(axis=1) - own, abs=1e-4)


def _groups(batches: list[Batch]) -> set[tuple[int, ...]]:
    return {tuple(rows) for batch in batches for rows in batch.rows.reshape(8, -1).tolist()}


def test_our_loss_counts_the_own_cluster_once_and_the_rest_for_the_domain(training: Training) -> None:
    batches = list(ARMS["ours"].batches(training, 2, 0))
    random, hard = batches[0], batches[-1]
    assert len(np.unique(random.groups)) == BATCH
    assert np.unique(hard.groups, return_counts=True)[1].tolist() == [BATCH // 8] * 8
    queries = documents = torch.nn.functional.normalize(torch.ones(BATCH, 4), dim=1)
    for batch in (random, hard):  # equal scores: the loss is the logarithm of how many documents the domain has
        own = SIZES[str(training.domains[batch.rows[0]])]
        for arm, count, within in (("ours", own, 1e-3), ("ours, InfoNCE", BATCH, 1e-5)):
            loss = ARMS[arm].loss(training)(queries, documents, batch, TEMPERATURE)
            assert loss.item() == pytest.approx(np.log(count), abs=within)


def test_communities_are_all_pairs_and_leave_out_the_nearest() -> None:
    """20 topics of 20 pairs: the first p = 30 documents hold a query's own topic, so a community mixes topics."""
    vectors = PairVectors(
        vectors=np.repeat(np.eye(20, dtype=np.float16), 20, axis=0)[np.tile(np.arange(400), 2)],
        rows=np.arange(800).reshape(2, -1),
    )
    groups = communities(vectors, 0)
    assert sorted(np.concatenate(groups)) == list(range(400))
    own_topic = [np.bincount(group // 20).max() / len(group) for group in groups]
    assert B3_SKIPPED > 20
    assert max(own_topic) < 1


def test_every_arm_is_in_a_table() -> None:
    tables = (read_tsv(file, made_by="experiments.rivals") for file in (REPO / "experiments/rivals").glob("*.tsv"))
    assert set(ARMS) == {row["arm"] for rows in tables for row in rows if "arm" in row}


def test_without_domains_they_meet_in_a_batch(training: Training) -> None:
    batches = list(islice(ARMS["random, without domains, our loss"].batches(training, 1, 0), 5))
    assert all(len(np.unique(training.domains[batch.rows])) == 2 for batch in batches)


def test_mixed_batches_hold_clusters_of_one_domain_each(training: Training) -> None:
    mixed, apart = (list(ARMS[name].batches(training, 2, 0)) for name in ("ours, domains mixed", "ours"))
    hard = mixed[len(mixed) // 2 :]
    assert np.mean([len(np.unique(training.domains[batch.rows])) == 2 for batch in hard]) > 0.9
    of_group: dict[int, set[str]] = {}
    for batch in hard:
        assert batch.groups is not None
        for group, domain in zip(batch.groups.tolist(), training.domains[batch.rows], strict=True):
            of_group.setdefault(group, set()).add(domain)
    assert all(len(domains) == 1 for domains in of_group.values())
    together = _pairs_in_a_group(hard) & _pairs_in_a_group(apart[len(apart) // 2 :])
    assert len(together) > 0.9 * len(_pairs_in_a_group(hard))


def _pairs_in_a_group(batches: list[Batch]) -> set[tuple[int, int]]:
    """All pairs of rows that are in one group of a batch."""
    near = ((batch.rows, batch.groups[:, None] == batch.groups) for batch in batches if batch.groups is not None)
    cells = ((rows[one], rows[other]) for rows, same in near for one, other in np.argwhere(np.triu(same, 1)))
    return {(int(min(cell)), int(max(cell))) for cell in cells}


def test_rules_mask_what_they_say(training: Training) -> None:
    rows = np.random.default_rng(0).permutation(BATCH)
    others = {"alike", "alike, lower", "alike by MiniLM"}
    masks = {name: rule(training)(rows) for name, rule in RULES.items() if name not in others}
    assert not masks["nothing"].any()
    assert not masks["known"].any()
    scores = training.vectors.queries(rows) @ training.vectors.documents(rows).T
    expected = scores >= scores.diagonal()[:, None] - 0.05
    assert (masks["margin"] | np.eye(BATCH, dtype=bool)).tolist() == expected.tolist()
    topics = rows % 20
    same = topics[:, None] == topics
    assert (masks["same group"] | np.eye(BATCH, dtype=bool)).tolist() == same.tolist()
    own = np.kron(np.eye(8, dtype=bool), np.ones((BATCH // 8, BATCH // 8), dtype=bool))  # eight clusters
    assert masks["same group, own cluster"].tolist() == (masks["same group"] & own).tolist()
    assert masks["same group, other clusters"].tolist() == (masks["same group"] & ~own).tolist()
    assert (masks["same group"] & own).any()


def test_alike_pairs_are_masked_from_the_limit_of_their_domain(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"birds": 0.5, "fish": 0.3}
    monkeypatch.setattr("experiments.rivals.masks.likeness_limits", lambda _: limits)
    masks = {lower: RULES[name](training) for name, lower in (("alike", 0.0), ("alike, lower", 0.1))}
    for start, limit in ((0, 0.5), (SIZES["birds"], 0.3)):
        rows = np.arange(start, start + BATCH)
        sums = training.vectors.queries(rows) + training.vectors.documents(rows)
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        likeness = sums @ sums.T
        for lower, mask in masks.items():
            expected = likeness >= limit - lower
            clear = np.abs(likeness - (limit - lower)) > 1e-3  # sums are rounded to a grid
            assert BATCH < np.count_nonzero(expected) < BATCH**2 / 2
            assert (mask(rows) | np.eye(BATCH, dtype=bool))[clear].tolist() == expected[clear].tolist()


def test_a_limit_is_found_in_the_domain_whose_pairs_can_be_exchanged(training: Training) -> None:
    """The pairs of a topic of fish answer each other's questions; each pair of birds only its own."""
    both, fish = training.vectors.vectors.copy(), np.flatnonzero(training.domains == "fish")
    noise = np.random.default_rng(5).normal(size=(2 * len(fish), 384)).astype(np.float32)
    topic = np.tile(np.random.default_rng(2).normal(size=(20, 384))[fish % 20], (2, 1))
    points = topic + 0.5 * noise
    both[np.concatenate([fish, fish + len(training)])] = points / np.linalg.norm(points, axis=1, keepdims=True)
    exchanged = replace(training, vectors=PairVectors(vectors=both, rows=training.vectors.rows))
    limits = likeness_limits(exchanged)
    assert limits["birds"] == NO_PAIR
    assert 0.3 < limits["fish"] < 0.9


def test_masks_by_minilm_are_those_of_its_vectors(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.rivals.masks.likeness_limits", lambda _: dict.fromkeys(SIZES, 0.5))
    count = len(training)
    both = np.concatenate([topics(count, side) for side in (1, 0)])
    monkeypatch.setitem(sets.SURROGATES, "minilm", lambda *_: both)
    exchanged = replace(training, vectors=PairVectors(vectors=both, rows=np.arange(2 * count).reshape(2, -1)))
    rows = np.arange(BATCH)
    expected = RULES["alike"](exchanged)(rows)
    assert expected.any()
    assert np.array_equal(RULES["alike by MiniLM"](training)(rows), expected)


@pytest.mark.parametrize("seen", [False, True])
def test_training_documents_are_searched_only_if_they_should_be(pairs: Path, seen: bool) -> None:
    found = read_set("linked", [pairs / "linked.parquet"], pairs, seen=seen)
    corpus, trained = set(found.held_out.documents), set(found.training.documents)
    assert found.name == ("linked, seen" if seen else "linked")
    assert trained <= corpus if seen else trained.isdisjoint(corpus)
    assert all(found.held_out.relevant)


def test_by_group_all_documents_of_a_group_answer(pairs: Path) -> None:
    table = pq.read_table(pairs / "linked.parquet")
    documents = table["document"].to_pylist()
    documents[1::20] = [f"q{row}" for row in range(0, 600, 10)]  # some are queries, too
    table = table.set_column(1, "document", pa.array(documents))
    groups = pa.array([f"g{row % 3}" for row in range(len(table))])
    pq.write_table(table.append_column("group", groups), pairs / "linked.parquet")
    own, all_of_group = (read_set("linked", [pairs / "linked.parquet"], pairs, by_group=each) for each in (False, True))
    assert all_of_group.name == "linked, by group"
    assert all_of_group.held_out.queries == own.held_out.queries
    assert all_of_group.training.queries == own.training.queries
    truth = table.append_column("group", groups).to_pylist()
    for query, places in zip(all_of_group.held_out.queries, all_of_group.held_out.relevant, strict=True):
        asked = {row["group"] for row in truth if row["query"] == query}
        answers = {row["document"] for row in truth if row["group"] in asked} - set(own.held_out.queries)
        assert {all_of_group.held_out.documents[place] for place in places} == answers
    assert set(own.held_out.queries) & set(documents)
    assert set(own.held_out.queries).isdisjoint(all_of_group.held_out.documents)


@pytest.mark.parametrize("name", ["random", "library"])
def test_losses_agree_where_they_should(name: str, training: Training) -> None:
    """Without duplicates, our loss without a score mask and the library's are the same."""
    rng = torch.Generator().manual_seed(0)
    queries, documents = (torch.nn.functional.normalize(torch.randn(BATCH, 8, generator=rng), dim=1) for _ in "qd")
    expected = torch.nn.functional.cross_entropy(queries @ documents.T / 0.05, torch.arange(BATCH))
    found = ARMS[name].loss(training)(queries, documents, Batch(rows=np.arange(BATCH)), TEMPERATURE)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_all_documents_are_negatives_but_for_those_known_to_answer(training: Training) -> None:
    doubled = replace(training, documents=[f"document of topic {row // 2}" for row in range(len(training))])
    arm = ARMS["all documents"]
    batch = next(arm.batches(doubled, 1, 0))
    assert len({doubled.documents[row] for row in batch.negatives}) == len(batch.negatives) == len(doubled) // 2
    rng = torch.Generator().manual_seed(0)
    queries, documents = (
        torch.nn.functional.normalize(torch.randn(count, 8, generator=rng), dim=1)
        for count in (BATCH, BATCH + len(batch.negatives))
    )
    expected = []
    for place, row in enumerate(batch.rows):
        wrong = [
            queries[place] @ documents[BATCH + other]
            for other, negative in enumerate(batch.negatives)
            if doubled.documents[negative] != doubled.documents[row]
        ]
        own = queries[place] @ documents[place]
        expected.append(torch.logsumexp(torch.stack([own, *wrong]) / 0.05, 0) - own / 0.05)
    found = arm.loss(doubled)(queries, documents, batch, TEMPERATURE)
    assert found.item() == pytest.approx(torch.stack(expected).mean().item(), rel=1e-4)


def test_mined_negatives_are_no_positives(training: Training) -> None:
    for batch in islice(ARMS["library, mined"].batches(training, 1, 0), 3):
        assert len(batch.negatives) == len(batch.rows) == BATCH
        assert not (batch.rows == batch.negatives).any()
        queries, own, other = (
            training.vectors.queries(batch.rows),
            training.vectors.documents(batch.rows),
            training.vectors.documents(batch.negatives),
        )
        assert ((queries * other).sum(1) <= 0.951 * (queries * own).sum(1)).all()


@pytest.mark.parametrize("name", ["mined, hardest", "mined, 95 %", "mined, 95 %, drawn", "mined, four"])
def test_hard_negatives_of_our_choice_are_within_the_share_where_there_are_some(name: str, training: Training) -> None:
    for batch in islice(ARMS[name].batches(training, 1, 0), 3):
        there = batch.negatives.reshape(BATCH, -1) != batch.rows[:, None]
        queries, own = training.vectors.queries(batch.rows), training.vectors.documents(batch.rows)
        scores = np.einsum("nd,nkd->nk", queries, training.vectors.documents(batch.negatives).reshape(*there.shape, -1))
        within = scores <= 0.951 * (queries * own).sum(1, keepdims=True)
        assert there.any() and (within[there].all() or name == "mined, hardest")
        vectors = torch.nn.functional.normalize(torch.randn(BATCH + there.size, 4), dim=1)
        loss = ARMS[name].loss(training)(vectors[:BATCH], vectors, batch, TEMPERATURE)
        assert loss > ARMS["random"].loss(training)(vectors[:BATCH], vectors[:BATCH], batch, TEMPERATURE)


def test_documents_of_pairs_that_are_not_asked_are_negatives_of_one_arm_only(pairs: Path) -> None:
    training = read_set("linked", [pairs / "linked.parquet"], pairs, unasked=1 / 3).training
    assert training.asked is not None
    asked = np.flatnonzero(training.asked)
    assert 0.6 < len(asked) / len(training) < 0.7
    hidden = {text for row, text in enumerate(training.documents) if not training.asked[row]}
    assert hidden.isdisjoint(training.documents[row] for row in asked)
    found = {}
    for name in ("mined, hardest", "mined, hardest, from a corpus"):
        batches = list(islice(ARMS[name].batches(training, 1, 0), 3))
        assert np.isin(np.concatenate([batch.rows for batch in batches]), asked).all()
        found[name] = {training.documents[row] for batch in batches for row in batch.negatives}
    assert hidden.isdisjoint(found["mined, hardest"])
    assert hidden & found["mined, hardest, from a corpus"]


def test_a_teacher_adds_how_far_the_scores_of_its_candidates_are_from_its_own(training: Training) -> None:
    batch = next(ARMS["mined, four"].batches(training, 1, 0))
    queries, own, others = torch.nn.functional.normalize(torch.randn(6 * BATCH, 8), dim=1).split(
        [BATCH, BATCH, 4 * BATCH]
    )
    documents = torch.cat([own, others])
    scores = torch.einsum("nd,nkd->nk", queries, torch.cat([own[:, None], others.view(BATCH, 4, -1)], dim=1)).numpy()

    def taught_by(scored: NDArray[np.float32]) -> float:
        def score(_: Training, candidates: NDArray[np.int64]) -> NDArray[np.float32]:
            table = np.zeros(candidates.shape, np.float32)
            table[batch.rows] = scored
            return table

        teacher = Teacher(score=score, temperature=TEMPERATURE.item())
        return float(mining(RANDOM, teacher=teacher).loss(training)(queries, documents, batch, TEMPERATURE))

    plain = float(ARMS["mined, four"].loss(training)(queries, documents, batch, TEMPERATURE))
    assert taught_by(scores) == pytest.approx(plain, rel=1e-5)
    lacking = batch.negatives.reshape(BATCH, -1) == batch.rows[:, None]
    hidden = np.column_stack([np.zeros(BATCH, bool), lacking])
    student, aim = (
        torch.from_numpy(np.where(hidden, -np.inf, each / TEMPERATURE.item())).log_softmax(1)
        for each in (scores, -scores)
    )
    added = (aim.exp() * (aim - student)).nan_to_num(0)[(~lacking).any(1)].sum(1).mean()
    assert taught_by(-scores) == pytest.approx(plain + added.item(), rel=1e-4)


@pytest.mark.parametrize("score", [score_with_minilm, score_with_cross_encoder])
def test_teachers_score_every_candidate_once(
    score: Score, training: Training, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cross_encoder, sets):
        monkeypatch.setattr(module, "MODEL", str(tiny_bert))
    few = replace(
        training,
        queries=training.queries[:40],
        documents=training.documents[:40],
        domains=training.domains[:40],
        vectors=training.vectors.take(np.arange(40)),
        folder=tmp_path,
    )
    scores, seconds = taught(few, FOUR, score)
    chosen = choose_documents(few, FOUR, 0)
    there = np.column_stack([chosen[:, 0], chosen]) >= 0
    assert scores.shape == (40, 5) and there.sum() > 50
    np.testing.assert_array_equal(np.isfinite(scores), there)
    assert len(np.unique(scores[there])) > 10
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    again = taught.__wrapped__(few, FOUR, score)
    np.testing.assert_array_equal(again.scores, scores)
    assert again.seconds == seconds > 0
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == kept


def test_a_doubt_is_what_negatives_get_of_the_softmax() -> None:
    scores = np.array([[2, 2, np.nan], [4, 0, 0], [np.nan] * 3], np.float32)
    assert doubt(scores, 2).tolist() == pytest.approx([0.5, 2 / (2 + np.exp(2))])
    assert ranks_first(scores) == 0.5


def test_teachers_are_asked_about_what_a_student_finds(
    pairs: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cross_encoder, sets):
        monkeypatch.setattr(module, "MODEL", str(tiny_bert))
    curve = Curve(steps=[8], scores=np.ones((1, 80), np.float32), seconds=3.0)
    for arm in ("random", "taught by MiniLM", "taught by a cross-encoder"):
        best = Settings(0.07, 0.02, *((0.5, 4.0) if "taught" in arm else ()))
        run = Run("linked", arm, "static", knowledge.EPOCHS, best, seed=1)
        Runs(pairs / "teachers").add(run, curve, dict.fromkeys(COSTS, 0.5))
    options = ["--vectors", str(pairs), "--runs", str(pairs / "teachers"), "--output", str(pairs / "knowledge.tsv")]
    monkeypatch.setattr(sys, "argv", ["knowledge", str(pairs / "linked.parquet"), *options])
    knowledge.main()
    rows = read_tsv(pairs / "knowledge.tsv", made_by="experiments.rivals.knowledge")
    assert [row["arm"] for row in rows] == ["taught by MiniLM", "taught by a cross-encoder"]
    assert all(0 <= float(row[name]) <= 1 for row in rows for name in ("student", "first", "doubt", "sure"))


def test_a_cross_encoder_learns_which_candidate_is_right(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right document shares its word with the query; others have another."""
    monkeypatch.setattr(cross_encoder, "MODEL", str(tiny_bert))
    monkeypatch.setattr(cross_encoder, "RATE", 1e-3)
    texts = [f"{side} {word}" for word in ("cat", "dog") for side in ("left", "right")]
    queries, documents = [texts[row % 4] for row in range(400)], texts
    candidates = np.array([[row % 4, (row + 1) % 4, -1] for row in range(400)])
    model = trained_on(queries, documents, candidates, tmp_path)
    scores = score_with(model, queries[:4], documents, candidates[:4])
    assert (scores[:, 0] > scores[:, 1]).all() and np.isnan(scores[:, 2]).all()
    assert trained_on(queries, documents, candidates, tmp_path) == model


def test_a_sample_keeps_the_held_out_queries_and_its_own_vectors(pairs: Path) -> None:
    whole = read_set("linked", [pairs / "linked.parquet"], pairs)
    smaller = read_set("linked", [pairs / "linked.parquet"], pairs, batch=64)
    assert (smaller.name, steps(smaller.training, 1)) == ("linked, 64", len(whole.training) // 64)
    part = sample(whole, 2)
    assert (len(part.training), part.held_out) == (2 * BATCH, whole.held_out)
    assert part.training.queries != whole.training.queries[: 2 * BATCH]
    every = {pair: row for row, pair in enumerate(zip(whole.training.queries, whole.training.documents, strict=True))}
    drawn = [every[pair] for pair in zip(part.training.queries, part.training.documents, strict=True)]
    np.testing.assert_array_equal(
        part.training.vectors.queries(slice(None)), whole.training.vectors.queries(np.array(drawn))
    )


def test_ndcg_is_that_of_ir_measures() -> None:
    rng = np.random.default_rng(0)
    ranked = np.stack([rng.permutation(40)[:RANKS] for _ in range(50)])
    relevant = [rng.permutation(60)[: rng.integers(1, 15)].tolist() for _ in range(50)]
    judged = {str(query): {str(place): 1 for place in places} for query, places in enumerate(relevant)}
    run = {str(query): {str(place): -float(rank) for rank, place in enumerate(row)} for query, row in enumerate(ranked)}
    expected = {int(value.query_id): value.value for value in ir_measures.iter_calc([nDCG @ 10], judged, run)}
    assert ndcg(ranked, relevant) == pytest.approx([expected[query] for query in range(50)], abs=1e-6)


def test_share_to_reach_is_on_the_line_between_points() -> None:
    steps_of, curve = np.array([10.0, 20.0, 40.0]), np.array([0.2, 0.4, 0.5])
    assert share_to_reach(steps_of, curve, 0.3) == pytest.approx(15 / 40)
    assert share_to_reach(steps_of, curve, 0.1) == pytest.approx(10 / 40)
    assert share_to_reach(steps_of, curve, 0.6) == float("inf")


def test_runs_are_read_as_they_were_written(tmp_path: Path) -> None:
    run = Run("one", "ours, margin", "static", 2, Settings(0.07, 0.02), seed=1)
    scores = np.array([[0.0, 0.5], [0.25, 1.0]], np.float32)
    Runs(tmp_path).add(run, Curve(steps=[4, 8], scores=scores, seconds=3.0), {"hardness": 0.5})
    assert Runs(tmp_path).has(run) and not Runs(tmp_path).has(run._replace(seed=0))
    ((read, result),) = Runs(tmp_path)
    assert read == run
    assert [result.steps.tolist(), result.ndcg.tolist(), result.scores.tolist()] == [[4, 8], [0.25, 0.625], [0.25, 1.0]]
    assert result.costs == {"hardness": 0.5, "training_s": 3.0}


@pytest.mark.parametrize(("teacher", "place"), [(None, (3, -1)), (ARMS["taught by MiniLM"].teacher, (3, -1, 2, -1))])
def test_the_choice_is_better_than_all_its_neighbours_and_each_is_tried_once(
    teacher: Teacher | None, place: tuple[int, ...]
) -> None:
    first = first_settings("static", teacher)
    best = settings_at(first, place)
    tried = []

    def score(settings: Settings) -> float:
        """A slanted hill, on which the best of one parameter depends on the other."""
        tried.append(settings)
        given = [at / top for at, top in zip(settings, best, strict=True) if at is not None and top is not None]
        temperature, rate, *others = np.log2(given)
        return float(-(temperature**2) - rate**2 - 0.5 * temperature * rate - np.square(others).sum())

    assert choose(score, first) == best
    assert len(tried) == len(set(tried))
    for axis in range(len(place)):
        for step in (-1, 1):
            assert settings_at(first, tuple(at + step * (axis == each) for each, at in enumerate(place))) in tried


def test_the_choice_is_the_higher_of_the_hills_with_and_without_a_teacher() -> None:
    def score(settings: Settings) -> float:
        weight = math.log2(settings.teacher_weight or 0)
        return max(1 - (weight + 10) ** 2, -((weight - 2) ** 2))

    assert choose(score, first_settings("static", ARMS["taught by MiniLM"].teacher)).teacher_weight == 0.000977


def test_an_arm_with_a_temperature_keeps_it() -> None:
    first = first_settings("static", temperature=0.05)
    rates: list[float] = []

    def score(settings: Settings) -> float:
        assert settings.temperature == first.temperature == 0.05
        rates.append(settings.learning_rate)
        return -abs(settings.learning_rate - 4 * first.learning_rate)

    assert choose(score, first, keep_temperature=True) == first._replace(learning_rate=4 * first.learning_rate)
    assert max(rates) == 8 * first.learning_rate


def test_an_arm_listens_to_its_teacher_as_its_settings_say(training: Training) -> None:
    arm = ARMS["taught by MiniLM"].at(Settings(0.07, 0.1, teacher_temperature=0.2, teacher_weight=4.0))
    assert arm.teacher == replace(MINILM, temperature=0.2, weight=4.0)
    assert ARMS["mined, four"].at(Settings(0.07, 0.1)).teacher is None
    batch = next(arm.batches(training, 1, 0))
    vectors = torch.nn.functional.normalize(torch.randn(6 * BATCH, 4), dim=1)
    plain, *taught = (
        float(mining(RANDOM, teacher=teacher).loss(training)(vectors[:BATCH], vectors[BATCH:], batch, TEMPERATURE))
        for teacher in (None, *(Teacher(score=score_alike, temperature=1, weight=weight) for weight in (1, 4)))
    )
    assert taught[1] - plain == pytest.approx(4 * (taught[0] - plain), rel=1e-3) and taught[0] > plain


def test_temperatures_are_fixed_or_learned_or_fall_around_their_middle() -> None:
    fixed, learned, falling = (Temperature(0.1, 100, kind) for kind in ("fixed", "learned", "falling"))
    late = Temperature(0.1, 100, "late")
    assert [float(late(step)) for step in (50, 51)] == pytest.approx([0.1, 0.1 / 2**0.5])
    assert [falling(step).item() for step in (0, 50, 100)] == pytest.approx([0.2, 0.1, 0.05])
    assert [fixed(step).item() for step in (1, 100)] == pytest.approx([0.1, 0.1])
    assert [sum(each.requires_grad for each in kind.parameters()) for kind in (fixed, learned, falling)] == [0, 1, 0]


def test_the_summary_pairs_by_query_and_seed(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "static")
    ends = {("random", 2): 0.5, ("random", 4): 0.625, ("ours", 2): 0.75}
    for (arm, epochs), end in ends.items():
        for seed in range(3):  # the first chooses settings, and is in no mean
            scores = np.array([[0.0, 0.5], [end - 0.25, end + 0.25]], np.float32) if seed else np.ones((1, 3))
            curve = Curve(steps=[4, 8][-len(scores) :], scores=scores, seconds=3.0)
            settings = Settings(0.07 if arm == "random" else 0.1, 0.02)
            runs.add(Run("one", arm, "static", epochs, settings, seed), curve, dict.fromkeys(COSTS, 0.5))
    main(str(tmp_path / "static"))
    rows = {(row["arm"], int(row["epochs"])): row for row in read_tsv(tmp_path / "static.tsv", made_by="this test")}
    assert {key: float(row["ndcg"]) for key, row in rows.items()} == ends
    ours = rows["ours", 2]
    assert (ours["temperature"], ours["gain"]) == ("0.1", "+.250 ± .000")
    assert float(ours["reached"]) == 0.75  # on the line from .25 after 4 steps to .75 after 8
    assert rows["random", 2]["gain"] == ""
    grid = read_tsv(tmp_path / "static-grid.tsv", made_by="this test")
    assert [(row["arm"], row["temperature"], row["ndcg"]) for row in grid] == [
        ("ours", "0.1", "1"),
        ("random", "0.07", "1"),
        ("random", "0.07", "1"),
    ]


def test_hardness_stands_beside_quality_for_ways_that_order_the_same_pairs() -> None:
    measures = {"masked": "0.1", "ndcg": "0.5", "gain": ""}
    tried = [("ours", "0.3"), ("gcbs", "0.2"), ("random", "0.1"), ("mined, four", "0.4"), ("random, our loss", "0.1")]
    rows = [{"set": "birds", "arm": arm, "hardness": hardness, **measures} for arm, hardness in tried]
    found = hardness.by_hardness([*rows, {"set": "fish", "arm": "ours", "hardness": "1", **measures}], "birds")
    assert [(row["way"], row["loss"]) for row in found] == [
        ("random", "InfoNCE"), ("gcbs", "InfoNCE"), ("random, our loss", "our loss"), ("ours", "our loss")
    ]  # fmt: skip
    assert list(found[0]) == ["way", "loss", "hardness", "masked", "ndcg", "gain"]


def test_every_way_to_order_pairs_exists() -> None:
    assert {arm for arms in hardness.LOSSES.values() for arm in arms} <= set(ARMS)


def test_the_table_has_the_largest_gain_of_ours_first_and_the_means_last(tmp_path: Path) -> None:
    rows = [
        {"set": name, "arm": arm, "ndcg": ndcg, "gain": gain, "reached": reached}
        for name, arm, ndcg, gain, reached in (
            ("one", "ours", 0.51, "+.010 ± .003", "inf"),
            ("one", "random", 0.5, "", 1),
            ("one", "b3", 0.5, "+.000 ± .002", "inf"),
            ("two", "ours", 0.63, "+.030 ± .004", 0.5),
            ("two", "random", 0.6, "", 0.8),
            ("two", "b3", 0.59, "-.010 ± .002", "inf"),
            ("two", "not tried on both", 0.59, "-.010 ± .002", "inf"),
        )
    ]
    write_tsv(tmp_path / "static.tsv", rows)
    assert rivals_table([tmp_path / "static.tsv"]) == [
        ["set", "random", "ours", "b3", "ours after", "random after"],
        ["two", ".600", "+.030 ± .004", "-.010 ± .002", "0.50", "0.80"],
        ["one", ".500", "+.010 ± .003", "+.000 ± .002", "never", "1.00"],
        ["mean", ".550", "+.020 ± .010", "-.005 ± .005", "median never", "median 0.90"],
    ]


def test_the_table_of_seen_documents_compares_what_both_files_have(tmp_path: Path) -> None:
    gains = {
        "seen": {"random": {"one": "", "two": ""}, "ours": {"one": "+.010 ± .002", "two": "+.030 ± .002", "six": "9"}},
        "plain": {"ours": {"two": "-.010 ± .002", "one": "+.020 ± .002"}, "b3": {"one": "+.010 ± .002"}},
    }
    for file, by_arm in gains.items():
        ends = SEEN if file == "seen" else ""
        rows = [
            {"set": f"{name}{ends}", "kind": "static", "arm": arm, "ndcg": 0.5, "gain": gain}
            for arm, of_arm in by_arm.items()
            for name, gain in of_arm.items()
        ]
        write_tsv(tmp_path / f"{file}.tsv", rows)
    _, row = table_kinds.seen_table([tmp_path / "seen.tsv", tmp_path / "plain.tsv"], ["ours"])
    assert row == ["ours", "2", "+.020 ± .010", "+.005 ± .015"]


def test_the_table_of_masked_ways_has_a_row_per_set_and_masks(tmp_path: Path) -> None:
    rows = [
        {"set": name, "arm": arm, "ndcg": 0.5, "gain": gain}
        for name, arm, gain in (
            ("one", "random", ""),
            ("one", "ours, InfoNCE, alike, lower", "+.030 ± .004"),
            ("one", "ours", "+.010 ± .003"),
            ("one", "ours, alike", "+.015 ± .003"),
            ("one", "random, our loss, margin", "-.010 ± .002"),
            ("one", "random, alike, lower", "+.020 ± .004"),
            ("two", "random", ""),
        )
    ]
    write_tsv(tmp_path / "masks.tsv", rows)
    assert masked_ways_table([tmp_path / "masks.tsv"]) == [
        ["", "random", "random, our loss", "ours, InfoNCE", "ours"],
        ["one: known positives", ".500", "", "", "+.010 ± .003"],
        ["one: alike, lower", "+.020 ± .004", "", "+.030 ± .004", ""],
        ["one: alike", "", "", "", "+.015 ± .003"],
        ["one: margin", "", "-.010 ± .002", "", ""],
        ["two: known positives", ".500", "", "", ""],
    ]


def _hardness(training: Training, groups: list[NDArray[np.int64]]) -> float:
    found = []
    for rows in groups:
        scores = training.vectors.queries(rows) @ training.vectors.documents(rows).T
        found.append((scores.sum() - scores.trace()) / (len(rows) * (len(rows) - 1)))
    return float(np.mean(found))


@pytest.mark.slow
def test_random_batches_with_our_loss_are_nearest_the_whole_domain(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--vectors", str(pairs), "--batches", "4", "--shares", "1", "--output", str(pairs / "noise.tsv")]
    monkeypatch.setattr(sys, "argv", ["noise", str(pairs / "linked.parquet"), *options])
    noise.main()
    rows = read_tsv(pairs / "noise.tsv", made_by="experiments.rivals.noise")
    assert [float(row["temperature"]) for row in rows] == list(lessons.TEMPERATURES)
    for row in rows[lessons.TEMPERATURES.index(0.07) :]:
        assert 1 >= float(row["random, our loss"]) > float(row["hard 1, our loss"]) > 0


def test_what_the_softmax_gives_to_others_is_divided_between_the_cluster_and_the_rest() -> None:
    documents = np.eye(4, dtype=np.float32)
    queries = (confused.SETTINGS.temperature * np.log([[4, 2, 1, 1], [3, 3, 3, 1]])).astype(np.float32)
    inside = np.array([[True, True, False, False], [False, True, False, True]])
    found = confused.shares(queries, documents, np.array([0, 1]), inside)
    np.testing.assert_allclose(found, [(2 / 8 + 1 / 10) / (4 / 8 + 7 / 10), (4 / 8 + 3 / 10) / 2], rtol=1e-5)


def test_a_lesson_is_what_the_softmax_gives_to_others_and_counts_how_many_they_are() -> None:
    """Each query's own document has 2, the others have 1 and 1, or 3 and none."""
    scores = 0.05 * torch.tensor([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [3.0, 0.0, 2.0]]).log()
    counts = torch.full((3, 3), 3.0).fill_diagonal_(1)
    entropy = 2 * np.log(2) / 3  # of two documents twice, of one once
    measured = [lessons.lesson(scores, counts, 0.05, of) for of in ("batch", "domain")]
    np.testing.assert_allclose(measured[0], [(2 / 4 + 2 / 4 + 3 / 5) / 3, entropy], rtol=1e-5)
    np.testing.assert_allclose(measured[1], [(6 / 8 + 6 / 8 + 9 / 11) / 3, entropy], rtol=1e-5)


@pytest.mark.slow
def test_lessons_grow_with_the_loss_that_counts_the_domain(pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--vectors", str(pairs), "--output", str(pairs / "lessons.tsv")]
    monkeypatch.setattr(sys, "argv", ["lessons", str(pairs / "linked.parquet"), *options])
    lessons.main()
    rows = read_tsv(pairs / "lessons.tsv", made_by="experiments.rivals.lessons")
    assert [float(row["temperature"]) for row in rows] == list(lessons.TEMPERATURES)
    assert all(0 <= float(row["InfoNCE"]) <= float(row["our loss"]) <= 1 for row in rows)


def test_trials_of_several_lengths_and_rates_tell_which_rate_is_best(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--every", "4", "2", "--vectors", str(pairs), "--output", str(pairs / "trials.tsv")]
    monkeypatch.setattr(sys, "argv", ["trials", str(pairs / "linked.parquet"), *options])
    trials.main()
    short, long = read_tsv(pairs / "trials.tsv", made_by="experiments.rivals.trials")
    assert 2 * int(short["steps"]) == int(long["steps"])
    for row in (short, long):
        ndcg = {factor: float(row[f"{factor:g}"]) for factor in trials.FACTORS}
        assert ndcg[round(float(row["rate"]) / first_settings("static").learning_rate, 6)] == max(ndcg.values())


def test_untuned_arms_and_given_settings_need_no_runs_that_choose(pairs: Path) -> None:
    found, runs = read_set("linked", [pairs / "linked.parquet"], pairs), Runs(pairs / "runs")
    compare(found, runs, "ours, untuned", "static", 1, 1)
    compare(found, runs, "random", "static", 1, 2, Settings(0.3, 0.01))
    formula = static_temperature([len(set(found.training.documents))])
    assert sorted((run.arm, run.seed, run.settings[:2]) for run, _ in runs) == [
        ("ours, untuned", 1, (formula, 0.08)),
        ("random", 1, (0.3, 0.01)),
        ("random", 2, (0.3, 0.01)),
    ]


def test_best_temperatures_stand_beside_the_formula_in_the_order_of_documents(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pq.read_table(pairs / "linked.parquet").slice(0, 600), pairs / "small.parquet")
    np.savez(pairs / "small-tfidf.npz", query=topics(600, 0), document=topics(600, 1))
    of_sets = {"linked": 0.1, "small": 0.2}
    rows = [{"set": name, "arm": arm, "temperature": at} for name, at in of_sets.items() for arm in temperatures.WAYS]
    write_tsv(pairs / "best.tsv", rows)
    options = ["--table", str(pairs / "best.tsv"), "--vectors", str(pairs), "--output", str(pairs / "out.tsv")]
    files = [str(pairs / f"{name}.parquet") for name in of_sets]
    monkeypatch.setattr(sys, "argv", ["temperatures", *files, *options])
    assert "ours -1.00" in temperatures.main()
    small, linked = read_tsv(pairs / "out.tsv", made_by="experiments.rivals.temperatures")
    assert (small["set"], small["ours"], linked["set"], linked["random"]) == ("small", "0.2", "linked", "0.1")
    assert float(small["formula"]) > float(linked["formula"])
    assert int(small["documents"]) < int(linked["documents"])


def test_a_search_tells_what_other_sets_take_from_it() -> None:
    scores = np.full((2, 30), -1, np.float32)
    documents = np.repeat(["own", "other"], 15)
    scores[0, [15, 0]] = 2, 1  # its own document is behind another set's
    scores[1, 15:20] = np.arange(5, 0, -1)
    queries = np.array(["own", "other"])
    ndcg, alone, elsewhere = together.search(scores, [[0], [15]], queries, documents)
    np.testing.assert_allclose(ndcg, [1 / np.log2(3), 1], rtol=1e-6)
    np.testing.assert_allclose(alone, [1, 1])
    np.testing.assert_allclose(elsewhere, [0.1, 0.5])  # of equal scores, the first documents are ahead


def test_sets_that_are_searched_together_have_a_row_each(pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"query": f"q{n} zebra", "document": f"z{n} zebra", "domain": "two"} for n in range(900)]
    pq.write_table(pa.Table.from_pylist(rows), pairs / "zebras.parquet")
    np.savez(pairs / "zebras-tfidf.npz", query=topics(900, 0), document=topics(900, 1))
    best = {"set": "both", "kind": "static", "temperature": 0.07, "learning_rate": 0.08}
    write_tsv(pairs / "best.tsv", [{**best, "arm": arm} for arm in ("ours", "ours, without domains")])
    files = [str(pairs / f"{name}.parquet") for name in ("linked", "zebras")]
    options = ["--together", "both", "--settings", str(pairs / "best.tsv"), "--output", str(pairs / "sets.tsv")]
    monkeypatch.setattr(sys, "argv", ["together", *files, *options, "--vectors", str(pairs), "--seeds", "2"])
    together.main()
    together.main()
    rows = read_tsv(pairs / "sets.tsv", made_by="experiments.rivals.together")
    assert [row["set"] for row in rows] in (["linked", "zebras"], ["zebras", "linked"])
    assert all(0 <= float(row["found elsewhere, apart"]) <= 1 and "±" in row["gain"] for row in rows)


def test_a_spread_leaves_out_what_answers() -> None:
    queries = np.eye(2, dtype=np.float32)
    documents = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
    expected = np.mean([np.std([0.6, 0]), np.std([0, 0.8, 1])])
    assert spread.spread(queries, documents, [[0], []]) == pytest.approx(expected)


@pytest.mark.slow
def test_the_spread_of_a_static_model_is_measured_where_it_was_tuned(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = {"set": "linked", "arm": spread.ARM, "kind": "static", "epochs": 2, "temperature": 0.07}
    write_tsv(pairs / "best.tsv", [{**best, "learning_rate": 0.08}])
    monkeypatch.setattr(spread, "TABLES", (str(pairs / "best.tsv"),))
    options = ["--vectors", str(pairs), "--output", str(pairs / "spread.tsv")]
    monkeypatch.setattr(sys, "argv", ["spread", str(pairs / "linked.parquet"), *options])
    assert spread.main().startswith(f"{pairs / 'spread.tsv'}: rank correlation of the temperature with ")
    (row,) = read_tsv(pairs / "spread.tsv", made_by="experiments.rivals.spread")
    assert all(0 < float(row[name]) < 1 for name in ("start", "quarter", "half", "end"))


@pytest.mark.slow
def test_a_model_that_learns_confuses_a_querys_neighbours(pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tsv(
        pairs / "gains.tsv",
        [{"set": "linked", "arm": arm, "ndcg": n} for arm, n in (("ours", 0.5), (confused.ARM, 0.4))],
    )
    options = ["--vectors", str(pairs), "--gains", str(pairs / "gains.tsv"), "--output", str(pairs / "confused.tsv")]
    monkeypatch.setattr(confused, "EPOCHS", 24)
    monkeypatch.setattr(sys, "argv", ["confused", str(pairs / "linked.parquet"), *options])
    assert confused.main().startswith("1 sets in ")
    (row,) = read_tsv(pairs / "confused.tsv", made_by="experiments.rivals.confused")
    assert (row["set"], row["hard batches"]) == ("linked", "0.1")
    assert all(0 < float(row[name]) <= 1 for name in ("before", "early", "late", "own"))


@pytest.mark.slow
def test_processes_share_the_vectors_of_a_set_and_the_folder_of_runs(tmp_path: Path) -> None:
    rows = [{"query": f"find w{n} x{n % 7}", "document": f"the w{n} of x{n % 7}", "domain": "one"} for n in range(900)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pairs.parquet")
    options = ["--arms", "random", "random, our loss", "--processes", "2", "--seeds", "1", "--epochs", "1"]
    arguments = [str(tmp_path / "pairs.parquet"), *options, "--output", "runs", "--vectors", "vectors"]
    done = run_python("-m", "experiments.rivals", *arguments, cwd=tmp_path, PYTHONPATH=str(REPO))
    assert done.returncode == 0, done.stderr
    assert {run.arm for run, _ in Runs(tmp_path / "runs") if run.seed == 1} == {"random", "random, our loss"}
    assert [file.name for file in (tmp_path / "vectors").iterdir()] == ["pairs-tfidf.npz"]
