"""The model that XTR training starts from."""

from pathlib import Path

from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from torch import nn

from batchwright.core.errors import InputError
from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.common.sentence_model import load_model
from batchwright.retrievers.xtr.model import load_token_model

WIDTH = 128


def start_from(start: Path, info: ModelInfo, device: str) -> MultiVectorEncoder:
    """Load the XTR model ``start``, or put a new projection on the encoder of any other model.

    A new projection has orthonormal rows, so that inner products are nearly preserved.

    Raises:
        InputError: there is no such model, it has no transformer encoder, or it reads fewer tokens than
            ``info.max_length``.
    """
    if info.variant == "xtr":
        return load_token_model(start, info.max_length, device)
    encoder = load_model(start, info.max_length, "cpu")[0]
    if not isinstance(encoder, Transformer):
        raise InputError(f"model '{start}': begins with {type(encoder).__name__}; XTR needs a transformer encoder")
    width = encoder.get_embedding_dimension()
    projection = Dense(
        width, WIDTH, bias=False, activation_function=nn.Identity(), module_input_name="token_embeddings"
    )
    nn.init.orthogonal_(projection.linear.weight)
    unit = Normalize(module_input_name="token_embeddings")
    return MultiVectorEncoder(
        modules=[encoder, projection, MultiVectorMask(), unit], device=device, similarity_fn_name="meanmaxsim"
    )
