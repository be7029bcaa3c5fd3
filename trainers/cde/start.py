"""The encoder that CDE training starts from."""

from pathlib import Path
from typing import cast

from sentence_transformers.base.modules import Transformer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from batchwright.core.errors import InputError
from batchwright.formats.prefixes import Prefixes
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.folder import load_contextual
from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.common.sentence_model import check_length, load_model
from trainers.cde.params import Params


def start_from(start: Path, params: Params, info: ModelInfo) -> ContextualEncoder:
    """Build an encoder from the model ``start``, with the settings of ``params`` and ``info``.

    A CDE folder passes on everything that was trained, but not its context, which was fitted to a corpus. With any
    other sentence-transformers model, both stages start as copies of its transformer; its pooling is not used.

    Raises:
        InputError: there is no such model, it cannot read context vectors, it reads fewer tokens than
            ``info.max_length``, or it was trained with another ``context_reads_text``.
    """
    if info.variant == "cde":
        return _continue_from(start, params, info)
    first, second = (load_model(start, info.max_length, "cpu") for _ in range(2))
    if not isinstance(first[0], Transformer):
        raise InputError(f"model '{start}': begins with {type(first[0]).__name__}; CDE needs a transformer encoder")
    try:
        stages = [cast(PreTrainedModel, model[0].model) for model in (first, second)]
        return _encoder(stages[0], stages[1], first.tokenizer, params, info)
    except ValueError as error:
        raise InputError(f"model '{start}': {error}") from None


def _continue_from(start: Path, params: Params, info: ModelInfo) -> ContextualEncoder:
    model = load_contextual(start, "cpu").float()
    check_length(start, model, info.max_length)
    trained = cast(ContextualEncoder, model[0])
    if trained.context_reads_text != params.context_reads_text:
        needed = str(trained.context_reads_text).lower()
        raise InputError(
            f"model '{start}': was trained with context_reads_text {needed}; "
            f"set parameter 'train.cde.context_reads_text' to {needed}, or start from another model"
        )
    encoder = _encoder(trained.first, trained.second, trained.tokenizer, params, info)
    encoder.null = trained.null
    return encoder


def _encoder(
    first: PreTrainedModel,
    second: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    params: Params,
    info: ModelInfo,
) -> ContextualEncoder:
    return ContextualEncoder(
        first,
        second,
        tokenizer,
        documents=params.context_documents,
        max_seq_length=info.max_length,
        unpooled_prefixes=[] if params.pool_prefix else _texts(info.prefixes),
        context_reads_text=params.context_reads_text,
    )


def _texts(prefixes: Prefixes) -> list[str]:
    every = [prefixes.default, *prefixes.domains.values()]
    return sorted({text for prefix in every for text in (prefix.query, prefix.document) if text})
