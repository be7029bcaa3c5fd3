"""What pre-training takes of memory and disk, estimated before texts are tokenised."""

from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import torch
from transformers import AutoConfig, AutoModel, BertTokenizer, PreTrainedModel

from batchwright.core.room import check_disk, check_memory
from batchwright.core.spill import MOST_CHARACTERS
from batchwright.core.storage import Storage
from batchwright.formats.models import loading
from batchwright.formats.pairs import domains, group_sizes, pairs_size
from trainers.common.job import check_room, training_device
from trainers.common.passes.chunk import Chunk
from trainers.pretraining.decoders import Shape
from trainers.pretraining.encoder import new_encoder
from trainers.pretraining.model import Head, build_decoder
from trainers.pretraining.params import VALIDATED, NewEncoder, PretrainParams

_TOKEN = 3
"""Bytes of a token's text, at least, but for rare languages."""
_IN_CORPUS, _READING = 4, 9
"""Bytes that a token takes in the corpus, and when tokens are counted."""
_TOKENISING = 80
"""Bytes that tokenising takes for each byte of a block of texts."""
_LOGITS = 4
"""How often logits are in memory: with their softmax, and the gradients of both."""


def check_pretraining(
    params: PretrainParams,
    start: Path | None,
    pairs: Path,
    more: Path | None,
    corpus: Path,
    storage: Storage,
    model: Path,
) -> None:
    """Check room for the ``corpus`` of texts and for the training of the model.

    Raises:
        InputError: there is too little, or no encoder can be built from the parameters.
    """
    texts = sum(pairs_size(pairs, domain).bytes for domain in domains(pairs)) + (_texts_size(more) if more else 0)
    tokens = texts / _TOKEN
    if not corpus.exists():
        check_disk({corpus.parent: _IN_CORPUS * tokens}, "the corpus of tokens")
        check_memory(_TOKENISING * min(texts, MOST_CHARACTERS), "making the corpus of tokens")
    weights, vocabulary = model_size(params, start)
    chunk = Chunk.of(params.mini_batch_size, params.max_length, training_device())
    predicted = min(chunk.size, max(params.batch_size, VALIDATED)) * params.max_length
    logits = 4 * vocabulary * predicted * (1 if params.decoder else params.mlm_probability)
    check_room(weights, storage, model, _READING * tokens + _LOGITS * logits)


def model_size(params: PretrainParams, start: Path | None) -> tuple[int, int]:
    """Bytes of the weights to train, in float32, and how many tokens the model knows, at most.

    Raises:
        InputError: no encoder can be built from the parameters.
    """
    with torch.device("meta"):  # which has no memory
        encoder = _encoder(params, start)
        shape = Shape.of(encoder, params.max_length)
        vocabulary = len(cast(torch.Tensor, encoder.get_input_embeddings().weight))
        parts = [encoder, Head(shape.width, vocabulary), build_decoder(shape, params.decoder)]
    return 4 * sum(each.numel() for part in parts if part for each in part.parameters()), vocabulary


def _encoder(params: PretrainParams, start: Path | None) -> PreTrainedModel:
    if isinstance(params.encoder, NewEncoder):
        config = {"vocab_size": params.encoder.vocab_size, **params.encoder.config}
        return new_encoder(params.encoder.model_copy(update={"config": config}), BertTokenizer())
    with loading(f"model '{start}'"):
        config = AutoConfig.from_pretrained(cast(Path, start), local_files_only=True)
        found: PreTrainedModel = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    return found


def _texts_size(file: Path) -> int:
    return sum(group_sizes(pq.read_metadata(file)))
