"""Build an artifact one domain at a time in scratch, so that a killed run can resume, then publish it as a whole."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from batchwright.core.atomic import publish_dir, sync_files
from batchwright.core.fingerprint import code_fingerprint, files_fingerprint, fingerprint
from batchwright.core.results import read_json, write_json
from batchwright.core.runtime import scratch
from batchwright.formats.pairs import domains, file_stem
from batchwright.formats.provenance import Provenance

Metrics = dict[str, Any]
Work = Callable[[str, Path], Metrics]
"""Takes a domain and a parent folder, writes the domain's folder into it and returns the domain's metrics."""

_STAGES = Path(__file__).parent


def publish_domains(
    stage: str, work: Work, source: Provenance, settings: object, inputs: Sequence[Path], *, pairs: Path, output: Path
) -> dict[str, Metrics]:
    """Run ``work`` for every domain of ``pairs`` and publish the domains' folders, with ``source``, as ``output``.

    Resumes an unfinished run with the same content: domains that it completed are not processed again. The content is
    identified by ``source``, ``settings``, the code and ``inputs``, the files that ``source`` does not cover.

    Returns:
        The metrics of each domain.
    """
    code = code_fingerprint(_STAGES / stage)
    parts = scratch(stage, fingerprint(settings, source.model_dump(), files_fingerprint(inputs), code))
    made, ledgers = parts / "made", parts / "ledgers"
    made.mkdir(exist_ok=True)
    metrics = {}
    for domain in tqdm(domains(pairs), desc=stage, unit="domain", mininterval=2, delay=2):
        ledger = ledgers / f"{file_stem(domain)}.json"
        if not ledger.exists():
            found = work(domain, made)
            sync_files(made / file_stem(domain))
            write_json(ledger, found)  # last: a domain counts as done once its ledger exists
        metrics[domain] = read_json(ledger, made_by=stage)
    shutil.rmtree(ledgers, ignore_errors=True)
    source.write(made)
    publish_dir(made, output)
    parts.rmdir()
    return metrics
