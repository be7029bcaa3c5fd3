"""Builds a vocabulary and token streams from the texts of the pairs, and more."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, compress, islice, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tokenizers.trainers import WordPieceTrainer
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerBase

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import text_keys
from batchwright.core.spill import blocks_of, keys_of, unique_order
from batchwright.core.terminal import bar
from batchwright.formats.models import SIDES
from batchwright.formats.pairs import domains, scan_texts
from trainers.pretraining.tokens import Special, write_stream

TRAINING = "training.tokens"
VALIDATION = "validation.tokens"
TOKENIZER = "tokenizer"
_BLOCK = 4096
_TEXTS = pa.schema([pa.field("text", pa.large_string())])


def write_texts(file: Path, rows: Iterable[list[str]]) -> tuple[int, int]:
    """Write the texts of all ``rows`` as the one column of a Parquet file.

    Returns:
        The number of texts, and the number of rows without any.
    """
    texts, empty = 0, 0
    with pq.ParquetWriter(file, _TEXTS) as writer:
        rows = iter(rows)
        while block := list(islice(rows, _BLOCK)):
            added = [text for row in block for text in row]
            writer.write_table(pa.table([pa.array(added, pa.large_string())], _TEXTS))
            texts, empty = texts + len(added), empty + block.count([])
    return texts, empty


def read_texts(pairs: Path, more: Path | None, held_out: float, validation: bool) -> Iterator[list[str]]:
    """Yield the texts of the training pairs in blocks, each text once per domain and side, then those of ``more``.

    ``more`` is a file that ``write_texts`` wrote. ``validation`` selects the texts held out for validation, or all
    others. A text's hash decides whether it is among the share ``held_out``.
    """
    for block in chain(_texts_of_pairs(pairs), _texts_of(more) if more else ()):
        drawn = _shares(block) < held_out
        yield [text for text, own in zip(block, drawn, strict=True) if own == validation]


def _texts_of_pairs(pairs: Path) -> Iterator[list[str]]:
    for domain, side in product(domains(pairs), SIDES):
        keys = keys_of(scan_texts(pairs, domain, side, "train"))
        first = np.zeros(len(keys), bool)
        first[unique_order(keys)] = True
        yield from blocks_of(compress(scan_texts(pairs, domain, side, "train"), first))


def _texts_of(file: Path) -> Iterator[list[str]]:
    with pq.ParquetFile(file, memory_map=True) as table:  # not mapped, batches leave behind all that was read
        for batch in table.iter_batches(_BLOCK):
            yield batch.column(0).to_pylist()


def train_vocabulary(texts: Callable[[], Iterable[list[str]]], size: int) -> PreTrainedTokenizerBase:
    """Train a lower-casing WordPiece tokenizer like BERT's, with at most ``size`` pieces.

    ``texts`` is called twice and must return the same blocks each time.

    Raises:
        InputError: the characters of the texts alone need more pieces.
    """
    blank = BertTokenizer()
    special = blank.convert_ids_to_tokens(list(range(len(blank))))
    inner = sorted({f"##{letter}" for block in texts() for text in block for letter in _inner_letters(blank, text)})
    # Without these, the trainer would number inner letters in the order of a hash map, and it breaks ties by number.
    trainer = WordPieceTrainer(vocab_size=size, special_tokens=[*special, *inner], show_progress=False)
    blank.backend_tokenizer.train_from_iterator(bar(texts(), desc="vocabulary", unit="block"), trainer)
    vocabulary = blank.backend_tokenizer.get_vocab()
    if len(vocabulary) > size:
        raise InputError(
            f"encoder.vocab_size: {size} pieces cannot hold the texts' characters; "
            f"raise it to at least {len(vocabulary)}, preferably ten times that"
        )
    return BertTokenizer(vocab=vocabulary)


def special_tokens(tokenizer: PreTrainedTokenizerBase, source: str) -> Special:
    """Look up the special token ids that pre-training needs.

    Raises:
        InputError: the tokenizer lacks one of them.
    """
    ids = {name: getattr(tokenizer, f"{name}_token_id") for name in ("cls", "sep", "pad", "mask")}
    if lacking := [name for name, number in ids.items() if number is None]:
        raise InputError(
            f"{source}: its tokenizer has no {' and no '.join(lacking)} token, which pre-training needs; "
            "use a BERT-like encoder, or add the token to its tokenizer and resize its embeddings"
        )
    return Special(**ids)


def write_corpus(
    folder: Path, pairs: Path, more: Path | None, held_out: float, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Write the tokenizer and the token streams for training and validation into ``folder``.

    Raises:
        InputError: there is no text to train on, or none to validate on.
    """
    tokenizer.save_pretrained(folder / TOKENIZER)
    for name, validation in ((TRAINING, False), (VALIDATION, True)):
        blocks = bar(read_texts(pairs, more, held_out, validation), desc=name, unit="block")
        texts = (ids for block in blocks if block for ids in _tokenise(tokenizer, block))
        write_stream(folder / name, texts, int(tokenizer.sep_token_id))
        if (folder / name).stat().st_size == 0:
            if next(read_texts(pairs, more, held_out, validation), None) is None:
                raise InputError(f"{pairs}: no training pairs; all are held out, so lower ingest.held_out or add pairs")
            use, change = ("validation", "raise") if validation else ("training", "lower")
            remedy = f"add pairs, or {change} held_out from {held_out}"
            raise InputError(f"{pairs}: no text is left for {use}; {remedy}")


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer that ``write_corpus`` wrote, or that of a model folder."""
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _tokenise(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[int]]:
    encoded = tokenizer(
        texts,
        add_special_tokens=False,
        split_special_tokens=True,  # [MASK] in a text is ordinary text
        return_attention_mask=False,
        verbose=False,
    )
    ids: list[list[int]] = encoded["input_ids"]
    return ids


def _inner_letters(tokenizer: BertTokenizer, text: str) -> set[str]:
    """The letters that follow the first one in any word of the normalised text."""
    backend = tokenizer.backend_tokenizer
    words = backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))
    return set("".join(word[1:] for word, _ in words))


def _shares(texts: list[str]) -> NDArray[np.float64]:
    """Map each text to a number in [0, 1) by its hash."""
    shares: NDArray[np.float64] = text_keys(texts).view("<u4").reshape(len(texts), -1)[:, 0] / 2**32
    return shares
