"""From texts to a vocabulary and a token stream, and from that to sequences."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from batchwright.core.errors import InputError
from tests.helpers import topic_pairs, tree, write_pairs, write_rows
from tests.train.toys import toy_tokenizer
from trainers.pretraining.corpus import read_texts, special_tokens, train_vocabulary, write_corpus, write_texts
from trainers.pretraining.tokens import (
    Special,
    Stream,
    batch_numbers,
    join_texts,
    part_texts,
    read_stream,
    write_stream,
)

SPECIAL = Special(cls=2, sep=3, pad=0, mask=4)


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(5, 90), max_size=40), min_size=1, max_size=12), st.integers(8, 20), st.booleans())
def test_sequences_hold_every_token_once_and_in_order(tmp_path_factory, texts, length, one_text) -> None:
    file = tmp_path_factory.mktemp("stream") / "tokens"
    write_stream(file, texts, SPECIAL.sep)
    cut = (part_texts if one_text else join_texts)(read_stream(file, SPECIAL), length)
    rows = cut.rows(np.arange(len(cut)))
    assert (rows[:, 0] == SPECIAL.cls).all()
    body = [token for row in rows for token in row[1:] if token not in (SPECIAL.pad, SPECIAL.sep)]
    assert body == [token for text in texts for token in text]
    for row in rows:
        text = row[row != SPECIAL.pad]
        assert text[-1] == SPECIAL.sep
        assert not (text[-2:] == SPECIAL.sep).all() or len(text) == 2 or [] in texts


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(5, 90), max_size=40), max_size=12), st.integers(8, 20))
def test_one_text_a_sequence_cuts_each_text_into_as_few_pieces_as_possible(texts, length) -> None:
    stream = Stream(np.array([token for text in texts for token in [*text, SPECIAL.sep]], np.int32), SPECIAL)
    cut = part_texts(stream, length)
    width = length - 2
    expected = [text[start : start + width] for text in texts for start in range(0, len(text), width)]
    found = [[token for token in row if token != SPECIAL.pad] for row in cut.rows(np.arange(len(cut))).tolist()]
    assert found == [[SPECIAL.cls, *piece, SPECIAL.sep] for piece in expected]


def test_joined_texts_end_with_a_separator_inside_a_sequence() -> None:
    stream = Stream(np.array([7, 8, 3, 9, 3, 11], np.int32), SPECIAL)
    assert join_texts(stream, 8).rows(np.arange(1)).tolist() == [[2, 7, 8, 3, 9, 3, 11, 3]]
    assert join_texts(stream, 7).rows(np.arange(2)).tolist() == [[2, 7, 8, 3, 9, 3, 0], [2, 11, 3, 0, 0, 0, 0]]


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 99))
def test_every_epoch_reads_every_sequence_once(sequences, batch, seed) -> None:
    steps = -(-3 * sequences // batch)
    read = np.concatenate([batch_numbers(step, batch, sequences, seed) for step in range(steps)])
    for epoch in range(3):
        assert sorted(read[epoch * sequences : (epoch + 1) * sequences]) == list(range(sequences))


def test_every_text_is_either_for_training_or_for_validation(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = topic_pairs(80)
    write_rows("toys", [(q, d, "train") for q, d in pairs] + [("held out query", "held out document", "test")])
    training, validation = (
        [text for block in read_texts(Path("data/pairs"), None, 0.3, side) for text in block] for side in (False, True)
    )
    assert sorted(training + validation) == sorted(text for pair in pairs for text in pair)
    assert 20 < len(validation) < 80


def test_more_texts_are_read_after_those_of_the_pairs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_pairs("toys", topic_pairs(20))
    more = [[f"text {number}", f"other {number}"] if number % 3 else [] for number in range(9000)]
    assert write_texts(tmp_path / "more", more) == (12000, 3000)
    both, pairs = (
        [text for block in read_texts(Path("data/pairs"), file, 0.0, False) for text in block]
        for file in (tmp_path / "more", None)
    )
    assert both == pairs + [text for row in more for text in row]


def test_the_vocabulary_is_the_same_every_time_and_within_its_size(tmp_path: Path) -> None:
    texts = [[text for pair in topic_pairs(50) for text in pair]]
    for name in ("first", "second"):
        tokenizer = train_vocabulary(lambda: texts, 120)
        tokenizer.save_pretrained(tmp_path / name)
    assert tree(tmp_path / "first") == tree(tmp_path / "second")
    assert 40 < len(tokenizer) <= 120
    assert tokenizer.unk_token_id not in tokenizer("topic1 Q0 w12")["input_ids"]


def test_a_vocabulary_too_small_for_the_characters_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"vocab_size: 10 pieces cannot hold the texts' characters; raise it to at least \d+"
    ):
        train_vocabulary(lambda: [["many different letters, and more"]], 10)


def test_a_tokenizer_without_a_mask_token_is_refused() -> None:
    with pytest.raises(InputError, match="model 'x': its tokenizer has no mask token"):
        special_tokens(toy_tokenizer(), "model 'x'")
    with pytest.raises(InputError, match="no cls and no sep and no mask token"):
        special_tokens(PreTrainedTokenizerFast(tokenizer_object=toy_tokenizer()._tokenizer, pad_token="[PAD]"), "y")


@pytest.mark.parametrize(("held_out", "use"), [(1e-9, "validation"), (1 - 1e-9, "training")])
def test_a_corpus_without_training_or_validation_text_is_refused(tmp_path: Path, monkeypatch, held_out, use) -> None:
    monkeypatch.chdir(tmp_path)
    write_pairs("toys", topic_pairs(5))
    tokenizer = train_vocabulary(lambda: [["topic words"]], 200)
    with pytest.raises(InputError, match=f"no text is left for {use}"):
        write_corpus(tmp_path / "corpus", Path("data/pairs"), None, held_out, tokenizer)


def test_without_training_pairs_the_advice_is_not_another_share(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_pairs("toys", topic_pairs(5), split="test")
    tokenizer = train_vocabulary(lambda: read_texts(Path("data/pairs"), None, 0.02, False), 200)
    with pytest.raises(InputError, match=r"no training pairs; all are held out, so lower ingest.held_out or add pairs"):
        write_corpus(tmp_path / "corpus", Path("data/pairs"), None, 0.02, tokenizer)
