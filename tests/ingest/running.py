"""Runs the stage in this process and reads what it wrote."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from batchwright.core.files import read_json
from batchwright.formats.pairs import domains, read_pairs, read_rejects
from stages.ingest import main

Rows = list[dict[str, Any]]


class Outcome(NamedTuple):
    """Pairs and rejects as rows, and the content of ``results/ingest.json``."""

    pairs: Rows
    rejects: Rows
    results: dict[str, Any]

    @property
    def texts(self) -> set[tuple[str, str]]:
        return {(pair["query"], pair["document"]) for pair in self.pairs}

    @property
    def reasons(self) -> list[tuple[str, int, str]]:
        return [(Path(reject["source"]).name, reject["row"], reject["reason"]) for reject in self.rejects]


def configure(*sources: dict[str, Any], **others: Any) -> None:
    """Write a ``params.yaml`` with these sources to the working directory."""
    values = {"held_out": 0.25, "max_reject_rate": 1.0, **others}
    Path("params.yaml").write_text(yaml.safe_dump({"ingest": {"sources": list(sources), **values}}))


def ingest(*sources: dict[str, Any], **others: Any) -> Outcome:
    """Run the stage on these sources and read what it wrote."""
    configure(*sources, **others)
    main()
    folder = Path("data/pairs")
    pairs = [pair for domain in domains(folder) for pair in read_pairs(folder, domain).to_pylist()]
    rejects = read_rejects(Path("data/rejects.parquet")).to_pylist()
    return Outcome(pairs, rejects, read_json(Path("results/ingest.json"), made_by="ingest"))
