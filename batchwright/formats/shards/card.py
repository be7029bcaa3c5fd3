"""Write the dataset card of shards."""

from collections.abc import Iterable
from pathlib import Path
from string import Template

import yaml

from batchwright.core.atomic import atomic_file
from batchwright.formats.shards import EpochSummary, Manifest, ShardSet

CARD = "README.md"
TEMPLATE = Path(__file__).with_name("card.md")
COLUMNS = {
    "id": "hash of the pair",
    "query": "the pair's query",
    "document": "the pair's document, which answers it",
    "domain": "where the pair is from",
    "negatives": "the pair's own hard negatives, possibly none",
    "mask": "bit j, lowest bit first: document j of the batch is no negative of this query",
    "reasons": "a byte per masked document, in their order: 0 known positive, 1 duplicate, 2 judged, 3 score",
    "hardness": "mean similarity of the query to its unmasked negatives",
    "masked_share": "share of the row's negatives that are masked",
    "cluster": "the pair's cluster",
}


def write_card(folder: Path, manifest: Manifest) -> None:
    """Write the card of the shards in ``folder``. It makes ``datasets.load_dataset(folder)`` find the shards."""
    names = ShardSet(folder, manifest).batch(0).schema.names
    made_from = {"seed": manifest.seed, "models": manifest.models, "pack": manifest.parameters}
    facts = {
        "policy": manifest.policy,
        "rows": f"{manifest.rows:,}",
        "batches": f"{manifest.batches:,}",
        "batch_size": manifest.batch_size,
        "last": manifest.batch_size - 1,
        "columns": _lines(f"| `{name}` | {COLUMNS[name]} |" for name in names),
        "epochs": _lines(_epoch(number, epoch) for number, epoch in enumerate(manifest.epochs, start=1)),
        "parameters": yaml.safe_dump(made_from, sort_keys=True).rstrip(),
    }
    with atomic_file(folder / CARD) as temporary:
        temporary.write_text(Template(TEMPLATE.read_text(encoding="utf-8")).substitute(facts), encoding="utf-8")


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _epoch(number: int, epoch: EpochSummary) -> str:
    measures = f"{epoch.hardness:.4f} | {epoch.unmasked_hardness:.4f} | {epoch.masked_share:.2%}"
    return f"| {number} | {epoch.batches:,} | {measures} | {epoch.repeated:,} | {epoch.met_before:.2%} |"
