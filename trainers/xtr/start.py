"""The model that XTR training starts from."""

from pathlib import Path
from typing import Any

from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from torch import nn

from batchwright.core.errors import InputError
from batchwright.retrievers.common.model_folder import ModelInfo, load_model
from batchwright.retrievers.xtr.model import load_token_model
from batchwright.retrievers.xtr.prefixes import leave_out


def start_from(start: Path, info: ModelInfo, device: str, width: int | None = None) -> MultiVectorEncoder:
    """Load the XTR model ``start``, or make one of the encoder of any other model.

    The tokens that the tokenizer adds to every text, such as [CLS] and [SEP], and those of prefixes are masked: they
    are neither retrieved nor retrieve. ``width`` projects the vectors; the projection is new and has orthonormal rows,
    so that inner products are nearly preserved. An XTR model keeps its own mask and width.

    Raises:
        InputError: there is no such model, it has no transformer encoder, it reads fewer tokens than
            ``info.max_length``, or ``width`` does not fit.
    """
    if info.variant == "xtr":
        model = load_token_model(start, info.max_length, device, info.prefixes)
        if width not in (None, model.get_embedding_dimension()):
            raise InputError(
                f"model '{start}': its token vectors have {model.get_embedding_dimension()} dimensions; remove "
                f"train.xtr.width ({width}), or start from a model that is not XTR"
            )
        return model
    encoder = load_model(start, info.max_length, "cpu")[0]
    if not isinstance(encoder, Transformer):
        raise InputError(f"model '{start}': begins with {type(encoder).__name__}; XTR needs a transformer encoder")
    projection = [] if width is None else [_projection(start, encoder.get_embedding_dimension(), width)]
    unit = Normalize(module_input_name="token_embeddings")
    modules = [encoder, *projection, _mask(encoder), unit]
    model = MultiVectorEncoder(modules=modules, device=device, similarity_fn_name="meanmaxsim")
    leave_out(model, info.prefixes)
    return model


def _projection(start: Path, known: int, width: int) -> Dense:
    if width > known:
        raise InputError(f"model '{start}': has {known} dimensions; lower train.xtr.width from {width}, or remove it")
    projection = Dense(
        known, width, bias=False, activation_function=nn.Identity(), module_input_name="token_embeddings"
    )
    nn.init.orthogonal_(projection.linear.weight)
    return projection


def _mask(encoder: Transformer) -> MultiVectorMask:
    """Mask the tokens of an empty text.

    They are the same in all texts, so a query's [CLS] retrieves the [CLS] of every document, and then every document
    counts as retrieved.
    """
    tokenizer: Any = encoder.tokenizer
    added = tokenizer.convert_ids_to_tokens(tokenizer("")["input_ids"])
    return MultiVectorMask(added, skiplist_tasks=["query", "document"])
