"""Chunks depend on content alone."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from batchwright.core.fingerprint import text_keys
from pipelines.embed import chunks
from pipelines.embed.chunks import Chunk, cut_chunks

TEXTS = st.lists(st.integers(0, 400).map(lambda number: "x" * (number % 9) + str(number)), max_size=150)


def cut(texts: list[str], mean: int = 8, most: int = 32) -> list[Chunk]:
    chunks.MEAN_TEXTS, chunks.MOST_TEXTS = mean, most
    try:
        return list(cut_chunks(texts))
    finally:
        chunks.MEAN_TEXTS, chunks.MOST_TEXTS = 512, 2048


@given(TEXTS)
def test_chunks_contain_each_text_once_in_order_of_length(texts: list[str]) -> None:
    in_order = [text for chunk in cut(texts) for text in chunk.texts]
    assert sorted(in_order) == sorted(set(texts))
    lengths = [len(text) for text in in_order]
    assert lengths == sorted(lengths)


@given(TEXTS)
def test_a_chunk_has_the_keys_of_its_texts_and_no_more_than_the_maximum(texts: list[str]) -> None:
    for chunk in cut(texts, most=12):
        assert 0 < len(chunk.texts) <= 12
        assert chunk.keys.tobytes() == text_keys(chunk.texts).tobytes()


@given(TEXTS, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_of_texts_matters(texts: list[str], random: Random) -> None:
    shuffled = texts * 2
    random.shuffle(shuffled)
    assert [chunk.name for chunk in cut(texts)] == [chunk.name for chunk in cut(shuffled)]


@given(TEXTS, st.integers(0, 400))
@settings(max_examples=200)
def test_one_more_text_changes_only_the_chunk_it_falls_into(texts: list[str], number: int) -> None:
    text = "x" * (number % 9) + str(number)
    before = {chunk.name: chunk for chunk in cut(texts, most=10**6)}
    after = {chunk.name: chunk for chunk in cut([*texts, text], most=10**6)}
    gone = [chunk for name, chunk in before.items() if name not in after]
    new = [chunk for name, chunk in after.items() if name not in before]
    if text in texts:
        assert not gone
        assert not new
    else:
        assert len(gone) <= 1
        assert 1 <= len(new) <= 2  # two if the chunk is cut after the new text
        assert sorted(text for chunk in new for text in chunk.texts) == sorted(
            [text, *(old for chunk in gone for old in chunk.texts)]
        )


def test_chunks_have_about_the_requested_size() -> None:
    sizes = [len(chunk.texts) for chunk in cut([str(number) for number in range(4000)], mean=16, most=64)]
    assert 12 < sum(sizes) / len(sizes) < 20
    assert max(sizes) <= 64


def test_chunks_with_different_texts_have_different_names() -> None:
    assert cut(["a", "b"], mean=10**9)[0].name != cut(["a", "c"], mean=10**9)[0].name
