"""Models: where one is on disk, and a hash of everything that determines its output."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from batchwright.core.errors import InputError
from batchwright.core.fingerprint import file_sha256, fingerprint

_WEIGHTS = ("*.safetensors", "*.bin")
_CONFIGURATION = ("*.json", "*.txt", "*.model")


def locate_model(name: str, revision: str | None = None) -> Path:
    """Return the folder of a model named by a folder, by ``package:NAME`` or by its name on the Hugging Face hub.

    A package must contain its model in a folder ``model``. A hub model is downloaded, or read from the
    local cache if ``HF_HUB_OFFLINE=1``.

    Raises:
        InputError: there is no such model.
    """
    if name.startswith("package:"):
        return _in_package(name.removeprefix("package:"))
    if Path(name).is_dir():
        return Path(name)
    if name.startswith((".", "/")) or name.count("/") > 1:
        raise InputError(f"model '{name}': no such folder")
    return _on_hub(name, revision)


def model_hash(folder: Path) -> str:
    """Hash of a model's weights and configuration; moving or renaming its folder does not change it.

    Raises:
        InputError: the folder has no weights.
    """
    weights = sorted(file for pattern in _WEIGHTS for file in folder.rglob(pattern))
    if not weights:
        raise InputError(f"model '{folder}': no weights (*.safetensors) in this folder")
    others = sorted(file for pattern in _CONFIGURATION for file in folder.rglob(pattern))
    return fingerprint([(str(file.relative_to(folder)), file_sha256(file)) for file in weights + others])


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Turn library errors about a missing or damaged folder into an ``InputError`` about ``what``."""
    try:
        yield
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise InputError(f"{what}: cannot be loaded ({str(error).splitlines()[0]})") from None
    except RuntimeError as error:
        if not _of_shapes(str(error)):
            raise
        raise InputError(f"{what}: the shapes of its weights do not match its config.json") from None


def _of_shapes(message: str) -> bool:
    """Whether transformers or torch reports mismatched shapes; neither has an exception class for it."""
    return "ignore_mismatched_sizes" in message or ("loading state_dict" in message and "size mismatch" in message)


def _in_package(package: str) -> Path:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # the parent of a dotted name is missing, or the name is empty
        spec = None
    if spec is None or spec.origin is None:
        raise InputError(f"model 'package:{package}': that package is not installed")
    folder = Path(spec.origin).parent / "model"
    if not folder.is_dir():
        raise InputError(f"model 'package:{package}': the package has no folder 'model'")
    return folder


def _on_hub(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    from tqdm.auto import tqdm

    class LateBar(tqdm):  # type: ignore[type-arg]
        """A bar for long downloads; the hub's own, which also show for what is in the cache, are silenced."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "delay": 2, "mininterval": 2})

    ignored = ["onnx/*", "openvino/*", "*.msgpack"]
    try:
        return Path(snapshot_download(name, revision=revision, ignore_patterns=ignored, tqdm_class=LateBar))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"model '{name}': neither a local folder nor available from the hub ({reason}); "
            "check the name, the network and HF_TOKEN, or give the folder of a downloaded model"
        ) from None
