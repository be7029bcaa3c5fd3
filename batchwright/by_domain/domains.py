"""A stage's work, done domain by domain, and again only for domains whose inputs have changed."""

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from batchwright.by_domain.kept import KeptMap, forget_others, keep, kept, read_ledger
from batchwright.by_domain.spread import Map, Spread, on_this_machine
from batchwright.core.atomic import atomic_dir
from batchwright.core.fingerprint import code_fingerprint, fingerprint, versions
from batchwright.core.runtime import scratch
from batchwright.core.terminal import bar, safe

_LIBRARIES = ("numpy", "pyarrow", "scipy", "faiss-cpu", "faiss-gpu")
_LEDGER, _FILES, _PARTS = "ledger.json", "files", "parts"

Metrics = dict[str, Any]
Work = Callable[[str, Path, Map], Metrics]
"""Takes a domain, a folder and a ``map`` for its parts. Writes files into the folder and returns what there is to say
about the domain. When a killed run goes on, it finds in the folder what it wrote before."""

LARGE = 20_000
"""Pairs of a domain from which on its parts are spread, and of all domains from which on several processes pay.

Smaller domains are done as a whole, several at a time."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """A domain's finished work: the folder ``files``, what ``Work`` returned, and whether it was done just now."""

    files: Path
    metrics: Metrics
    new: bool


def do_domains(
    stage: str,
    package: Path,
    work: Work,
    inputs: Mapping[str, object],
    spread: Spread = on_this_machine,
    *,
    pairs: Mapping[str, int] | None = None,
    processes: int = 1,
) -> dict[str, Done]:
    """Run ``work`` for every domain in ``inputs``, unless this or an earlier run has already done so.

    ``inputs[domain]`` identifies all that the domain's files depend on, but for the code, which lies in ``package``,
    and the libraries of all stages. Finished work is kept in the scratch folder of ``stage``, such as ``pack/random``;
    that of earlier runs is removed once all domains are done.

    ``spread`` takes domains to processes, and the parts of those that have ``LARGE`` numbers of ``pairs``. On this
    machine, ``processes`` domains or parts are done at a time, each on one core, unless there is little to do.
    """
    code = code_fingerprint(package), sys.version_info[:3], versions(*_LIBRARIES)
    folders = {domain: scratch(stage, fingerprint(domain, inputs[domain], code)) for domain in sorted(inputs)}
    earlier = {
        domain: kept(folder / _LEDGER, [folder / _FILES])
        for domain, folder in bar(folders.items(), desc=f"{stage}, kept", unit="domain")
    }
    waiting = {domain: (pairs or {}).get(domain, 0) for domain, metrics in earlier.items() if metrics is None}
    if sum(waiting.values()) < LARGE:
        processes = 1
    spread = partial(spread, processes=processes)
    whole = [(domain, folders[domain].resolve()) for domain, count in waiting.items() if count < LARGE]
    spread(partial(_do_whole, work), whole, desc=stage, unit="domain")
    for domain in (domain for domain, count in waiting.items() if count >= LARGE):
        parts = KeptMap(folders[domain] / _PARTS, spread, f"{stage}, {safe(domain)}")
        _do(work, domain, folders[domain], parts)
    for folder in folders.values():
        shutil.rmtree(folder / _PARTS, ignore_errors=True)
    forget_others(stage, {folder.name for folder in folders.values()})
    return {
        domain: Done(
            files=folder / _FILES,
            metrics=read_ledger(folder / _LEDGER) if (metrics := earlier[domain]) is None else metrics,
            new=domain in waiting,
        )
        for domain, folder in folders.items()
    }


def _do_whole(work: Work, item: tuple[str, Path]) -> None:
    _do(work, *item, map)


def _do(work: Work, domain: str, folder: Path, do_parts: Map) -> None:
    files = folder / _FILES
    files.mkdir(exist_ok=True)
    for temporary in files.rglob(".*"):  # of a killed run
        temporary.unlink()
    keep(folder / _LEDGER, [files], work(domain, files, do_parts))


def publish_domains(done: Mapping[str, Done], write_rest: Callable[[Path], None], output: Path) -> None:
    """Publish the files of all domains, and what ``write_rest`` adds to their folder, as the artifact ``output``."""
    with atomic_dir(output) as folder:
        copy_files(done, folder)
        write_rest(folder)


def copy_files(done: Mapping[str, Done], folder: Path) -> None:
    """Copy the files of all domains into ``folder``."""
    for domain in done.values():
        shutil.copytree(domain.files, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
