"""Quality beside the hardness of batches: figures 2 and 10 of *Contextual Document Embeddings* (arXiv 2410.02525).

``python -m experiments.rivals.hardness TABLE SET`` reads the table that ``experiments.rivals.summary`` wrote, prints
and writes ``TABLE-hardness.tsv``: for each loss, the ways that only put the same pairs into other batches, easiest
batches first. ``hardness`` is that of the second half of a training; the first half of ours is random. ``gain`` is over
random batches with InfoNCE.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from batchwright.core.command import command
from batchwright.core.errors import InputError
from batchwright.core.files import read_tsv, write_tsv
from experiments.rivals.orders import ORDERS

LOSSES: dict[str, tuple[str, ...]] = {
    "InfoNCE": (*ORDERS, "ours, InfoNCE", "ours, a cluster a batch, InfoNCE"),
    "our loss": ("random, our loss", "ours", "ours, neighbours", "ours, four clusters", "ours, two clusters"),
}
EXAMPLE = "python -m experiments.rivals.hardness experiments/rivals/static.tsv nl2bash"
_COLUMNS = ("hardness", "masked", "ndcg", "gain")


def main(table: str, name: str) -> str:
    """Print and write the rows of one set."""
    file = Path(table)
    rows = by_hardness(read_tsv(file, made_by="experiments.rivals.summary"), name)
    if not rows:
        raise InputError(f"{table}: has no set {name}")
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    write_tsv(file.with_stem(f"{file.stem}-hardness"), rows)
    return f"{len(rows)} ways in {file.stem}-hardness.tsv"


def by_hardness(rows: Iterable[Mapping[str, str]], name: str) -> list[dict[str, str]]:
    """One row per loss and way that was tried on the set ``name``."""
    tried = {row["arm"]: row for row in rows if row["set"] == name}
    ordered = [
        (loss, tried[arm])
        for loss, arms in LOSSES.items()
        for arm in sorted(tried.keys() & set(arms), key=lambda arm: float(tried[arm]["hardness"]))
    ]
    return [{"way": row["arm"], "loss": loss} | {key: row[key] for key in _COLUMNS} for loss, row in ordered]


if __name__ == "__main__":
    command("experiments.rivals.hardness", str(__doc__), EXAMPLE, table="what the summary wrote", name="a set")
