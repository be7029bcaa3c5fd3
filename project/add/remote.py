"""Sources elsewhere: files at a URL, which DVC fetches and pins, and datasets of the Hugging Face hub at a commit."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from batchwright.core.errors import InputError
from batchwright.core.paths import RAW_PAIRS
from pipelines.ingest.sources import KINDS, kind_of
from project.add.kinds import Entry
from project.programs import dvc

_HUB = "hf://datasets/"
_DATASET = re.compile(r"(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[^/]+))?/?")


def is_url(name: str) -> bool:
    """Whether this is a URL, rather than a path."""
    return "://" in name


def dataset(url: str, split: str | None, config: str | None) -> Entry | None:
    """Return the source that ``hf://datasets/OWNER/NAME@REVISION`` is, pinned to a commit; None for other URLs.

    Raises:
        InputError: there is no such dataset, or the hub cannot be reached.
    """
    if not url.startswith("hf://"):
        return None
    parts = _DATASET.fullmatch(url.removeprefix(_HUB))
    if parts is None:
        raise InputError(f"{url}: is no dataset; write {_HUB}OWNER/NAME or {_HUB}OWNER/NAME@REVISION")
    from huggingface_hub import HfApi  # takes a second to import

    try:
        commit = HfApi().dataset_info(parts["name"], revision=parts["revision"]).sha
    except Exception as error:  # of the hub, of the network, of whoever speaks between
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(f"{url}: cannot be found ({reason}); check the name, the network and HF_TOKEN") from None
    chosen = {"config": config, "split": split, "revision": commit}
    return {"kind": "huggingface", "name": parts["name"]} | {key: value for key, value in chosen.items() if value}


@contextmanager
def fetched(url: str, *, look: bool) -> Iterator[Path]:
    """Import the file at a URL into ``raw/pairs``, as ``dvc import-url`` does, and yield its path.

    It is removed again if the block fails; with ``look``, it is only fetched for the block.

    Raises:
        InputError: it cannot be fetched, its name says no kind, or there is such a file already.
    """
    name = unquote(PurePosixPath(urlsplit(url).path).name)
    if kind_of(name) is None:
        raise InputError(
            f"{url}: its name says no known kind of file; give a URL that ends in one of {', '.join(KINDS)}"
        )
    if look:
        with tempfile.TemporaryDirectory() as folder:
            dvc("get-url", url, str(Path(folder, name)), quiet=True)
            yield Path(folder, name)
        return
    file = RAW_PAIRS / name
    pointer = file.with_name(f"{name}.dvc")
    for present in (file, pointer):
        if present.exists() or present.is_symlink():
            raise InputError(f"{present}: is there already; dvc update {pointer} fetches it again, or remove it first")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        dvc("import-url", url, str(file), quiet=True)
        yield file
    except BaseException:
        for present in (file, pointer):
            present.unlink(missing_ok=True)
        raise
