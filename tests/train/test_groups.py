"""Texts in groups of similar length."""

from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.retrievers.common.model_folder import load_model
from batchwright.training.batches import TrainBatch
from tests.train.toys import WORDS, write_toy_model
from trainers.common.gradient_cache import text_numbers
from trainers.common.sentence_learner import preprocess
from trainers.common.texts import group_texts, split_by_length


def cost(lengths: np.ndarray, groups: list[np.ndarray], pass_cost: int) -> int:
    return sum(len(group) * int(lengths[group].max()) + pass_cost for group in groups)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=14), st.integers(0, 30), st.integers(1, 20))
def test_groups_hold_every_text_once_and_cost_least(found: list[int], pass_cost: int, most: int) -> None:
    lengths = np.array(found)
    groups = split_by_length(lengths, most, pass_cost)
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(lengths)))
    assert max(map(len, groups)) <= most
    ordered = np.sort(lengths)

    @cache
    def least(end: int) -> int:
        """The cost of the best cuts of the shortest ``end`` texts, if all fit into one group."""
        return min((least(start) + (end - start) * ordered[end - 1] + pass_cost for start in range(end)), default=0)

    if most >= len(lengths):
        assert cost(lengths, groups, pass_cost) == least(len(lengths))


def test_groups_are_cut_without_the_padding_of_others(tmp_path: Path) -> None:
    model = load_model(write_toy_model(tmp_path / "toy"), 16, "cpu")
    texts = [" ".join(WORDS[:count]) for count in (12, 1, 2, 11, 1)] * 20
    groups = group_texts(partial(preprocess, model), texts, np.arange(100, 200), 64)
    assert len(groups) > 1
    for group in groups:
        assert (group.numbers == group.places + 100).all()
        alone = preprocess(model, [texts[place] for place in group.places])
        assert group.features.keys() == alone.keys()
        for key in ("input_ids", "attention_mask"):
            assert group.features[key].tolist() == alone[key].tolist()
    assert group_texts(partial(preprocess, model), [], np.arange(0), 64) == []


@pytest.mark.parametrize("world", [1, 2, 3])
def test_each_text_of_a_batch_has_its_own_number_on_any_rank(world: int) -> None:
    counts = np.array([2, 0, 1, 3, 0])
    numbers = []
    for rank in range(world):
        batch = TrainBatch(
            index=0,
            rows=slice(rank, None, world),
            queries=[],
            documents=[],
            negatives=[],
            negative_counts=counts,
            masked=np.zeros((5, 5), bool),
            stands_for=None,
        )
        numbers += np.concatenate(text_numbers(batch)).tolist()
    rows = range(5)
    negatives = [(2 + nth) * 5 + row for row in rows for nth in range(counts[row])]
    assert sorted(numbers) == sorted([*rows, *(5 + row for row in rows), *negatives])
