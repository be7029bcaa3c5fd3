"""How many kernels a step would launch on a GPU, counted on the CPU: ours and sentence-transformers'."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.gpu.corpus import FULL, SMALL
from benchmarks.gpu.launches import counted, launches
from benchmarks.gpu.lengths import KEPT, Lengths
from benchmarks.gpu.steps import OURS, PADDED, THEIRS, settings
from trainers.common.memory import GPU_TOKENS
from trainers.common.packing import Packing
from trainers.common.texts import Cut, split_evenly

AT_MOST = {OURS: 3_000, PADDED: 7_500}


@pytest.fixture(scope="module")
def counts() -> dict[str, Counter[str]]:
    """Launches of a step, by operator."""
    mixed = settings(FULL)[0]
    return {contender: launches(FULL, mixed, contender) for contender in (*AT_MOST, THEIRS)}


def test_all_layers_launch_as_much() -> None:
    small, mixed = replace(SMALL, base=replace(SMALL.base, layers=4)), settings(SMALL)[0]
    (whole,) = counted(small, mixed, OURS, [4])
    assert launches(small, mixed, OURS) == whole


def test_sentence_transformers_launch_what_their_mini_batches_say(counts: dict[str, Counter[str]]) -> None:
    """Four mini batches a side, forward twice and back once; twelve layers of six products, and a pooler."""
    calls = counts[THEIRS]
    assert calls["addmm"] == 2 * 8 * (12 * 6 + 1)
    assert calls["native_layer_norm_backward"] == 8 * (2 * 12 + 1)
    assert calls.total() == pytest.approx(12_000, rel=0.1)


@pytest.mark.parametrize("contender", AT_MOST)
def test_a_step_launches_few_kernels(counts: dict[str, Counter[str]], contender: str) -> None:
    """Packed, and padded as for models that cannot read packed texts."""
    assert counts[contender].total() <= AT_MOST[contender] < counts[THEIRS].total()


def test_packed_texts_have_no_new_shape_after_ten_steps() -> None:
    lengths, rng, seen = Lengths.read(KEPT), np.random.default_rng(0), list[set[tuple[int, int]]]()
    for _ in range(30):
        shapes = set()
        for side in lengths.draw(rng, 1024, 128).T:
            for texts in split_evenly(side, Cut.on("cuda", GPU_TOKENS, packed=True).tokens):
                packing = Packing.of(np.arange(128) < side[texts, None], 128)
                shapes.add((len(packing.places), len(packing.starts)))
        seen.append(shapes)
    assert set().union(*seen[10:]) <= set().union(*seen[:10])
