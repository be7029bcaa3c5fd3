"""Copy or make a start model in ``models/start``, so that a changed model retrains the runs that start from it."""

import shutil
from pathlib import Path

from batchwright.core.atomic import atomic_dir
from batchwright.core.params import Base, load_params
from batchwright.core.paths import START_MODELS
from batchwright.formats.models import check_model_watched, check_whole, locate_model, model_hash
from batchwright.retrievers.common.model_folder import ModelInfo, variant_of
from stages.fetch.params import StartModel

_NOT_NEEDED = shutil.ignore_patterns(".*", "onnx", "openvino", "*.msgpack", "*.h5", "*.pyc", "__pycache__")


def main(name: str) -> str:
    """Write ``models/start/NAME``: a copy of the model, plus ``batchwright.json``."""
    params = load_params(f"start_models.{name}", StartModel)
    seed = load_params("base", Base).seed
    check_model_watched(params.name)
    source = locate_model(params.name, params)
    weights = model_hash(source)
    with atomic_dir(START_MODELS / name) as folder:
        if params.static_width:
            _make_static(source, params, seed, folder)
        else:
            _copy(source, folder)
        info = ModelInfo(
            variant=variant_of(folder), max_length=params.max_length, prefixes=params.prefixes, origin=params.name
        )
        info.write(folder)
        if info.variant == "biencoder":
            _check(params.name, folder, info)
    return f"'{name}' from {params.name}, {weights}"


def _check(name: str, folder: Path, info: ModelInfo) -> None:
    """Load the model, so that a damaged one is refused now, and not when it is trained."""
    from batchwright.retrievers.common.model_folder import load_model  # needs torch

    check_whole(f"model '{name}'", folder, load_model(folder, info.max_length))


def _copy(source: Path, folder: Path) -> None:
    # Contents only: the hub's cache contains links, and a package's files may be read-only.
    shutil.copytree(source, folder, ignore=_NOT_NEEDED, copy_function=shutil.copyfile, dirs_exist_ok=True)


def _make_static(source: Path, params: StartModel, seed: int, folder: Path) -> None:
    from stages.fetch.static import write_static_model  # needs torch, which copying does not

    assert params.static_width
    write_static_model(source, params.static_width, params.max_length, seed, folder)
