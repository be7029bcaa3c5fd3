"""Pre-trained models on disk: a plain encoder, which sentence-transformers reads as well, and beside it what only
pre-training needs."""

import json
import tempfile
from pathlib import Path
from typing import Any, cast

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from formats.errors import InputError
from formats.hints import hint
from formats.models import loading
from trainers.seed.pretraining.decoders import Shape
from trainers.seed.pretraining.model import Pretrained
from trainers.seed.pretraining.params import NewEncoder, PretrainParams

BESIDE = "pretraining"
_WEIGHTS = "decoder_and_head.safetensors"
_CONFIG = "decoder.json"


def build_model(params: PretrainParams, start: Path | None, tokenizer: PreTrainedTokenizerBase) -> Pretrained:
    """A model to begin with: weights drawn anew, or those of the folder ``start``.

    Raises:
        InputError: no such encoder can be made, it reads fewer tokens, or ``start`` has a decoder of another shape.
    """
    encoder = _new(params.encoder, tokenizer) if isinstance(params.encoder, NewEncoder) else _load(cast(Path, start))
    shape = Shape.of(encoder, params.length)
    if shape.positions < params.length:
        raise InputError(
            f"pretrain.seed.length is {params.length}, the encoder reads {shape.positions} tokens; lower it"
        )
    _check_embeddings(encoder, shape, tokenizer)
    model = Pretrained(encoder, shape, params.decoder)
    if start and (start / BESIDE).is_dir():
        _load_beside(start / BESIDE, model, params)
    return model


def save_pretrained(
    model: Pretrained, tokenizer: PreTrainedTokenizerBase, params: PretrainParams, folder: Path
) -> None:
    """Write the encoder, to be read by ``AutoModel`` or as a sentence-transformers model that takes the state at CLS,
    and in ``folder/pretraining`` decoder and head."""
    with tempfile.TemporaryDirectory() as plain:
        model.encoder.save_pretrained(plain)
        tokenizer.save_pretrained(plain)
        transformer = Transformer(plain, max_seq_length=params.length)
        pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="cls")
        SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder), create_model_card=False)
    (folder / BESIDE).mkdir()
    save_file(_beside(model), folder / BESIDE / _WEIGHTS)
    (folder / BESIDE / _CONFIG).write_text(json.dumps(_decoder(params), indent=2) + "\n", encoding="utf-8")


def _new(params: NewEncoder, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    where = "pretrain.seed.encoder"
    try:
        known = AutoConfig.for_model(params.architecture).to_dict()
    except ValueError:
        raise InputError(f"{where}.architecture: transformers knows no '{params.architecture}'") from None
    for key in params.options.keys() - known.keys():
        raise InputError(f"{where}.options: {params.architecture} has no setting '{key}'{hint(key, known)}")
    own = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep", "bos", "eos")}
    try:
        config = AutoConfig.for_model(params.architecture, **{"vocab_size": len(tokenizer), **own, **params.options})
        encoder: PreTrainedModel = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, KeyError, AssertionError, ZeroDivisionError, StrictDataclassError) as error:
        raise InputError(f"{where}: no such encoder can be built ({str(error).splitlines()[0]})") from None
    return encoder


def _check_embeddings(encoder: PreTrainedModel, shape: Shape, tokenizer: PreTrainedTokenizerBase) -> None:
    tokens, width = cast(Tensor, encoder.get_input_embeddings().weight).shape
    if tokens < len(tokenizer):
        raise InputError(
            f"pretrain.seed.encoder: embeds {tokens} tokens, its tokenizer has {len(tokenizer)}; resize its "
            "embeddings, or leave out the option vocab_size"
        )
    if width != shape.width:
        raise InputError(
            f"pretrain.seed.encoder: embeds tokens in {width} dimensions, its states have {shape.width}; head and "
            "decoder need an encoder where these are equal"
        )


def _load(start: Path) -> PreTrainedModel:
    with loading(f"model '{start}'"):
        encoder: PreTrainedModel = AutoModel.from_pretrained(start, local_files_only=True).float()
    return encoder


def _decoder(params: PretrainParams) -> dict[str, Any] | None:
    return params.decoder.model_dump() if params.decoder else None


def _beside(model: Pretrained) -> dict[str, Tensor]:
    return {name: value for name, value in model.state_dict().items() if not name.startswith("encoder.")}


def _load_beside(folder: Path, model: Pretrained, params: PretrainParams) -> None:
    try:
        decoder = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        weights = load_file(folder / _WEIGHTS)
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(f"{folder}: cannot be read ({str(error).splitlines()[0]}); pre-train again") from None
    remedy = f"set pretrain.seed.decoder to that, or remove '{folder}' to begin with a new decoder"
    if decoder != _decoder(params):
        raise InputError(f"{folder}: holds the decoder {json.dumps(decoder)}; {remedy}")
    wanted = {name: tuple(value.shape) for name, value in _beside(model).items()}
    found = {name: tuple(value.shape) for name, value in weights.items()}
    for name in sorted(wanted.items() ^ found.items()):
        raise InputError(
            f"{folder}: '{name[0]}' has the shape {found.get(name[0])}, the model needs {wanted.get(name[0])}; {remedy}"
        )
    model.load_state_dict(weights, strict=False)
