"""The encoder that pre-training starts with: a new one, or one from a folder."""

from pathlib import Path
from typing import cast

from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from batchwright.core.errors import InputError
from batchwright.core.messages import hint
from batchwright.formats.models import loading
from trainers.pretraining.decoders import Shape
from trainers.pretraining.params import NewEncoder


def new_encoder(params: NewEncoder, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Build an encoder with random weights.

    Raises:
        InputError: transformers does not know the model type or a setting, the model type is not an encoder that
            predicts masked tokens, or no encoder can be built from the settings.
    """
    where = "encoder"
    try:
        default = AutoConfig.for_model(params.model_type)
    except ValueError:
        raise InputError(f"{where}.model_type: transformers has no model type '{params.model_type}'") from None
    if params.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES or default.is_encoder_decoder:
        raise InputError(
            f"{where}.model_type: '{params.model_type}' is not an encoder that predicts masked tokens; use one such as "
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
        raise InputError(f"{where}: this encoder cannot be built ({str(error).splitlines()[0]})") from None
    return encoder


def check_embeddings(encoder: PreTrainedModel, shape: Shape, tokenizer: PreTrainedTokenizerBase) -> None:
    """Check that the encoder's token embeddings fit its tokenizer, the head and the decoder.

    Raises:
        InputError: there are fewer embeddings than tokens, or their width is not that of the encoder's states.
    """
    tokens, width = cast(Tensor, encoder.get_input_embeddings().weight).shape
    if tokens < len(tokenizer):
        raise InputError(
            f"encoder: embeds {tokens} tokens, but its tokenizer has {len(tokenizer)}; resize "
            "its embeddings, or leave vocab_size out of config"
        )
    if width != shape.width:
        raise InputError(
            f"encoder: embeds tokens in {width} dimensions, but its states have {shape.width}; "
            "head and decoder need an encoder where both are equal"
        )


def load_encoder(start: Path) -> PreTrainedModel:
    """Load the encoder of a folder in float32; every weight of its layers must be in the folder.

    Raises:
        InputError: there is no such model, or its config.json requires more or fewer weights than it has.
    """
    with loading(f"model '{start}'"):
        encoder, found = AutoModel.from_pretrained(start, local_files_only=True, output_loading_info=True)
    for key in sorted(found["missing_keys"]):
        if "pooler" not in key.split("."):
            raise InputError(f"model '{start}': has no weights '{key}', which its config.json requires")
    for key in sorted(found["unexpected_keys"]):
        if _in_body(key, encoder):
            raise InputError(f"model '{start}': has weights '{key}', which its config.json leaves out")
    return cast(PreTrainedModel, encoder.float())


def _in_body(key: str, encoder: PreTrainedModel) -> bool:
    """Whether an unexpected weight belongs to the encoder's layers.

    Other unexpected weights are harmless: heads and poolers are not used here, and some released models contain unused
    embeddings.
    """
    part = key.removeprefix(f"{encoder.base_model_prefix}.").split(".")[0]
    return part in {own.split(".")[0] for own in encoder.state_dict()} - {"embeddings", "pooler"}
