"""Guess the kind of a file or folder of pairs."""

from collections import Counter
from pathlib import Path
from typing import Any

from batchwright.core.errors import InputError
from pipelines.ingest.sources.huggingface import SAVED

Entry = dict[str, Any]
"""An entry of ``ingest.sources``."""

_KINDS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
}
_PACKED = (".gz", ".zst", ".bz2", ".lz4")


def guess_kind(path: Path) -> Entry:
    """Return ``kind`` and ``path`` of a source, as ``params.yaml`` has them.

    Raises:
        InputError: there is nothing of a known kind.
    """
    if path.is_file():
        return {"kind": _kind(path), "path": str(path)}
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    if (path / "corpus.jsonl").is_file() and (path / "queries.jsonl").is_file():
        splits = sorted(file.stem for file in (path / "qrels").glob("*.tsv"))
        if not splits:
            raise InputError(f"{path}/qrels: no judgements (*.tsv) in this BEIR folder")
        return {"kind": "beir", "path": str(path), "split": "train" if "train" in splits else splits[0]}
    if any((path / name).is_file() for name in SAVED):
        return {"kind": "huggingface", "name": str(path)}
    endings = Counter(_ending(file) for file in path.iterdir() if _known(file))
    if not endings:
        raise InputError(f"{path}: holds no file of a known kind ({', '.join(_KINDS)})")
    ending = endings.most_common(1)[0][0]
    first = min(file for file in path.iterdir() if _known(file) and _ending(file) == ending)
    return {"kind": _kind(first), "path": f"{path}/*{ending}"}


def not_read(path: Path, entry: Entry) -> list[str]:
    """The names of files of other kinds in a folder, which its entry leaves out."""
    if not path.is_dir() or "*" not in entry.get("path", ""):
        return []
    read = {file.name for file in path.glob(Path(entry["path"]).name)}
    return sorted(file.name for file in path.iterdir() if _known(file) and file.name not in read)


def _known(file: Path) -> bool:
    return file.is_file() and (file.suffix in _PACKED or file.suffix.lower() in _KINDS)


def _ending(file: Path) -> str:
    return "".join(file.suffixes[-2:]) if file.suffix in _PACKED else file.suffix


def _kind(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix not in _PACKED]
    if not suffixes or suffixes[-1] not in _KINDS:
        raise InputError(f"{file}: unknown kind of file; rename it to one of {', '.join(_KINDS)}")
    return _KINDS[suffixes[-1]]
