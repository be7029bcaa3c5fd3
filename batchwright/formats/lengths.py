"""How many tokens models read: of any text, or of queries and documents each."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.core.terminal import shown
from batchwright.formats.models import SIDES, Prefixes, Side, loading

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from sentence_transformers.base.model import BaseModel
    from torch.nn import Module


class Lengths(Params):
    """The maximum number of tokens of each side's texts."""

    query: int = Field(ge=2)
    """Of queries."""
    document: int = Field(ge=2)
    """Of documents."""


MaxLength = Annotated[int, Field(ge=2)] | Lengths


def length_of(max_length: MaxLength, side: Side | None = None) -> int:
    """The maximum number of tokens of one side's texts; None means of any text."""
    if isinstance(max_length, int):
        return max_length
    of = {"query": max_length.query, "document": max_length.document}
    return of[side] if side else max(of.values())


def limit_length(what: str, model: "BaseModel", max_length: MaxLength) -> None:
    """Let the sentence-transformers ``model`` cut texts; lengths of sides go by the ``task`` that it is called with.

    Raises:
        InputError: it reads fewer tokens, or cannot cut queries and documents differently.
    """
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    longest, first = length_of(max_length), model[0]
    check_length(what, model, longest)
    if isinstance(first, StaticEmbedding):
        first.tokenizer.enable_truncation(longest)  # these read whole texts, unless their tokenizer cuts them
    elif any(isinstance(module, StaticEmbedding) for module in model.modules()):
        raise InputError(
            f"{what}: begins with {type(first).__name__}, where a StaticEmbedding and others are not cut alike; take a "
            "model with transformers only"
        )
    else:
        model.max_seq_length = longest
    differ = isinstance(max_length, Lengths)
    if hasattr(first, "query_length"):
        for side in SIDES:
            setattr(first, f"{side}_length", length_of(max_length, side) if differ else None)
    elif differ:
        raise InputError(
            f"{what}: begins with {type(first).__name__}, which cuts queries and documents alike; give max_length as "
            "one number"
        )


def check_length(what: str, model: "BaseModel", max_length: int) -> None:
    """Raise InputError if the sentence-transformers ``model`` reads fewer than ``max_length`` tokens."""
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is None:
        return
    most = positions - first_position(model)
    if max_length > most:
        raise InputError(f"{what}: reads {most} tokens; lower max_length from {max_length} to at most {most}")


def check_reading(what: str, model: "SentenceTransformer | MultiVectorEncoder", prefixes: Prefixes) -> None:
    """Check that the model makes vectors of texts, and reads them with their prefixes as it does in training.

    Raises:
        InputError: it cannot, or leaves prefixes out of its pooling, or reads nothing of texts behind one of them, so
            that all are the same.
    """
    from sentence_transformers.sentence_transformer.modules import Pooling

    for side in SIDES:
        with loading(what):
            try:
                model.encode(["one", "one and another"], task=side, show_progress_bar=False)
            except KeyError:
                raise InputError(f"{what}: makes no vectors of texts; save it with a module Pooling") from None
        for prefix in {each.of(side) for each in (prefixes.default, *prefixes.domains.values())} - {""}:
            alone, more = model.encode([prefix, f"{prefix} and more of it"], task=side, show_progress_bar=False)
            if np.array_equal(alone, more):
                raise InputError(
                    f"{what}: reads nothing behind the prefix {shown(prefix)}, which is as long as max_length; raise "
                    "max_length, or shorten the prefix"
                )
    if prefixes.texts() and any(isinstance(each, Pooling) and not each.include_prompt for each in model):
        raise InputError(
            f"{what}: leaves prompts out of its pooling, which training and search do not; set include_prompt to true "
            "in its 1_Pooling/config.json, or its prefixes to {}"
        )


def first_position(model: "Module") -> int:
    """Return the position of an encoder's first token: RoBERTa counts from its padding index."""
    kept = [m.padding_idx for name, m in model.named_modules() if name.endswith("position_embeddings")]
    return next((index + 1 for index in kept if index is not None), 0)
