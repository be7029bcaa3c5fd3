"""Encoders that read texts which are already tokenised, so that many runs can share the tokens."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import Tensor, nn
from torch.nn import functional

from batchwright.formats.models import locate_model
from experiments.common.small_models import LEARNING_RATES, LENGTH, VOCABULARY_OF, save_start_model
from trainers.common.backbones import attend_in_float32
from trainers.common.job import training_device
from trainers.common.packing import backbones
from trainers.common.passes import computes_bfloat16
from trainers.common.texts import Cut, split_by_length

Kind = Literal["static", "transformer", "minilm"]
RATES: dict[Kind, float] = {
    "static": 8e-2,
    "transformer": LEARNING_RATES["transformer"],
    "minilm": 2e-4,
}
LENGTHS: dict[Kind, int] = {"static": 128, "transformer": LENGTH, "minilm": 128}
"""Tokens of a text that are read: a static model reads many at little cost, MiniLM on a GPU."""
PADDING = 0


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Token ids of M texts, one after the other; text i has ``ids[starts[i] : starts[i + 1]]``."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]

    def bags(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Token ids of some texts, and where each of these texts starts."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        starts = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(self.starts[rows] - starts, lengths)
        return torch.from_numpy(self.ids[places]), torch.from_numpy(starts)

    def padded(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Token ids ``(n, L)`` of some texts, and their attention mask."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        columns = np.arange(lengths.max())
        present = columns < lengths[:, None]
        ids = np.where(present, self.ids.take(self.starts[rows][:, None] + columns, mode="clip"), PADDING)
        return torch.from_numpy(ids), torch.from_numpy(present.astype(np.int64))


class Static(nn.Module):
    """The mean of one vector per token."""

    def __init__(self, weights: Tensor, tokens: Tokens) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag.from_pretrained(weights.clone(), freeze=False, mode="mean")
        self.tokens = tokens

    def forward(self, rows: NDArray[np.int64]) -> Tensor:
        """Unit vectors of some texts."""
        return functional.normalize(self.embedding(*self.tokens.bags(rows)), dim=-1)


class Transformer(nn.Module):
    """A sentence-transformers model, on the GPU if there is one; in bfloat16, where there are kernels for it."""

    def __init__(self, model: SentenceTransformer, tokens: Tokens) -> None:
        super().__init__()
        self.device = training_device()
        self.model, self.tokens = model.to(self.device), tokens
        if self.device == "cpu":
            attend_in_float32(backbones(model))

    def forward(self, rows: NDArray[np.int64]) -> Tensor:
        """Unit vectors of some texts."""
        groups = self._groups(rows)
        vectors = torch.cat([self._encode(rows[group]) for group in groups])
        return functional.normalize(vectors[torch.from_numpy(np.argsort(np.concatenate(groups)))], dim=-1)

    def _groups(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Groups of similar length, as in training, however large."""
        return split_by_length(self.tokens.starts[rows + 1] - self.tokens.starts[rows], Cut.on(self.device, 2**30))

    def _encode(self, rows: NDArray[np.int64]) -> Tensor:
        ids, attention = (each.to(self.device) for each in self.tokens.padded(rows))
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=computes_bfloat16(self.device)):
            vectors = self.model({"input_ids": ids, "attention_mask": attention})["sentence_embedding"]
        return cast(Tensor, vectors).float()


def start_model(kind: Kind, seed: int) -> SentenceTransformer:
    """MiniLM, or a small model whose weights ``seed`` draws."""
    if kind == "minilm":
        return SentenceTransformer(str(locate_model(VOCABULARY_OF)), device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        save_start_model(Path(folder), kind, seed, LENGTHS[kind])
        return SentenceTransformer(folder, device="cpu", local_files_only=True)


def tokenise(kind: Kind, texts: Sequence[str]) -> Tokens:
    """Token ids of texts; of each, the first ``LENGTHS[kind]``."""
    model = start_model(kind, 0)
    if kind == "static":
        tokenizer = cast(StaticEmbedding, model[0]).tokenizer
        ids = [encoding.ids for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
    else:
        ids = model.tokenizer(list(texts), truncation=True, max_length=LENGTHS[kind])["input_ids"]
    starts = np.cumsum([0, *map(len, ids)])
    return Tokens(ids=np.concatenate([np.asarray(each, dtype=np.int64) for each in ids]), starts=starts)


def tokenise_once(kind: Kind, *columns: Sequence[str]) -> tuple[Tokens, list[NDArray[np.int64]]]:
    """Tokenise each different text of some columns once; return also where each column's texts are among them."""
    texts = sorted(set().union(*columns))
    place = {text: number for number, text in enumerate(texts)}
    return tokenise(kind, texts), [np.array([place[text] for text in column]) for column in columns]


def build(kind: Kind, seed: int, tokens: Tokens) -> nn.Module:
    """The start model, reading ``tokens``. A static one keeps the vectors of tokens that occur: the others never
    change what it does."""
    model = start_model(kind, seed)
    if kind != "static":
        return Transformer(model, tokens)
    used, ids = np.unique(tokens.ids, return_inverse=True)
    return Static(
        cast(StaticEmbedding, model[0]).embedding.weight.detach()[used], Tokens(ids=ids, starts=tokens.starts)
    )
