"""Models: the prefixes put before their texts, where their folders are found, their hashes, and why they fail."""

import importlib.util
import json
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field, StringConstraints

from batchwright.core.arguments import check_texts
from batchwright.core.atomic import check, sha256
from batchwright.core.errors import InputError, disk_is_full
from batchwright.core.fingerprint import file_sha256, fingerprint
from batchwright.core.params import Params
from batchwright.core.paths import RAW, check_watched
from batchwright.core.terminal import bar_class

if TYPE_CHECKING:
    from sentence_transformers.base.model import BaseModel
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


Side = Literal["query", "document"]
SIDES: tuple[Side, Side] = ("query", "document")
_PLURALS: dict[Side, str] = {"query": "queries", "document": "documents"}


class Prefix(Params):
    """The text put before queries and documents."""

    query: str = ""
    """Put before each query, such as ``search_query: ``."""
    document: str = ""
    """Put before each document, such as ``search_document: ``."""

    def of(self, side: Side) -> str:
        """The prefix for one side."""
        return self.query if side == "query" else self.document


class Prefixes(Params):
    """The prefixes that a model was trained with."""

    default: Prefix = Prefix()
    """For every domain that has no entry in ``domains``."""
    domains: dict[str, Prefix] = Field(default={})
    """For individual domains, by name."""

    def of(self, domain: str | None, side: Side) -> str:
        """The prefix for one side of a domain; None means the default."""
        return (self.default if domain is None else self.domains.get(domain, self.default)).of(side)

    def texts(self) -> list[str]:
        """All prefixes that are not empty."""
        every = [self.default, *self.domains.values()]
        return sorted({text for prefix in every for side in SIDES if (text := prefix.of(side))})

    def put_before(self, texts: Sequence[str], side: Side, domains: Sequence[str] | None = None) -> list[str]:
        """Prepend the prefix to each text; ``domains`` gives the domain of each text.

        Raises:
            InputError: ``texts`` or ``domains`` are no lists of texts, or not equally long.
        """
        check_texts(_PLURALS[side], texts)
        if domains is not None:
            check_texts("domains", domains)
            if len(domains) != len(texts):
                raise InputError(f"{len(texts)} {_PLURALS[side]}, but {len(domains)} domains; pass one for each")
        owners = domains if domains is not None else [None] * len(texts)
        return [self.of(domain, side) + text for domain, text in zip(owners, texts, strict=True)]


_WEIGHTS = ("*.safetensors", "*.bin")
_CONFIGURATION = ("*.json", "*.txt", "*.model")
_PICKLED = "*model*.bin"
_MODULES = "modules.json"
_INDEX = "*.bin.index.json"
_CONVERTED = {"onnx", "openvino"}
"""Folders of other formats, which nothing here reads."""


_POINTER, _POINTER_BYTES = b"version https://git-lfs", 1024


class ModelVersion(Params):
    """Which version of a model is meant, and what of it may be read."""

    revision: str | None = None
    """Commit, tag or branch on the hub; null means the main branch at the time the model is fetched."""
    pickled_weights: list[Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]] = []
    """SHA-256 of weight files that are no safetensors and may be read nevertheless. Others are refused: pickled weights
    can hold code, which only PyTorch's restricted reader keeps from running."""


def check_model_watched(name: str) -> None:
    """Check that DVC would see a model change that is named by a folder.

    Raises:
        InputError: the folder lies outside ``raw/models``.
    """
    if Path(name).is_dir():
        check_watched([name], RAW / "models")


def locate_model(name: str, version: ModelVersion | None = None) -> Path:
    """Return the folder of a model named by a folder, by ``package:NAME`` or by its name on the Hugging Face hub.

    A package must contain its model in a folder ``model``. A hub model is downloaded, or read from the
    local cache if ``HF_HUB_OFFLINE=1``.

    Raises:
        InputError: there is no such model, or its weights could run code.
    """
    version = version or ModelVersion()
    folder = _find(name, version.revision)
    _check_fetched(name, folder)
    _check_merged(name, folder)
    _check_pickled(name, folder, version.pickled_weights)
    return folder


