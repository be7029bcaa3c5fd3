"""What CDE training starts with: its parameters, and the encoder."""

from pathlib import Path
from typing import Literal, cast

from pydantic import Field
from sentence_transformers.sentence_transformer.modules import Pooling

from batchwright.core.errors import InputError
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.retriever import limit_stages, load_contextual
from batchwright.retrievers.common.model_folder import ModelInfo, load_model
from trainers.common.params import VariantParams


class Params(VariantParams):
    """Group ``train.cde``."""

    context_documents: int = Field(default=16, ge=0)
    """J: how many context documents each text is embedded with, drawn from the batch; 0 makes a plain biencoder."""
    context_dropout: float = Field(default=0.1, ge=0, le=1)
    """Share of the steps that train without context, so that the model stays good without one."""
    first_stage: Literal["separate", "shared"] = "separate"
    """What embeds the context documents: ``separate``, an encoder with weights of its own, as in the paper; or
    ``shared``, the encoder that embeds texts."""
    pool_prefix: bool = True
    """Whether the mean over a text's tokens includes the tokens of its prefix."""


def start_from(start: Path, params: Params, info: ModelInfo) -> ContextualEncoder:
    """Build an encoder from the model ``start``, with the settings of ``params`` and ``info``.

    A CDE folder passes on everything that was trained, but not its context, which was fitted to a corpus. Of any other
    sentence-transformers model, both stages start as copies, or as one, with its pooling and all other layers; it is
    exactly that model at first, because the gates are shut.

    Raises:
        InputError: there is no such model, it cannot read context vectors, it reads fewer tokens than
            ``info.max_length``, its stages are not those of ``params``, or it does not take a mean that a prefix can
            stay out of.
    """
    shared = params.first_stage == "shared"
    encoder = _continue_from(start, info) if info.variant == "cde" else _enter(start, info, shared)
    if encoder.shared != shared:
        found, needed = ("one encoder", "shared") if encoder.shared else ("two encoders", "separate")
        raise InputError(f"model '{start}': has {found}; set parameter 'train.cde.first_stage' to {needed}")
    encoder.documents = params.context_documents
    encoder.unpooled_prefixes = [] if params.pool_prefix else info.prefixes.texts()
    means = [module for module in encoder.second if isinstance(module, Pooling) and module.pooling_mode == "mean"]
    if not params.pool_prefix and not means:
        raise InputError(
            f"model '{start}': does not take a mean over tokens, so a prefix cannot stay out of it; "
            "set parameter 'train.cde.pool_prefix' to true"
        )
    return encoder


def _enter(start: Path, info: ModelInfo, shared: bool) -> ContextualEncoder:
    second = load_model(start, info.max_length, "cpu")
    first = second if shared else load_model(start, info.max_length, "cpu")
    try:
        return ContextualEncoder(first, second, documents=0)
    except ValueError as error:
        raise InputError(f"model '{start}': {error}") from None


def _continue_from(start: Path, info: ModelInfo) -> ContextualEncoder:
    model = load_contextual(start, "cpu").float()
    trained = cast(ContextualEncoder, model[0])
    limit_stages(f"model '{start}'", trained, info.max_length)
    trained.clear_context()
    return trained
