"""Texts of the pairs, and the vocabulary and tokens made of them."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from tokenizers.trainers import WordPieceTrainer
from tqdm import tqdm
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerBase

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import text_keys
from batchwright.formats.pairs import domains, read_pairs
from trainers.pretraining.tokens import Special, write_stream

TRAINING = "training.tokens"
VALIDATION = "validation.tokens"
TOKENIZER = "tokenizer"
_BLOCK = 4096


def read_texts(pairs: Path, held_out: float, validation: bool) -> Iterator[list[str]]:
    """Texts of the training pairs in blocks, each once a domain and side.

    A text's hash decides whether it is among the share ``held_out`` for ``validation``.
    """
    for domain in domains(pairs):
        table = read_pairs(pairs, domain, "train")
        for side in ("query", "document"):
            texts = pc.unique(table[side])
            for start in range(0, len(texts), _BLOCK):
                block = texts.slice(start, _BLOCK).to_pylist()
                drawn = _shares(block) < held_out
                yield [text for text, own in zip(block, drawn, strict=True) if own == validation]


def train_vocabulary(texts: Callable[[], Iterable[list[str]]], size: int) -> PreTrainedTokenizerBase:
    """A lower-casing WordPiece tokenizer as BERT's, with at most ``size`` pieces; ``texts`` gives blocks, twice.

    Raises:
        InputError: so few pieces cannot hold the texts' characters.
    """
    blank = BertTokenizer()
    special = blank.convert_ids_to_tokens(list(range(len(blank))))
    inner = sorted({f"##{letter}" for block in texts() for text in block for letter in _inner_letters(blank, text)})
    # The trainer numbers inner letters, and so breaks ties, in a hash map's order, unless it is given them.
    trainer = WordPieceTrainer(vocab_size=size, special_tokens=[*special, *inner], show_progress=False)
    blank.backend_tokenizer.train_from_iterator(
        tqdm(texts(), desc="vocabulary", unit="block", mininterval=2, delay=2), trainer
    )
    vocabulary = blank.backend_tokenizer.get_vocab()
    if len(vocabulary) > size:
        raise InputError(
            f"pretrain.seed_encoder.encoder.vocab_size: {size} pieces cannot hold the texts' characters; "
            f"raise it to {len(vocabulary)} at least, better to ten times that"
        )
    return BertTokenizer(vocab=vocabulary)


def special_tokens(tokenizer: PreTrainedTokenizerBase, source: str) -> Special:
    """The ids that pre-training needs.

    Raises:
        InputError: the tokenizer lacks one of them.
    """
    ids = {name: getattr(tokenizer, f"{name}_token_id") for name in ("cls", "sep", "pad", "mask")}
    if lacking := [name for name, number in ids.items() if number is None]:
        raise InputError(
            f"{source}: its tokenizer has no {' and no '.join(lacking)} token, which pre-training needs; "
            "take a BERT-like encoder, or add the token to its tokenizer and resize its embeddings"
        )
    return Special(**ids)


def write_corpus(folder: Path, pairs: Path, held_out: float, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write the tokenizer and both streams into ``folder``.

    Raises:
        InputError: there is nothing to train on, or nothing to validate on.
    """
    tokenizer.save_pretrained(folder / TOKENIZER)
    for name, validation in ((TRAINING, False), (VALIDATION, True)):
        blocks = tqdm(read_texts(pairs, held_out, validation), desc=name, unit="block", mininterval=2, delay=2)
        texts = (ids for block in blocks if block for ids in _tokenise(tokenizer, block))
        write_stream(folder / name, texts, int(tokenizer.sep_token_id))
        if (folder / name).stat().st_size == 0:
            if next(read_texts(pairs, held_out, validation), None) is None:
                raise InputError(f"{pairs}: no training pairs; all are held out, so lower ingest.held_out or give more")
            use, change = ("validation", "raise") if validation else ("training", "lower")
            remedy = f"give more pairs, or {change} pretrain.seed_encoder.held_out from {held_out}"
            raise InputError(f"{pairs}: no text is left for {use}; {remedy}")


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer that ``write_corpus`` wrote, or a model's own."""
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _tokenise(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[int]]:
    found = tokenizer(
        texts,
        add_special_tokens=False,
        split_special_tokens=True,  # a text that says [MASK] is a text
        return_attention_mask=False,
        verbose=False,
    )
    ids: list[list[int]] = found["input_ids"]
    return ids


def _inner_letters(tokenizer: BertTokenizer, text: str) -> set[str]:
    """Letters that stand inside a word, once normalised."""
    backend = tokenizer.backend_tokenizer
    words = backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))
    return set("".join(word[1:] for word, _ in words))


def _shares(texts: list[str]) -> NDArray[np.float64]:
    """A number in [0, 1) for each text, from its hash."""
    shares: NDArray[np.float64] = text_keys(texts).view("<u4").reshape(len(texts), -1)[:, 0] / 2**32
    return shares