def _find(name: str, revision: str | None) -> Path:
    if name.startswith("package:"):
        return _in_package(name.removeprefix("package:"))
    if Path(name).is_dir():
        return Path(name)
    if name.startswith((".", "/")) or name.count("/") > 1:
        raise InputError(f"model '{name}': no such folder")
    return _on_hub(name, revision)


def _check_fetched(name: str, folder: Path) -> None:
    """Refuse files that Git LFS has not fetched."""
    for file in (file for pattern in (*_WEIGHTS, *_CONFIGURATION) for file in folder.rglob(pattern)):
        if file.stat().st_size < _POINTER_BYTES and file.read_bytes().startswith(_POINTER):
            raise InputError(
                f"model '{name}': {file.relative_to(folder)} is not there, only Git LFS's pointer to it; run git lfs "
                "pull in its repository, and copy it again"
            )


def _check_merged(name: str, folder: Path) -> None:
    """Refuse adapters: with peft, libraries would look for the model that one belongs to, also on the hub."""
    if (folder / _transformer(f"model '{name}'", folder) / "adapter_config.json").exists():
        raise InputError(
            f"model '{name}': is an adapter; merge it into its model (merge_and_unload of peft) and save that"
        )


def _transformer(what: str, folder: Path) -> str:
    """Where in a model's folder the first of its modules lies."""
    file = folder / _MODULES
    with loading(what):
        return str(json.loads(file.read_bytes())[0]["path"]) if file.exists() else ""


def _check_pickled(name: str, folder: Path, trusted: Collection[str]) -> None:
    """Refuse weights that libraries would unpickle: they prefer ``model.safetensors`` beside them, or its index."""
    for file in sorted(_pickled(name, folder)):
        relative = Path(os.path.relpath(file, folder))
        preferred = any((file.parent / f"model.safetensors{suffix}").exists() for suffix in ("", ".index.json"))
        converted = not _CONVERTED.isdisjoint(relative.parts)
        if preferred or converted or (digest := file_sha256(file)) in trusted:
            continue
        raise InputError(
            f"model '{name}': {relative} is not in safetensors, and pickled weights can hold code; "
            f"save the model with save_pretrained, or, if you trust it, add to the model's pickled_weights: {digest}"
        )


def _pickled(name: str, folder: Path) -> set[Path]:
    """Weight files of PyTorch's format, also those that only an index names."""
    found = set(folder.rglob(_PICKLED))
    for index in folder.rglob(_INDEX):
        with loading(f"model '{name}': {index.relative_to(folder)}"):
            found |= {index.parent / part for part in json.loads(index.read_bytes())["weight_map"].values()}
    return found


def weights_size(folder: Path) -> int:
    """Bytes of a model's weight files: of those that are read, if there are several formats."""
    formats = [[file for file in folder.rglob(pattern) if _is_read(file, folder)] for pattern in _WEIGHTS]
    return sum(file.stat().st_size for file in next(filter(None, formats), []))


def _is_read(file: Path, folder: Path) -> bool:
    return _CONVERTED.isdisjoint(file.relative_to(folder).parts)


