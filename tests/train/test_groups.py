"""Texts in groups of similar length."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from batchwright.retrievers.common.model_folder import load_model
from batchwright.training.batches import TrainBatch
from tests.train.toys import WORDS, write_toy_model
from trainers.common.gradient_cache import text_numbers
from trainers.common.texts import Cut, Group, group_texts, split_by_length, split_evenly


def cost(lengths: np.ndarray, groups: list[np.ndarray], pass_cost: int) -> int:
    return sum(len(group) * int(lengths[group].max()) + pass_cost for group in groups)


LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=14)


@given(LENGTHS, st.integers(0, 30), st.integers(1, 200))
def test_groups_hold_every_text_once_and_cost_least(found: list[int], pass_cost: int, tokens: int) -> None:
    lengths = np.array(found)
    groups = split_by_length(lengths, Cut(tokens=tokens, pass_cost=pass_cost))
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(lengths)))
    assert all(len(group) == 1 or cost(lengths, [group], 0) <= tokens for group in groups)
    ordered = np.sort(lengths)

    @cache
    def least(end: int) -> int:
        """The cost of the best cuts of the shortest ``end`` texts, if all fit into one group."""
        return min((least(start) + (end - start) * ordered[end - 1] + pass_cost for start in range(end)), default=0)

    if tokens >= len(lengths) * max(found):
        assert cost(lengths, groups, pass_cost) == least(len(lengths))


@given(LENGTHS, st.integers(1, 60))
def test_packed_groups_have_about_as_many_tokens_each(found: list[int], tokens: int) -> None:
    lengths = np.array(found)
    groups = split_evenly(lengths, tokens)
    assert np.concatenate(groups).tolist() == list(range(len(lengths)))
    assert len(groups) <= -(-lengths.sum() // tokens)
    assert max(int(lengths[group].sum()) for group in groups) <= tokens + max(found)


def grouped(folder: Path, cut: Cut) -> tuple[SentenceTransformer, list[str], list[Group]]:
    model = load_model(write_toy_model(folder / "toy"), 16, "cpu")
    texts = [" ".join(WORDS[:count]) for count in (12, 1, 2, 11, 1)] * 20
    return model, texts, group_texts(model.preprocess, texts, np.arange(100, 200), cut)


def test_groups_are_cut_without_the_padding_of_others(tmp_path: Path) -> None:
    model, texts, groups = grouped(tmp_path, Cut(tokens=512))
    assert len(groups) > 1
    for group in groups:
        assert (group.numbers == group.places + 100).all()
        alone = model.preprocess([texts[place] for place in group.places])
        assert group.features.keys() == alone.keys()
        for key in ("input_ids", "attention_mask"):
            assert group.features[key].tolist() == alone[key].tolist()
    assert group_texts(model.preprocess, [], np.arange(0), Cut(tokens=64)) == []


@pytest.mark.parametrize("packed", [False, True])
def test_halves_hold_the_same_texts(tmp_path: Path, packed: bool) -> None:
    model, texts, groups = grouped(tmp_path, Cut(tokens=4096, packed=packed))
    for group in groups:
        halves = group.halves()
        assert np.concatenate([half.places for half in halves]).tolist() == group.places.tolist()
        for half in halves:
            ids, present = (half.features[key] for key in ("input_ids", "attention_mask"))
            alone = model.preprocess([texts[place] for place in half.places])
            assert ids[present == 1].tolist() == alone["input_ids"][alone["attention_mask"] == 1].tolist()
            assert (half.packing is not None) == packed
    (only,) = group_texts(model.preprocess, texts[:1], np.arange(1), Cut(tokens=4096))
    assert len(only.halves()) == 1


def test_few_shapes_occur_on_a_gpu(tmp_path: Path) -> None:
    """Lengths are multiples of 8 and texts of 32; those that fill up are not read."""
    _, _, groups = grouped(tmp_path, Cut(tokens=512, pass_cost=8, lengths=8, counts=32))
    for group in groups:
        rows, columns = group.features["input_ids"].shape
        assert (rows % 32, columns in (8, 14)) == (0, True), "no text has 16 tokens"
        assert group.tokens == rows * columns
        assert len(group.places) <= rows
    assert sorted(place for group in groups for place in group.places) == list(range(100))


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
