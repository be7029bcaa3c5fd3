"""Copy a start model into ``models/start``, so that a changed model retrains the runs that start from it."""

import shutil

from batchwright.core.atomic import atomic_dir
from batchwright.core.params import load_params
from batchwright.core.paths import START_MODELS
from batchwright.formats.models import locate_model, model_hash
from batchwright.retrievers.common.info import ModelInfo, variant_of
from stages.fetch.params import StartModel

_NOT_NEEDED = shutil.ignore_patterns(".*", "onnx", "openvino", "*.msgpack", "*.h5", "*.pyc", "__pycache__")


def main(name: str) -> str:
    """Write ``models/start/NAME``: a copy of the model, plus ``batchwright.json``."""
    params = load_params(f"start_models.{name}", StartModel)
    source = locate_model(params.name, params.revision)
    weights = model_hash(source)
    info = ModelInfo(
        variant=variant_of(source), max_length=params.max_length, prefixes=params.prefixes, origin=params.name
    )
    with atomic_dir(START_MODELS / name) as folder:
        # Copy contents only: the hub's cache contains links, and a package's files may be read-only.
        shutil.copytree(source, folder, ignore=_NOT_NEEDED, copy_function=shutil.copyfile, dirs_exist_ok=True)
        info.write(folder)
    return f"'{name}' from {params.name}, {weights}"
