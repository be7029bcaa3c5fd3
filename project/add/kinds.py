"""Guess what a file or a folder of pairs is: its kind, and which files of a folder are meant for training."""

import fnmatch
import glob
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from batchwright.core.errors import InputError
from pipelines.ingest.sources import KINDS, PACKED, kind_of
from pipelines.ingest.sources.huggingface import SAVED
from pipelines.ingest.sources.split_names import HELD_OUT, TRAIN, known_split
from project.add.words import words

Entry = dict[str, Any]
"""An entry of ``ingest.sources``."""

_SHOWN = 3
_BEIR = ("corpus.jsonl", "queries.jsonl")
_CONVERT = {
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar", ".xz"), "unpack it, and add what is in it"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save its sheet as CSV"),
}


def guess_kind(path: Path) -> Entry:
    """Return ``kind`` and ``path`` of a source, as ``params.yaml`` has them.

    Raises:
        InputError: there is nothing of a known kind, or it is not clear which files are for training.
    """
    if path.is_file():
        return {"kind": _kind(path), "path": glob.escape(str(path))}
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    if not _is_beir(path) and all((path / name).exists() or (path / f"{name}.gz").exists() for name in _BEIR):
        raise InputError(f"{path}: the files of this BEIR folder are compressed; gunzip them, and add it again")
    if _is_beir(path):
        splits = _judged(path)
        if not splits and any((path / "qrels").glob("*.tsv.gz")):
            raise InputError(f"{path}/qrels: the judgements of this BEIR folder are compressed; gunzip them")
        if not splits:
            raise InputError(f"{path}/qrels: no judgements (*.tsv) in this BEIR folder")
        return {"kind": "beir", "path": str(path), "split": "train" if "train" in splits else splits[0]}
    if any((path / name).is_file() for name in SAVED):
        return {"kind": "huggingface", "name": str(path)}
    files = _for_training(path, _files(path))
    ending = Counter(map(_ending, files)).most_common(1)[0][0]
    chosen = {file.name for file in files if _ending(file) == ending}
    return {"kind": _kind(path / min(chosen)), "path": f"{glob.escape(str(path))}/{_pattern(path, chosen, ending)}"}


def not_read(path: Path, entry: Entry) -> list[str]:
    """Sentences about what a folder holds that its entry leaves out."""
    if entry["kind"] in ("beir", "huggingface"):
        splits = _judged(path) if entry["kind"] == "beir" else _saved_splits(path)
        chosen = entry.get("split", "train")
        others = [split for split in splits if split != chosen]
        told = [f"not read: the split{'s' * (len(others) > 1)} {', '.join(others)}"] if others else []
        if known_split(chosen) in ("dev", "test"):
            told.append(f"read: the split {chosen}, since there is none for training; then do not evaluate on it")
        return told
    if not path.is_dir():
        return []
    left = [file for file in _files(path) if not fnmatch.fnmatchcase(str(file), entry["path"])]
    held_out = [file.name for file in left if split_of(file.name) == "held out"]
    kinds = [file.name for file in left if file.name not in held_out]
    told = []
    if held_out:
        told.append(f"not read: {listed(held_out)}, by {_their(held_out)} not for training")
    if kinds:
        told.append(f"not read: {len(kinds):,} other files, such as {kinds[0]}; add them by themselves")
    if below := _folders(path):
        told.append(f"not read: what is in {listed(f'{name}/' for name in below)}; add folders by themselves")
    return told


def split_of(name: str) -> str | None:
    """The split that the name of a file says it is of: ``train``, ``held out`` or none."""
    stem = name.removesuffix(_ending(Path(name)))
    held = (f"{a}{b}" for a, b in re.findall(r"(held|hold)[-_ ](out)", stem.lower()))
    found = {re.sub("(?:set|data|split|pairs|file)s?$", "", word) for word in words(stem)} | {*held}
    if found & TRAIN:
        return "train"
    return "held out" if found & HELD_OUT else None


def _for_training(path: Path, files: list[Path]) -> list[Path]:
    """Leave out files that are of other splits by their names, and all that are of none if some are for training."""
    if not files:
        below = _folders(path)
        below = [name for name in below if split_of(Path(name).name) == "train"] or below
        hint = f"; add one of its folders: {listed(below)}" if below else ""
        raise InputError(f"{path}: holds no file of a known kind ({', '.join(KINDS)}){hint}")
    train = [file for file in files if split_of(file.name) == "train"]
    chosen = train or [file for file in files if split_of(file.name) is None]
    if not chosen:
        names = listed([file.name for file in files])
        raise InputError(f"{path}: holds no file for training, only {names}; add a file by its name if it is meant")
    return chosen


def _pattern(path: Path, chosen: set[str], ending: str) -> str:
    """The pattern that matches these files of the folder, and no other of its files."""
    everything = {file.name for file in path.iterdir() if not file.name.startswith(".")}
    if len(chosen) == 1 and any(split_of(name) for name in everything):
        return glob.escape(*chosen)
    for pattern in (f"*{ending}", f"train*{ending}", f"*train*{ending}"):
        if {name for name in everything if fnmatch.fnmatchcase(name, pattern)} == chosen:
            return pattern
    raise InputError(
        f"{path}: holds files for training and others, and no pattern tells them apart; add {listed(sorted(chosen))} "
        "one by one"
    )


def _is_beir(path: Path) -> bool:
    return all((path / name).is_file() for name in _BEIR)


def _judged(path: Path) -> list[str]:
    return sorted(file.stem for file in (path / "qrels").glob("*.tsv"))


def _saved_splits(path: Path) -> list[str]:
    try:
        splits = json.loads((path / SAVED[0]).read_text(encoding="utf-8"))["splits"]
    except (OSError, ValueError, LookupError, TypeError):
        return []  # a single table; or damaged, which its reader says
    return [str(split) for split in splits]


def with_jq(program: str, file: str) -> str:
    """The command that writes with jq what a ``program`` makes of a file."""
    return f"jq -c {shlex.quote(program)} {shlex.quote(file)} > pairs.jsonl"


def _folders(path: Path) -> list[str]:
    """The folders in a folder, at any depth, that hold files of a known kind."""
    below = {file.parent.relative_to(path) for file in path.rglob("*") if _known(file)} - {Path()}
    return sorted(str(folder) for folder in below if not any(name.startswith(".") for name in folder.parts))


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.iterdir() if _known(file))


def _known(file: Path) -> bool:
    ours = not file.name.startswith((".", "~$"))  # hidden, or kept by a spreadsheet while it has the file open
    return ours and file.is_file() and (file.suffix in PACKED or file.suffix.lower() in KINDS)


def _ending(file: Path) -> str:
    return "".join(file.suffixes[-2:]) if file.suffix in PACKED else file.suffix


def _kind(file: Path) -> str:
    kind = kind_of(str(file))
    if kind is None:
        else_ = f"convert it, or rename it to one of {', '.join(KINDS)}"
        raise InputError(f"{file}: unknown kind of file; {_CONVERT.get(file.suffix.lower(), else_)}")
    return kind


def listed(names: Iterable[str], most: int = _SHOWN) -> str:
    """The first names, and how many more there are."""
    found = list(names)
    return ", ".join(found[:most]) + (f" and {len(found) - most:,} more" if len(found) > most else "")


def _their(names: list[str]) -> str:
    return "their names" if len(names) > 1 else "its name"
