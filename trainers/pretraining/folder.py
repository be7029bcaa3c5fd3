"""Pre-trained models on disk: a plain encoder, which sentence-transformers can read too, and a subfolder with what only
pre-training needs."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from batchwright.core.errors import InputError
from batchwright.core.terminal import hint
from batchwright.formats.models import Prefixes, loading
from batchwright.retrievers.common.model_folder import ModelInfo, save_model
from trainers.pretraining.decoders import Shape
from trainers.pretraining.model import Pretrained
from trainers.pretraining.params import NewEncoder, PretrainParams, StartEncoder

BESIDE = "pretraining"
_WEIGHTS = "decoder_and_head.safetensors"
_CONFIG = "decoder.json"


class Start(NamedTuple):
    """What a run starts with: the model, and the number of ``steps`` done by the earlier runs that led to it.

    ``fresh`` are the parameters that the start model does not have; it is empty if the encoder is new as well.
    """

    model: Pretrained
    steps: int
    fresh: list[nn.Parameter]


def build_model(
    params: PretrainParams, start: Path | None, tokenizer: PreTrainedTokenizerBase, counts: Tensor
) -> Start:
    """Build the model to pre-train, with random weights or with those of the folder ``start``.

    A new head predicts tokens as often as they are in the text, which ``counts`` (n,) says.

    Raises:
        InputError: the encoder cannot be built or loaded, it reads fewer tokens than ``max_length``, or the decoder in
            ``start`` is damaged or not the one that ``params`` describes.
    """
    if isinstance(params.encoder, NewEncoder):
        encoder = new_encoder(params.encoder, tokenizer)
    else:
        encoder = load_encoder(cast(Path, start))
    shape = Shape.of(encoder, params.max_length)
    if shape.positions < params.max_length:
        raise InputError(
            f"max_length is {params.max_length}, but the encoder reads only {shape.positions} tokens; lower it"
        )
    check_embeddings(encoder, shape, tokenizer)
    model = Pretrained(encoder, shape, params.decoder)
    model.head.expect(counts)
    if start and (start / BESIDE).is_dir():
        return Start(model, _load_beside(start / BESIDE, model, params), [])
    new = [each for name, each in model.named_parameters() if not name.startswith("encoder.")]
    return Start(model, 0, new if start else [])


def save_pretrained(
    model: Pretrained,
    tokenizer: PreTrainedTokenizerBase,
    params: PretrainParams,
    steps: int,
    folder: Path,
    prefixes: Prefixes,
) -> None:
    """Write the model into ``folder``.

    The encoder can be read by ``AutoModel``, or as a sentence-transformers model with CLS pooling, whose prompts are
    the ``prefixes``. ``folder/pretraining`` holds the decoder, the head and the number of ``steps``, those of earlier
    runs included.
    """
    with tempfile.TemporaryDirectory() as plain:
        model.encoder.save_pretrained(plain)
        tokenizer.save_pretrained(plain)
        transformer = Transformer(plain, max_seq_length=params.max_length)
        pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="cls")
        save_model(SentenceTransformer(modules=[transformer, pooling], device="cpu"), folder, prefixes.default)
    origin = params.encoder.model if isinstance(params.encoder, StartEncoder) else None
    info = ModelInfo(variant="seed_encoder", max_length=params.max_length, prefixes=prefixes, origin=origin)
    info.write(folder)
    (folder / BESIDE).mkdir()
    save_file(_beside(model), folder / BESIDE / _WEIGHTS)
    config = {"decoder": _decoder(params), "steps": steps}
    (folder / BESIDE / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _decoder(params: PretrainParams) -> dict[str, Any] | None:
    return params.decoder.model_dump() if params.decoder else None


def _beside(model: Pretrained) -> dict[str, Tensor]:
    return {name: value for name, value in model.state_dict().items() if not name.startswith("encoder.")}


def _read_config(folder: Path) -> dict[str, Any]:
    """Read ``decoder`` and ``steps``."""
    with _reading(folder):
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        if not isinstance(config, dict) or config.keys() != {"decoder", "steps"} or type(config["steps"]) is not int:
            raise ValueError(f"{_CONFIG} must have the keys decoder and steps")
    return config


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(f"{folder}: cannot be read ({str(error).splitlines()[0]}); pre-train again") from None


def _load_beside(folder: Path, model: Pretrained, params: PretrainParams) -> int:
    config = _read_config(folder)
    with _reading(folder):
        weights = load_file(folder / _WEIGHTS)
    remedy = f"remove '{folder}' to start with a new decoder and head"
    if config["decoder"] != _decoder(params):
        raise InputError(
            f"{folder}: holds the decoder {json.dumps(config['decoder'])}; set decoder to that, or {remedy}"
        )
    wanted = {name: tuple(value.shape) for name, value in _beside(model).items()}
    shapes = {name: tuple(value.shape) for name, value in weights.items()}
    for name, _ in sorted(wanted.items() ^ shapes.items()):
        raise InputError(
            f"{folder}: '{name}' has shape {shapes.get(name)}, but the model needs {wanted.get(name)}; {remedy}"
        )
    model.load_state_dict(weights, strict=False)
    return int(config["steps"])


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
    special = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep", "bos", "eos")
    }
    try:
        config = AutoConfig.for_model(params.model_type, **{"vocab_size": len(tokenizer), **special, **params.config})
        encoder: PreTrainedModel = AutoModel.from_config(config)
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
        encoder, loaded = AutoModel.from_pretrained(start, local_files_only=True, output_loading_info=True)
    for key in sorted(loaded["missing_keys"]):
        if "pooler" not in key.split("."):
            raise InputError(f"model '{start}': has no weights '{key}', which its config.json requires")
    for key in sorted(loaded["unexpected_keys"]):
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