def model_hash(folder: Path) -> str:
    """Hash of a model's weights and configuration; moving or renaming its folder does not change it.

    Raises:
        InputError: the folder has no weights, or has checksums and a file is damaged.
    """
    weights = sorted(file for pattern in _WEIGHTS for file in folder.rglob(pattern))
    if not weights:
        raise InputError(f"model '{folder}': no weights (*.safetensors) in this folder")
    others = sorted(file for pattern in _CONFIGURATION for file in folder.rglob(pattern))
    for file in weights + others:
        check(file, most_bytes=None)
    return fingerprint([(str(file.relative_to(folder)), sha256(file)) for file in weights + others])


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Turn whatever libraries raise about a missing or damaged folder into an ``InputError`` about ``what``.

    They have exceptions of all kinds for it. Want of memory or disk is not about the folder.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        text = str(error)
        if "CUDA" in text or "out of memory" in text or disk_is_full(error):
            raise
        if "contains custom code" in text.partition("\n")[0]:
            raise InputError(f"{what}: brings code of its own, which is never run; take one that needs none") from error
        if _of_shapes(text):
            raise InputError(f"{what}: the shapes of its weights do not match its config.json") from error
        lines = text.strip().splitlines() or [type(error).__name__]
        raise InputError(f"{what}: cannot be loaded ({lines[0]})") from error


def check_whole(what: str, folder: Path, model: "BaseModel", *, pooler: bool = False) -> None:
    """Check that the folder holds all of the sentence-transformers ``model`` that was loaded from it.

    Libraries draw random weights for those that are missing, such as for layers that only config.json has, and make up
    a tokenizer. Only cross-encoders use BERT's ``pooler``, and other models often lack it.

    Raises:
        InputError: a weight is missing or no number, or the tokenizer knows no words, or some without a weight.
    """
    from transformers import PreTrainedModel

    for key, weight in model.named_parameters():
        if not weight.isfinite().all():
            raise InputError(f"{what}: its weights '{key}' hold NaN or infinity; take another version of it")
    backbone = getattr(model[0], "auto_model", None)
    if not isinstance(backbone, PreTrainedModel):
        return
    check_tokenizer(what, model.tokenizer, backbone)
    path = folder / _transformer(what, folder)
    with loading(what):
        kind: Any = type(backbone)
        _, found = kind.from_pretrained(path, config=backbone.config, local_files_only=True, output_loading_info=True)
    missing = sorted(key for key in found["missing_keys"] if pooler or "pooler" not in key.split("."))
    if missing:
        raise InputError(f"{what}: has no weights '{missing[0]}', which its config.json requires")


def warn_of_pooling(what: str, folder: Path, model: "BaseModel") -> None:
    """Warn if ``folder`` leaves open how vectors of tokens become a text's, so that libraries chose for ``model``."""
    chosen = [module.pooling_mode for module in model if hasattr(module, "pooling_mode")]
    if chosen and not (folder / _MODULES).exists():
        print(
            f"warning: {what}: has no {_MODULES}, which would say how vectors of tokens become a text's, so that is "
            f"'{chosen[0]}'; if it was trained otherwise, save it with sentence-transformers and that Pooling",
            file=sys.stderr,
        )


def check_tokenizer(what: str, tokenizer: object, backbone: "PreTrainedModel") -> None:
    """Check that a tokenizer of words knows some, and none that the backbone has no vector for.

    Raises:
        InputError: it does not, or does.
    """
    from transformers import PreTrainedTokenizerBase

    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        return
    check_words(what, tokenizer)
    rows = len(cast("Tensor", backbone.get_input_embeddings().weight))
    special = set(tokenizer.all_special_tokens)
    for word, number in tokenizer.get_vocab().items():
        if number >= rows and word not in special:
            raise InputError(
                f"{what}: its tokenizer gives {word!r} the number {number}, but it embeds only {rows}; take the "
                "tokenizer that it was trained with"
            )


def check_words(what: str, tokenizer: "PreTrainedTokenizerBase") -> None:
    """Check that a tokenizer knows words: where its files are missing, transformers makes up one that knows none.

    Raises:
        InputError: it does not.
    """
    pieces = tokenizer.get_vocab().keys() - tokenizer.all_special_tokens
    if not any(letter.isalnum() for piece in pieces for letter in piece):
        raise InputError(f"{what}: its tokenizer knows no words; is tokenizer.json missing?")


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

    base: Any = bar_class()

    class LateBar(base):  # type: ignore[misc]
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
