"""What CDE training starts with: its parameters, and the encoder."""

from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import Field
from sentence_transformers.sentence_transformer.modules import Pooling

from batchwright.core.errors import InputError
from batchwright.core.names import NamedPath
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder, Form
from batchwright.retrievers.cde.retriever import limit_stages, load_contextual
from batchwright.retrievers.cde.sequence import check_sequence
from batchwright.retrievers.common.model_folder import ModelInfo, load_model
from trainers.common.params import Common, VariantParams


class Params(VariantParams):
    """Group ``train.cde``."""

    context_documents: int = Field(default=16, ge=0)
    """J: how many context documents each text is embedded with, drawn from the batch; 0 makes a plain biencoder."""
    context: Form = "gated"
    """How texts read the context. ``gated``: each layer attends to it separately, through gates that begin shut.
    ``sequence``, as in the paper: its vectors stand before the text's tokens, so that texts are J tokens longer, and a
    learned null vector stands for each missing document. ``prompted``, for runs that start from the authors' released
    models: eight learned vectors stand between the context and the text."""
    context_bias: float | None = Field(default=-2.0, allow_inf_nan=False)
    """``sequence``: where a learned bias of the attention to context vectors begins, for each layer and head, beside
    -log of their number. The lower, the closer is an untrained model to its start model, which context disturbs; null,
    as in the paper: no bias."""
    context_dropout: float = Field(default=0.1, ge=0, le=1)
    """Share of the steps that train without context, so that the model stays good without one; in the paper 0."""
    null_share: float = Field(default=0.005, ge=0, le=1)
    """``sequence``: share of the context vectors that the null vector replaces in training."""
    first_stage: Literal["separate", "shared"] | Annotated[NamedPath, Field(pattern="/")] = "separate"
    """What embeds the context documents: ``separate``, an encoder with weights of its own, as in the paper; ``shared``,
    the encoder that embeds texts; or a model that a separate one begins as, such as ``models/start/NAME``, which DVC
    does not watch."""
    first_stage_gradient: bool = True
    """Whether the loss trains what embeds the context documents through them."""
    pool_prefix: bool = True
    """Whether the mean over a text's tokens includes the tokens of its prefix."""

    def check(self, name: str, common: Common) -> None:  # noqa: ARG002
        """See ``VariantParams``."""
        for option in ("context_bias", "null_share") if self.context != "sequence" else ():
            if getattr(self, option) != Params.model_fields[option].default:
                raise InputError(f"train {name}: {option} is for context: sequence; set one of the two")

    def models(self) -> list[Path]:
        """See ``VariantParams``."""
        return [] if self.first_stage in ("separate", "shared") else [Path(self.first_stage)]


def start_from(start: Path, params: Params, info: ModelInfo, first: Path | None = None) -> ContextualEncoder:
    """Build an encoder from the model ``start``, with the settings of ``params`` and ``info``.

    A CDE folder passes on everything that was trained, but not its context, which was fitted to a corpus. Of any other
    sentence-transformers model, both stages start as copies, or as one, with its pooling and all other layers; with
    gates, which are shut, it is exactly that model at first. If ``params`` name another model for stage 1, ``first`` is
    where that lies, by default as they say.

    Raises:
        InputError: there is no such model, it cannot read context vectors, it reads fewer tokens than
            ``info.max_length``, its stages or its form of context are not those of ``params``, or it does not take a
            mean that a prefix can stay out of.
    """
    encoder = _continue_from(start, params, info) if info.variant == "cde" else _enter(start, params, info, first)
    encoder.documents = params.context_documents
    encoder.unpooled_prefixes = [] if params.pool_prefix else info.prefixes.texts()
    means = [module for module in encoder.second if isinstance(module, Pooling) and module.pooling_mode == "mean"]
    if not params.pool_prefix and not means:
        raise InputError(
            f"model '{start}': does not take a mean over tokens, so a prefix cannot stay out of it; "
            "set parameter 'train.cde.pool_prefix' to true"
        )
    return encoder


def _enter(start: Path, params: Params, info: ModelInfo, first: Path | None) -> ContextualEncoder:
    if params.context == "prompted":
        raise InputError(
            f"model '{start}': has no prompts, as released CDE models have; set parameter 'train.cde.context' to gated "
            "or sequence"
        )
    second = load_model(start, info.max_length, "cpu")
    source = first or next(iter(params.models()), start)
    stage = second if params.first_stage == "shared" else load_model(source, info.max_length, "cpu")
    for one in (stage, second):
        if getattr(one.tokenizer, "padding_side", None) == "left":
            one.tokenizer.padding_side = "right"  # so that positions count from a text's first token, as context does
    try:
        encoder = ContextualEncoder(stage, second, documents=0, form=params.context, bias=params.context_bias)
        if params.context == "sequence":
            check_sequence(encoder.backbone, *encoder.heads)
    except ValueError as error:
        raise InputError(f"model '{start}': {error}") from None
    return encoder


def _continue_from(start: Path, params: Params, info: ModelInfo) -> ContextualEncoder:
    model = load_contextual(start, "cpu").float()
    trained = cast(ContextualEncoder, model[0])
    limit_stages(f"model '{start}'", trained, info.max_length)
    _check_kept(start, trained, params)
    trained.clear_context()
    return trained


def _check_kept(start: Path, trained: ContextualEncoder, params: Params) -> None:
    """Check that ``params`` ask for what a CDE that is trained further has already."""
    found, needed = ("one encoder", "shared") if trained.shared else ("two encoders", "separate")
    if params.first_stage != needed:
        raise InputError(f"model '{start}': has {found}; set parameter 'train.cde.first_stage' to {needed}")
    if trained.form != params.context:
        raise InputError(
            f"model '{start}': its context is {trained.form}; set parameter 'train.cde.context' to {trained.form}"
        )
    if trained.form == "prompted" and trained.unpooled_prefixes and params.pool_prefix:
        raise InputError(
            f"model '{start}': leaves prefixes out of its mean; set parameter 'train.cde.pool_prefix' to false"
        )
    if trained.form == "sequence" and (trained.bias is None) != (params.context_bias is None):
        found, needed = ("no bias", "null") if trained.bias is None else ("a bias", "a number")
        raise InputError(f"model '{start}': has {found}; set parameter 'train.cde.context_bias' to {needed}")
