"""Work that is done domain by domain, and what it leaves behind."""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from batchwright.by_domain.kept import forget_others, keep, kept, read_ledger
from batchwright.by_domain.kept_map import KeptMap, Map
from batchwright.by_domain.memory import check_domains, of_pairs, pairs_of, texts_of
from batchwright.by_domain.spread import Spread, on_this_machine
from batchwright.core.atomic import atomic_dir
from batchwright.core.bar import bar
from batchwright.core.fingerprint import code_fingerprint, fingerprint, versions
from batchwright.core.messages import safe
from batchwright.core.room import used
from batchwright.core.runtime import scratch

_LIBRARIES = ("numpy", "pyarrow", "scipy", "faiss-cpu", "faiss-gpu-cuvs")
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
    memory_of: Callable[[str], float] = of_pairs,
    size_of: Callable[[str], int] = pairs_of,
    processes: int = 1,
    one_core: bool = False,
    spilled_of: Callable[[str], float] = texts_of,
    check_room: Callable[[int], None] = lambda _: None,
) -> dict[str, Done]:
    """Run ``work`` for every domain in ``inputs``, unless this or an earlier run has already done so.

    ``inputs[domain]`` identifies all that the domain's files depend on, but for the code, which lies in ``package``,
    and the libraries of all stages. Finished work is kept in the scratch folder of ``stage``, such as ``pack/random``;
    that of earlier runs is removed once all domains are done. ``spread`` takes domains, and the parts of those of
    ``LARGE`` size, to processes. ``memory_of(domain)`` is how many bytes its work takes, ``size_of(domain)`` how many
    pairs it has. On this machine, ``processes`` domains or parts are done at a time, each on one core, unless there is
    little to do. ``one_core`` also limits this process to one: the last bits of a product depend on the number of
    cores. ``spilled_of(domain)`` is how many bytes lie in the scratch folder while its work is done.
    ``check_room(made)`` checks the disk for all domains, whose earlier work, finished or not, takes ``made`` bytes.

    Raises:
        InputError: there is not enough memory or disk for the largest domain that is to be done.
    """
    code = code_fingerprint(package), sys.version_info[:3], versions(*_LIBRARIES)
    folders = {domain: scratch(stage, fingerprint(domain, inputs[domain], code)) for domain in sorted(inputs)}
    check_room(sum(map(used, folders.values())))
    found = {
        domain: kept(parts / _LEDGER, [parts / _FILES])
        for domain, parts in bar(folders.items(), desc=f"{stage}, kept", unit="domain")
    }
    waiting = [domain for domain, metrics in found.items() if metrics is None]
    sizes = {domain: size_of(domain) for domain in waiting}
    large = [domain for domain in waiting if sizes[domain] >= LARGE]
    if sum(sizes.values()) < LARGE:
        processes = 1
    for together in ([domain for domain in waiting if domain not in large], *([domain] for domain in large)):
        check_domains(together, memory_of, processes, spilled_of)
    # OpenMP's limit holds for one thread, here this one; BLAS's for all.
    with threadpool_limits(1) if one_core else nullcontext():
        missing = {domain: folders[domain] for domain in waiting}
        _do_all(work, missing, large, partial(spread, processes=processes), stage)
    for parts in folders.values():
        shutil.rmtree(parts / _PARTS, ignore_errors=True)
    forget_others(stage, {parts.name for parts in folders.values()})
    return {
        domain: Done(files=parts / _FILES, metrics=_metrics(parts, found[domain]), new=found[domain] is None)
        for domain, parts in folders.items()
    }


def _do_all(work: Work, folders: Mapping[str, Path], large: Sequence[str], spread: Spread, stage: str) -> None:
    whole = [(domain, folder.resolve()) for domain, folder in folders.items() if domain not in large]
    spread(partial(_do_whole, work), whole, desc=stage, unit="domain")
    for domain in large:
        _do(work, domain, folders[domain], KeptMap(folders[domain] / _PARTS, spread, f"{stage}, {safe(domain)}"))


def _do_whole(work: Work, item: tuple[str, Path]) -> None:
    _do(work, *item, map)


def _do(work: Work, domain: str, parts: Path, do_parts: Map) -> None:
    files = parts / _FILES
    files.mkdir(exist_ok=True)
    for left in files.rglob(".*"):  # temporary files of a killed run
        left.unlink()
    keep(parts / _LEDGER, [files], work(domain, files, do_parts))


def _metrics(parts: Path, found: Metrics | None) -> Metrics:
    """Return what a domain's work returned, from its ledger if that was written just now."""
    return read_ledger(parts / _LEDGER) if found is None else found


def publish_domains(done: Mapping[str, Done], write_rest: Callable[[Path], None], output: Path) -> None:
    """Publish the files of all domains, and what ``write_rest`` adds to their folder, as the artifact ``output``."""
    with atomic_dir(output) as folder:
        copy_files(done, folder)
        write_rest(folder)


def copy_files(done: Mapping[str, Done], folder: Path) -> None:
    """Copy the files of all domains into ``folder``."""
    for each in done.values():
        shutil.copytree(each.files, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
