"""Stage ``fetch``: copies or makes a start model, so that a changed one retrains the runs that start from it."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.params import PARAMS_FILE, Base, load_params, read_params
from batchwright.core.paths import START_MODELS
from batchwright.formats.lengths import MaxLength, check_reading
from batchwright.formats.models import (
    SIDES,
    ModelVersion,
    Prefixes,
    check_model_watched,
    check_whole,
    loading,
    locate_model,
    model_hash,
    warn_of_pooling,
)
from batchwright.formats.prompts import CONFIGURATION, configuration, own_prefixes
from batchwright.retrievers.common.model_folder import ModelInfo, draw_weights, is_released, variant_of

_NOT_NEEDED = shutil.ignore_patterns(".*", "onnx", "openvino", "*.msgpack", "*.h5", "*.pyc", "__pycache__")


class StartModel(ModelVersion):
    """Group ``start_models.NAME``."""

    name: str
    """``package:NAME`` for an installed Python package, a folder such as ``raw/models/mine``, or a name on the hub."""
    max_length: MaxLength = 256
    """Maximum number of tokens per text in training, evaluation and search, or ``{query: 32, document: 256}``; longer
    texts are truncated."""
    static_width: int | None = Field(default=None, gt=0)
    """Null copies the model. A number takes only its tokenizer, and makes a static model: one random vector of this
    width for each token; a text's vector is their mean."""
    prefixes: Prefixes | None = None
    """Prefixes to put before texts, by domain and side; null: the model's own prompts ``query`` and ``document`` (or
    ``passage`` or ``corpus``), or those whose names end so, where it has them. ``{}`` puts none."""
    similarity: Literal["cosine"] | None = None
    """Vectors are compared by cosine only. A model that was trained with inner products or distances (its
    ``similarity_fn_name``) and does not normalise its vectors is refused, unless this says ``cosine``."""

    @model_validator(mode="after")
    def _one_length(self) -> "StartModel":
        if self.static_width and not isinstance(self.max_length, int):
            raise ValueError("a static model cuts queries and documents alike; give max_length as one number")
        return self


def main(name: str) -> str:
    """Write ``models/start/NAME``: a copy of the model, plus ``batchwright.json``."""
    params = load_params(f"start_models.{name}", StartModel)
    seed = load_params("base", Base).seed
    check_model_watched(params.name)
    source = locate_model(params.name, params)
    weights = model_hash(source)
    prefixes = params.prefixes
    if prefixes is None:
        prefixes = Prefixes() if params.static_width else own_prefixes(source, f"start_models.{name}")
    with atomic_dir(START_MODELS / name) as folder:
        if params.static_width and isinstance(params.max_length, int):
            write_static_model(source, params.static_width, params.max_length, seed, folder)
        elif is_released(source):
            _convert(params, source, prefixes, folder)
        else:
            _copy(source, folder)
            _drop_head(params.name, folder)
        info = ModelInfo(
            variant=variant_of(folder),
            max_length=params.max_length,
            prefixes=prefixes,
            origin=params.name,
            random=params.static_width is not None,
        )
        info.write(folder)
        if info.variant == "biencoder":
            _check(params, folder, info)
        elif info.variant == "xtr":
            _check_tokens(params, folder, info)
    _warn_of_unused(name)
    before = f"; queries begin with {prefixes.default.query!r}, documents with {prefixes.default.document!r}"
    return f"'{name}' from {params.name}, {weights}{before if prefixes.texts() else ''}"


def _warn_of_unused(name: str) -> None:
    if str(START_MODELS / name) not in _values(read_params(PARAMS_FILE)):
        print(
            f"warning: start_models.{name}: nothing in {PARAMS_FILE} starts from it, but the stage 'baselines' scores "
            "it all the same; to spare that, remove the entry",
            file=sys.stderr,
        )


def _values(tree: Any) -> list[Any]:
    """All values of groups and lists, at any depth."""
    if isinstance(tree, dict | list):
        return [value for each in (tree.values() if isinstance(tree, dict) else tree) for value in _values(each)]
    return [tree]


def _copy(source: Path, folder: Path) -> None:
    # Contents only: the hub's cache contains links, and a package's files may be read-only.
    shutil.copytree(source, folder, ignore=_NOT_NEEDED, copy_function=shutil.copyfile, dirs_exist_ok=True)


