"""Stage ``fetch``: copies or makes a start model, so that a changed one retrains the runs that start from it."""

import shutil
from pathlib import Path

from pydantic import Field

from batchwright.core.atomic import atomic_dir
from batchwright.core.params import Base, load_params
from batchwright.core.paths import START_MODELS
from batchwright.formats.models import (
    ModelVersion,
    Prefixes,
    check_model_watched,
    check_whole,
    loading,
    locate_model,
    model_hash,
)
from batchwright.retrievers.common.model_folder import ModelInfo, draw_weights, variant_of

_NOT_NEEDED = shutil.ignore_patterns(".*", "onnx", "openvino", "*.msgpack", "*.h5", "*.pyc", "__pycache__")


class StartModel(ModelVersion):
    """Group ``start_models.NAME``."""

    name: str
    """``package:NAME`` for an installed Python package, a folder such as ``raw/models/mine``, or a name on the hub."""
    max_length: int = Field(default=256, ge=2)
    """Maximum number of tokens per text in training, evaluation and search; longer texts are truncated."""
    static_width: int | None = Field(default=None, gt=0)
    """Null copies the model. A number takes only its tokenizer, and makes a static model: one random vector of this
    width for each token; a text's vector is their mean."""
    prefixes: Prefixes = Prefixes()
    """Prefixes to put before texts, by domain and side."""


def main(name: str) -> str:
    """Write ``models/start/NAME``: a copy of the model, plus ``batchwright.json``."""
    params = load_params(f"start_models.{name}", StartModel)
    seed = load_params("base", Base).seed
    check_model_watched(params.name)
    source = locate_model(params.name, params)
    weights = model_hash(source)
    with atomic_dir(START_MODELS / name) as folder:
        if params.static_width:
            write_static_model(source, params.static_width, params.max_length, seed, folder)
        else:
            _copy(source, folder)
        info = ModelInfo(
            variant=variant_of(folder),
            max_length=params.max_length,
            prefixes=params.prefixes,
            origin=params.name,
            random=params.static_width is not None,
        )
        info.write(folder)
        if info.variant == "biencoder":
            _check(params.name, folder, info)
    return f"'{name}' from {params.name}, {weights}"


def _copy(source: Path, folder: Path) -> None:
    # Contents only: the hub's cache contains links, and a package's files may be read-only.
    shutil.copytree(source, folder, ignore=_NOT_NEEDED, copy_function=shutil.copyfile, dirs_exist_ok=True)


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


def _check(name: str, folder: Path, info: ModelInfo) -> None:
    """Load the model, so that a damaged one is refused now, and not when it is trained."""
    from batchwright.retrievers.common.model_folder import load_model  # needs torch

    check_whole(f"model '{name}'", folder, load_model(folder, info.max_length))
