"""Which pairs share a batch, and the order of batches."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from batchwright.core.errors import InputError
from batchwright.formats.clusters import NONE, Clusters
from stages.pack.params import PackParams
from stages.pack.plan import POLICIES, Batch, plan_batches


def make_clusters(sizes: list[int], seed: int = 0) -> Clusters:
    """Return clusters of the given sizes with members in random rows."""
    generator = np.random.default_rng(seed)
    assignment = generator.permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(np.int32)
    return Clusters(assignment=assignment, centroids=generator.normal(size=(len(sizes), 2, 4)).astype(np.float32))


def plan(
    policy: str = "contextual",
    seed: int = 1,
    batch_size: int = 4,
    epochs: int = 3,
    more: dict[str, Any] | None = None,
    **sizes: list[int],
) -> list[Batch]:
    params = {"batch_size": batch_size, "epochs": epochs, "batches_per_shard": 3, **(more or {})}
    clusters = {domain: [make_clusters(of)] for domain, of in sizes.items()}
    return plan_batches(clusters, policy, PackParams.model_validate(params), seed)


def cut(rows: NDArray[np.int64], batch_size: int) -> NDArray[np.int64]:
    """Cut rows into whole batches ``(n, batch_size)``."""
    return rows[: len(rows) // batch_size * batch_size].reshape(-1, batch_size)


def content(batches: list[Batch], domain: str | None = None) -> list[tuple[int, str, list[int]]]:
    return [(each.epoch, each.domain, each.rows.tolist()) for each in batches if domain in (None, each.domain)]


@pytest.mark.parametrize("policy", POLICIES)
@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=8),
    batch_size=st.integers(2, 12),
    share=st.floats(0, 1),
    seed=st.integers(0, 9),
)
@settings(max_examples=60, deadline=None)
def test_a_policy_orders_each_pair_once(
    policy: str, sizes: list[int], batch_size: int, share: float, seed: int
) -> None:
    order = POLICIES[policy](make_clusters([*sizes, 1]), batch_size, share, np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(sum(sizes) + 1))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_pairs_that_the_filter_dropped_are_in_no_batch(policy: str, share: float) -> None:
    clusters = make_clusters([7, 9, 4])
    clusters.assignment[[3, 11]] = NONE
    order = POLICIES[policy](clusters, 4, share, np.random.default_rng(0))
    assert sorted(order.tolist()) == [row for row in range(20) if row not in (3, 11)]


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_a_batch_takes_the_requested_share_from_each_of_its_clusters(share: float) -> None:
    clusters = make_clusters([16] * 20)
    batches = cut(POLICIES["contextual"](clusters, 8, share, np.random.default_rng(0)), 8)
    of = np.sort(clusters.assignment[batches], axis=1)
    together = [np.unique(batch, return_counts=True)[1].min() for batch in of]
    assert all(count >= 8 * share for count in together)
    alone = np.mean([len(set(batch)) == 1 for batch in of.tolist()])
    assert alone == 1 if share == 1 else alone < 0.3


@given(sizes=st.lists(st.integers(1, 30), min_size=2, max_size=8), batch_size=st.integers(2, 8))
@settings(max_examples=60, deadline=None)
def test_a_cluster_fills_as_many_contextual_batches_alone_as_it_can(sizes: list[int], batch_size: int) -> None:
    clusters = make_clusters(sizes)
    batches = cut(POLICIES["contextual"](clusters, batch_size, 1.0, np.random.default_rng(0)), batch_size)
    pure = Counter(of.tolist()[0] for of in clusters.assignment[batches] if len(set(of.tolist())) == 1)
    assert all(pure[cluster] >= size // batch_size for cluster, size in enumerate(sizes))


def test_clusters_too_small_to_fill_a_batch_share_one_with_their_nearest_neighbours() -> None:
    angles = np.random.default_rng(0).permutation(np.linspace(0, np.pi, 24, endpoint=False))
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    clusters = Clusters(
        assignment=np.repeat(np.arange(24), 2).astype(np.int32),
        centroids=np.stack([circle, circle], axis=1).astype(np.float32),
    )
    batches = cut(POLICIES["contextual"](clusters, 6, 1.0, np.random.default_rng(0)), 6)
    spans = np.sort(np.ptp(angles[clusters.assignment[batches]], axis=1))
    # The tour turns back once it reaches an end of the half circle, so at most one batch spans more.
    np.testing.assert_allclose(spans[:-1], 2 * np.pi / 24)


def test_no_pair_appears_twice_in_an_epoch_and_epochs_are_in_order() -> None:
    batches = plan(birds=[9, 5, 8], fish=[7, 7])
    assert [each.epoch for each in batches] == sorted(each.epoch for each in batches)
    for epoch in range(3):
        used = [(each.domain, row) for each in batches if each.epoch == epoch for row in each.rows.tolist()]
        assert len(set(used)) == len(used) == 4 * (22 // 4 + 14 // 4)


@pytest.mark.parametrize("policy", POLICIES)
def test_epochs_have_different_batches_and_left_over_pairs(policy: str) -> None:
    by_epoch: list[set[frozenset[int]]] = [set() for _ in range(3)]
    for each in plan(policy, batch_size=8, birds=[30, 19, 26]):
        by_epoch[each.epoch].add(frozenset(each.rows.tolist()))
    assert not by_epoch[0] & by_epoch[1]
    assert not by_epoch[1] & by_epoch[2]
    left_over = [frozenset(range(75)) - frozenset().union(*batches) for batches in by_epoch]
    assert len(set(left_over)) > 1


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("sizes", [[9, 10, 8, 8, 9, 9], [26, 27], [16, 9, 12]])
def test_no_pair_is_left_over_in_every_epoch(sizes: list[int], share: float) -> None:
    batches = plan(epochs=4, batch_size=8, more={"cluster_share": [share]}, birds=sizes)
    assert {row for each in batches for row in each.rows.tolist()} == set(range(sum(sizes)))


def test_the_batches_of_all_domains_are_mixed() -> None:
    of_epoch = [each.domain for each in plan(epochs=1, birds=[40, 40], fish=[40, 40])]
    assert of_epoch != sorted(of_epoch)
    assert of_epoch != sorted(of_epoch, reverse=True)


def test_the_same_seed_gives_the_same_batches_and_another_seed_different_ones() -> None:
    assert content(plan(birds=[9, 5])) == content(plan(birds=[9, 5]))
    assert content(plan(birds=[9, 5])) != content(plan(birds=[9, 5], seed=2))


def test_a_domain_does_not_change_the_batches_of_another() -> None:
    def birds(**others: list[int]) -> list[tuple[int, str, list[int]]]:
        return sorted(content(plan(birds=[9, 5, 8], **others), "birds"))

    assert birds() == birds(fish=[7, 7]) == birds(ants=[30], zebras=[12])


def test_two_domains_of_the_same_shape_get_different_draws() -> None:
    batches = plan("random", birds=[20], fish=[20])
    assert {str(rows) for _, _, rows in content(batches, "birds")} != {
        str(rows) for _, _, rows in content(batches, "fish")
    }


def test_domains_smaller_than_a_batch_are_named_with_their_sizes() -> None:
    refuse = {"small_domains": "refuse"}
    with pytest.raises(InputError, match=r"batch_size is 8, but these .*: 'ants' \(7\), 'bees' \(1\); lower pack"):
        plan(batch_size=8, more=refuse, ants=[4, 3], bees=[1], cats=[8])
    with pytest.raises(InputError, match=r"'d09' \(1\) and 5 more; lower"):
        plan(batch_size=8, more=refuse, **{f"d{number:02}": [1] for number in range(15)})


def test_the_share_changes_with_the_epoch_and_the_last_value_is_repeated() -> None:
    batches = plan(epochs=4, batch_size=4, more={"cluster_share": [0.0, 1.0]}, birds=[4] * 20)
    of = make_clusters([4] * 20).assignment
    alone = [np.mean([len(set(of[each.rows].tolist())) == 1 for each in batches if each.epoch == e]) for e in range(4)]
    assert alone[0] < 0.2
    assert alone[1:] == [1, 1, 1]


def test_epochs_rotate_through_the_draws_of_clusters() -> None:
    draws = [make_clusters([4] * 10, seed) for seed in range(2)]
    params = PackParams(batch_size=4, epochs=3, cluster_share=[1.0], batches_per_shard=3)
    batches = plan_batches({"birds": draws}, "contextual", params, 1)
    for epoch in range(3):
        of = draws[epoch % 2].assignment
        assert all(len(set(of[each.rows].tolist())) == 1 for each in batches if each.epoch == epoch)


@pytest.mark.parametrize("policy", POLICIES)
def test_refilled_batches_leave_no_pair_out_and_repeat_no_more_than_necessary(policy: str) -> None:
    batches = plan(policy, epochs=1, batch_size=8, more={"left_over": "refill"}, birds=[9, 5, 6])
    rows = [row for each in batches for row in each.rows.tolist()]
    assert set(rows) == set(range(20))
    assert len(rows) == 24
    assert all(len(set(each.rows.tolist())) == 8 for each in batches)


@pytest.mark.parametrize(("weight", "batches"), [(0.5, 5), (1, 10), (1.5, 15), (2, 20), (0.01, 0)])
def test_a_weight_is_the_number_of_passes_over_a_domain_in_an_epoch(weight: float, batches: int) -> None:
    planned = plan(epochs=1, more={"weights": {"birds": weight}}, birds=[40], fish=[8])
    assert Counter(each.domain for each in planned) == Counter({"birds": batches, "fish": 2})
    times = Counter(row for each in planned if each.domain == "birds" for row in each.rows.tolist())
    assert max(times.values(), default=0) <= max(1, round(weight + 0.49))


@pytest.mark.parametrize(("weight", "batches"), [(0.5, 5), (1.5, 15), (0.1, 1), (0.3, 3), (2.9, 29), (0.01, 0)])
def test_what_a_weight_takes_of_a_batch_adds_up_over_the_epochs(weight: float, batches: int) -> None:
    planned = plan(epochs=10, more={"weights": {"birds": weight}}, birds=[6], fish=[8])
    epochs = Counter(each.epoch for each in planned if each.domain == "birds")
    assert epochs.total() == batches
    assert all(int(weight) <= epochs[epoch] <= int(weight) + 1 for epoch in range(10))


def test_a_domain_without_training_pairs_has_no_batches() -> None:
    assert {each.domain for each in plan(batch_size=8, bees=[0], cats=[8])} == {"cats"}


def test_the_message_mentions_dropped_pairs_if_too_few_are_left() -> None:
    clusters = make_clusters([9])
    clusters.assignment[[2, 5, 6]] = NONE
    params = PackParams(batch_size=8, epochs=1, cluster_share=[1.0], small_domains="refuse", batches_per_shard=3)
    with pytest.raises(InputError, match=r"'ants' \(6, of 9 before the filter\); lower"):
        plan_batches({"ants": [clusters]}, "random", params, 1)


def test_weights_that_leave_no_batch_are_refused() -> None:
    with pytest.raises(InputError, match=r"no batch is left; raise pack\.weights"):
        plan(more={"weights": {"birds": 0.01}}, birds=[40])
    with pytest.raises(InputError, match="no domain has training pairs"):
        plan(birds=[0])


def test_a_weight_of_an_unknown_domain_is_refused() -> None:
    with pytest.raises(InputError, match=r"pack\.weights: unknown domain 'bird'; the domains are birds, fish"):
        plan(more={"weights": {"bird": 2}}, birds=[40], fish=[8])


def test_ten_thousand_domains_of_three_pairs_are_packed() -> None:
    batches = plan(batch_size=3, epochs=1, **{f"d{number}": [3] for number in range(10_000)})
    assert len(batches) == 10_000
