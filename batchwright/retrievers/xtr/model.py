"""The model of XTR: loading, saving, and one vector per token of a text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import MultiVectorEncoder
from torch import Tensor

from batchwright.core.arguments import check_texts
from batchwright.core.terminal import counter
from batchwright.formats.lengths import MaxLength, limit_length
from batchwright.formats.models import Prefix, Prefixes, loading
from batchwright.retrievers.common.model_folder import set_prompts
from batchwright.retrievers.xtr.prefixes import leave_out

Task = Literal["query", "document"]


def load_token_model(
    folder: Path,
    max_length: MaxLength,
    device: str | None = None,
    prefixes: Prefixes | None = None,
    name: str | None = None,
) -> MultiVectorEncoder:
    """Load a MultiVectorEncoder in float32, without network access, that cuts texts to ``max_length`` tokens.

    Texts come with their ``prefixes``, whose tokens are left out; see ``leave_out``. ``name`` is for messages.

    Raises:
        InputError: the folder is damaged, or the model reads fewer tokens.
    """
    what = f"model '{name or folder}'"
    with loading(what):
        model = MultiVectorEncoder(str(folder), device=device, local_files_only=True).float()
    limit_length(what, model, max_length)
    set_prompts(model, Prefix())
    leave_out(model, prefixes or Prefixes())
    return model


def save_token_model(model: MultiVectorEncoder, folder: Path, prefix: Prefix) -> None:
    """Write ``folder``, with the prefixes as the prompts of ``encode_query`` and ``encode_document``."""
    set_prompts(model, prefix)
    model.save(str(folder), create_model_card=False)


_BATCH = 64
_BLOCK = 1024


class TokenVectors(NamedTuple):
    """Concatenated token vectors of N texts.

    ``vectors`` ``(T, d)`` float32 are of unit length, ``ids`` ``(T,)`` int64 are their token ids, and ``lengths``
    ``(N,)`` int64 is the number of tokens of each text.
    """

    vectors: NDArray[np.float32]
    ids: NDArray[np.int64]
    lengths: NDArray[np.int64]


def encode_tokens(model: MultiVectorEncoder, texts: Sequence[str], task: Task) -> TokenVectors:
    """Encode texts, which must include their prefix, into one ``TokenVectors``."""
    width = model.get_embedding_dimension() or 0
    none = TokenVectors(np.empty((0, width), np.float32), np.empty(0, np.int64), np.empty(0, np.int64))
    blocks = [none, *encode_blocks(model, texts, task)]
    return TokenVectors(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def encode_blocks(model: MultiVectorEncoder, texts: Sequence[str], task: Task) -> Iterator[TokenVectors]:
    """Encode texts, which must include their prefix, in blocks of ``_BLOCK`` texts, each batched by length.

    Raises:
        InputError: ``texts`` is no list of texts.
    """
    check_texts("texts", texts)
    model.eval()
    with counter(len(texts), desc=f"encode {task} tokens", unit="text") as progress:
        for start in range(0, len(texts), _BLOCK):
            with torch.no_grad():
                found = _encode_block(model, list(texts[start : start + _BLOCK]), task)
            vectors, ids = (np.concatenate(parts) for parts in zip(*found, strict=True))
            yield TokenVectors(vectors, ids, np.array([len(each) for _, each in found], np.int64))
            progress.update(len(found))


def _encode_block(
    model: MultiVectorEncoder, texts: list[str], task: Task
) -> list[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    found: dict[int, tuple[NDArray[np.float32], NDArray[np.int64]]] = {}
    for start in range(0, len(order), _BATCH):
        chosen = order[start : start + _BATCH]
        features = model.preprocess([texts[number] for number in chosen], task=task)
        placed = {key: each.to(model.device) if isinstance(each, Tensor) else each for key, each in features.items()}
        output = model(placed, task=task)
        kept = output["attention_mask"].bool()
        for place, number in enumerate(chosen):
            vectors, ids = (output[key][place][kept[place]].cpu().numpy() for key in ("token_embeddings", "input_ids"))
            found[number] = vectors, ids
    return [found[number] for number in range(len(texts))]
