"""The encoder to begin with: new, or from a folder."""

from pathlib import Path
from typing import cast

from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from batchwright.core.errors import InputError
from batchwright.core.hints import hint
from batchwright.formats.models import loading
from trainers.pretraining.decoders import Shape
from trainers.pretraining.params import NewEncoder


def new_encoder(params: NewEncoder, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """An encoder with random weights.

    Raises:
        InputError: transformers knows no such architecture or setting, or one that reads no text with masks.
    """
    where = "pretrain.seed_encoder.encoder"
    try:
        default = AutoConfig.for_model(params.model_type)
    except ValueError:
        raise InputError(f"{where}.model_type: transformers knows no '{params.model_type}'") from None
    if params.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES or default.is_encoder_decoder:
        raise InputError(
            f"{where}.model_type: '{params.model_type}' is no encoder that guesses masked tokens; take one such as "
            "bert, roberta or modernbert"
        )
    known = default.to_dict()
    for key in params.config.keys() - known.keys():
        raise InputError(f"{where}.config: {params.model_type} has no setting '{key}'{hint(key, known)}")
    own = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep", "bos", "eos")}
    try:
        config = AutoConfig.for_model(params.model_type, **{"vocab_size": len(tokenizer), **own, **params.config})
        encoder: PreTrainedModel = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, KeyError, AssertionError, ZeroDivisionError, StrictDataclassError) as error:
        raise InputError(f"{where}: no such encoder can be built ({str(error).splitlines()[0]})") from None
    return encoder


def check_embeddings(encoder: PreTrainedModel, shape: Shape, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise InputError where the encoder's embeddings fit neither its tokenizer nor head and decoder."""
    tokens, width = cast(Tensor, encoder.get_input_embeddings().weight).shape
    if tokens < len(tokenizer):
        raise InputError(
            f"pretrain.seed_encoder.encoder: embeds {tokens} tokens, its tokenizer has {len(tokenizer)}; resize its "
            "embeddings, or leave out the option vocab_size"
        )
    if width != shape.width:
        raise InputError(
            f"pretrain.seed_encoder.encoder: embeds tokens in {width} dimensions, its states have {shape.width}; head and "
            "decoder need an encoder where these are equal"
        )


def load_encoder(start: Path) -> PreTrainedModel:
    """The encoder of a folder, in float32, every weight of its body from there.

    Raises:
        InputError: there is no such model, or config.json says more or fewer layers than there are weights.
    """
    with loading(f"model '{start}'"):
        encoder, found = AutoModel.from_pretrained(start, local_files_only=True, output_loading_info=True)
    for key in sorted(found["missing_keys"]):
        if "pooler" not in key.split("."):
            raise InputError(f"model '{start}': has no weights '{key}', which its config.json asks for")
    for key in sorted(found["unexpected_keys"]):
        if _in_body(key, encoder):
            raise InputError(f"model '{start}': has weights '{key}', which its config.json leaves out")
    return cast(PreTrainedModel, encoder.float())


def _in_body(key: str, encoder: PreTrainedModel) -> bool:
    """Whether a surplus weight is of the layers.

    Heads and a pooler are of no use here, and released models do hold embeddings that they do not use.
    """
    part = key.removeprefix(f"{encoder.base_model_prefix}.").split(".")[0]
    return part in {own.split(".")[0] for own in encoder.state_dict()} - {"embeddings", "pooler"}