def _convert(params: StartModel, source: Path, prefixes: Prefixes, folder: Path) -> None:
    """Write a model as the authors of CDE publish theirs as those that are trained here are written."""
    from batchwright.retrievers.cde.retriever import limit_stages, load_contextual, save_contextual  # these need torch

    what = f"model '{params.name}'"
    model = load_contextual(source, "cpu", params.name)
    encoder: Any = model[0]
    limit_stages(what, encoder, params.max_length)
    check_whole(what, source, model)
    if encoder.unpooled_prefixes:
        encoder.unpooled_prefixes = prefixes.texts()
    save_contextual(model, folder, prefixes.default)


def _drop_head(name: str, folder: Path) -> None:
    """Leave only the encoder of nomic-bert-2048, whose weights have a prefix, and a head beside them.

    transformers knows all other names of its weights, but would draw new ones for these.
    """
    weights, configuration = folder / "model.safetensors", folder / "config.json"
    if not (weights.exists() and configuration.exists()):
        return
    with loading(f"model '{name}'"):
        if json.loads(configuration.read_bytes()).get("model_type") != "nomic_bert":
            return
        from safetensors.torch import load_file, save_file

        found = load_file(weights)
        encoder = {key.removeprefix("bert."): each for key, each in found.items() if key.startswith("bert.")}
        if encoder:
            save_file(encoder, weights, metadata={"format": "pt"})


def write_static_model(source: Path, width: int, max_length: int, seed: int, folder: Path) -> None:
    """Write a static model with the tokenizer of ``source`` and random vectors of ``width``, drawn with ``seed``.

    It reads ``max_length`` tokens, also where others open it.

    Raises:
        InputError: ``source`` has no tokenizer that can be loaded.
    """
    from sentence_transformers import SentenceTransformer  # which copying does not need
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    with loading(f"model '{source}'"):
        tokenizer = AutoTokenizer.from_pretrained(source)
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer, which static models need")
    module = StaticEmbedding(tokenizer, embedding_dim=width)
    module.tokenizer.enable_truncation(max_length)
    model = SentenceTransformer(modules=[module], device="cpu")
    draw_weights(model, seed)
    model.save(str(folder), create_model_card=False)


def _check(params: StartModel, folder: Path, info: ModelInfo) -> None:
    """Load the model, so that one that is damaged or not used like this is refused now, and not when it is trained.

    Raises:
        InputError: it is.
    """
    from sentence_transformers.base.modules import Normalize  # these need torch

    from batchwright.retrievers.common.model_folder import load_model

    what = f"model '{params.name}'"
    model = load_model(folder, info.max_length, name=params.name)
    check_whole(what, folder, model)
    check_reading(what, model, info.prefixes)
    warn_of_pooling(what, folder, model)
    own = configuration(folder, params.name).get("similarity_fn_name") or "cosine"
    same = ("cosine", "dot", "euclidean") if isinstance(model[-1], Normalize) else ("cosine",)
    if own not in same and not params.similarity:
        raise InputError(
            f"{what}: was made for the similarity '{own}' (similarity_fn_name in {CONFIGURATION}), but training and "
            "search compare by cosine; take another, or set its similarity to cosine to train it for that"
        )


def _check_tokens(params: StartModel, folder: Path, info: ModelInfo) -> None:
    """Check a model with a vector for each token likewise.

    Raises:
        InputError: it is damaged, or its vectors are not of unit length.
    """
    from batchwright.retrievers.xtr.model import encode_tokens, load_token_model  # these need torch

    what = f"model '{params.name}'"
    model = load_token_model(folder, info.max_length, "cpu", info.prefixes, params.name)
    check_whole(what, folder, model)
    check_reading(what, model, info.prefixes)
    for task in SIDES:
        lengths = np.linalg.norm(encode_tokens(model, ["one and another"], task).vectors, axis=1)
        if not np.allclose(lengths, 1, atol=0.01):
            raise InputError(
                f"{what}: its token vectors are not of unit length, as training makes them; save it with a last module "
                "Normalize(module_input_name='token_embeddings')"
            )
