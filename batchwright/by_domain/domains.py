"""Work that is done domain by domain, and what it leaves behind."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batchwright.by_domain.kept import forget_others, keep, kept
from batchwright.by_domain.memory import check_domains, of_pairs
from batchwright.core.atomic import atomic_dir
from batchwright.core.bar import bar
from batchwright.core.fingerprint import code_fingerprint, fingerprint
from batchwright.core.runtime import scratch

_LEDGER = "ledger.json"

Metrics = dict[str, Any]
Work = Callable[[str, Path], Metrics]
"""Takes a domain and a folder, writes files into it and returns what there is to say about the domain. When a killed
run goes on, it finds in the folder what it wrote before."""


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
    memory_of: Callable[[str], float] = of_pairs,
) -> dict[str, Done]:
    """Run ``work`` for every domain in ``inputs``, unless this or an earlier run has already done so.

    ``inputs[domain]`` identifies all that the domain's files depend on, but for the code, which lies in ``package``.
    Finished work is kept in the scratch folder of ``stage``, such as ``pack/random``; that of earlier runs is removed
    once all domains are done. ``memory_of(domain)`` is how many bytes its work takes.

    Raises:
        InputError: there is not enough memory for the largest domain that is to be done.
    """
    code = code_fingerprint(package)
    folders = {domain: scratch(stage, fingerprint(domain, inputs[domain], code)) for domain in sorted(inputs)}
    check_domains([domain for domain, parts in folders.items() if not (parts / _LEDGER).exists()], memory_of)
    done = {}
    for domain, parts in bar(folders.items(), desc=stage, unit="domain"):
        files, ledger = parts / "files", parts / _LEDGER
        found = kept(ledger, [files])
        if found is None:
            files.mkdir(exist_ok=True)
            for left in files.rglob(".*"):  # temporary files of a killed run
                left.unlink()
        metrics = keep(ledger, [files], work(domain, files)) if found is None else found
        done[domain] = Done(files=files, metrics=metrics, new=found is None)
    forget_others(stage, {parts.name for parts in folders.values()})
    return done


def publish_domains(done: Mapping[str, Done], write_rest: Callable[[Path], None], output: Path) -> None:
    """Publish the files of all domains, and what ``write_rest`` adds to their folder, as the artifact ``output``."""
    with atomic_dir(output) as folder:
        copy_files(done, folder)
        write_rest(folder)


def copy_files(done: Mapping[str, Done], folder: Path) -> None:
    """Copy the files of all domains into ``folder``."""
    for each in done.values():
        shutil.copytree(each.files, folder, dirs_exist_ok=True)
