"""What share of a training step turns texts into tokens, and how many of the tokens are padding.

``python -m benchmarks.tokens`` reads batches of 128 docstrings and functions of SymPy at 32 and 64 tokens with the
tokenizer of all-MiniLM-L6-v2, and with a static model of 128 dimensions, which it trains. It prints medians of
processor time over all threads, which ``TOKENIZERS_PARALLELISM=false`` makes one.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import Tensor
from torch.nn import functional
from torch.optim import AdamW

from batchwright.core.command import new_parser
from batchwright.formats.models import locate_model
from batchwright.retrievers.common.model_folder import load_model
from benchmarks.passes import BATCH, MODEL, batches
from trainers.common.embed import embed, preprocess
from trainers.common.passes.groups import group_texts

T = TypeVar("T")
LENGTHS, WIDTH = (32, 64), 128


def main() -> None:
    """Print one line per length, and one for the static model."""
    parser = new_parser("benchmarks.tokens", str(__doc__), "python -m benchmarks.tokens")
    parser.add_argument("--batches", type=int, default=7)
    sides = batches(None, parser.parse_args().batches + 1)
    torch.set_num_threads(1)
    for length in LENGTHS:
        _transformer(load_model(locate_model(MODEL), length, "cpu"), length, sides)
    tokenizer = load_model(locate_model(MODEL), LENGTHS[-1], "cpu").tokenizer.backend_tokenizer
    tokenizer.enable_truncation(LENGTHS[-1])
    _static(SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=WIDTH)], device="cpu"), sides)


def _transformer(model: SentenceTransformer, length: int, sides: Sequence[tuple[list[str], list[str]]]) -> None:
    spent, padded, grouped, real = [], 0, 0, 0
    for texts in sides:
        read, seconds = _timed(partial(_tokens, model, texts))
        spent.append(seconds)
        for features in read:
            groups = group_texts(partial(_same, features), [""] * BATCH, np.arange(BATCH), BATCH)
            padded += features["attention_mask"].numel()
            grouped += sum(group.features["attention_mask"].numel() for group in groups)
            real += int(features["attention_mask"].sum())
    print(
        f"{length} tokens: {1000 * statistics.median(spent[1:]):.0f} ms for tokens; of texts, padding adds "
        f"{padded / real - 1:.0%}, in groups {grouped / real - 1:.0%}",
        flush=True,
    )


def _static(model: SentenceTransformer, sides: Sequence[tuple[list[str], list[str]]]) -> None:
    optimiser, spent = AdamW(model.parameters(), fused=True), []
    for texts in sides:
        read, tokens = _timed(partial(_tokens, model, texts))
        spent.append((tokens, _timed(partial(_step, model, optimiser, read))[1]))
    tokens, rest = (1000 * statistics.median(each) for each in zip(*spent[1:], strict=True))
    print(f"static, {LENGTHS[-1]} tokens: {tokens:.0f} ms for tokens, {rest:.0f} ms for the rest of a step")


def _tokens(model: SentenceTransformer, sides: Sequence[list[str]]) -> list[dict[str, Tensor]]:
    return [preprocess(model, texts) for texts in sides]


def _step(model: SentenceTransformer, optimiser: AdamW, read: list[dict[str, Tensor]]) -> None:
    queries, documents = (embed(model, features) for features in read)
    torch.autograd.backward(functional.cross_entropy(queries @ documents.T / 0.05, torch.arange(BATCH)))
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def _same(features: dict[str, Tensor], _: list[str]) -> dict[str, Tensor]:
    return features


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    return call(), time.process_time() - start


if __name__ == "__main__":
    main()
