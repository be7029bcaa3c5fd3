"""Artifacts made domain by domain: in scratch, where a killed run goes on, then published whole."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from batchwright.core.atomic import publish_dir, sync_files
from batchwright.core.fingerprint import files_fingerprint, fingerprint
from batchwright.core.results import read_json, write_json
from batchwright.core.runtime import scratch
from batchwright.formats.pairs import domains, file_stem
from batchwright.formats.provenance import Provenance

Metrics = dict[str, Any]
Work = Callable[[str, Path], Metrics]
"""Takes a domain; writes its folder into the folder given; returns what there is to say of it."""

_STAGES = Path(__file__).parent


def publish_domains(
    stage: str, work: Work, source: Provenance, settings: object, inputs: Sequence[Path], *, pairs: Path, output: Path
) -> dict[str, Metrics]:
    """Do the ``work`` of each domain of ``pairs`` that a run of the same content has not done yet.

    ``source``, ``settings``, the ``inputs`` besides those of ``source`` and the stage's code decide the content.
    Publishes the domains' folders, and ``source`` beside them, as ``output``.
    """
    files = files_fingerprint([*inputs, _STAGES / stage, _STAGES.with_name("formats")])
    parts = scratch(stage, fingerprint(settings, source.model_dump(), files))
    made, ledgers = parts / "made", parts / "ledgers"
    made.mkdir(exist_ok=True)
    metrics = {}
    for domain in tqdm(domains(pairs), desc=stage, unit="domain", mininterval=2, delay=2):
        ledger = ledgers / f"{file_stem(domain)}.json"
        if not ledger.exists():
            found = work(domain, made)
            sync_files(made / file_stem(domain))
            write_json(ledger, found)  # last: a domain counts as done once its ledger is there
        metrics[domain] = read_json(ledger, made_by=stage)
    shutil.rmtree(ledgers, ignore_errors=True)
    source.write(made)
    publish_dir(made, output)
    parts.rmdir()
    return metrics
