"""Make the batches of one domain, or of some small ones, with their masks, in files that a killed run goes on from."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.by_domain import Metrics, keep, kept
from batchwright.core.bar import bar
from batchwright.core.runtime import workers
from batchwright.formats.clusters import Clusters
from batchwright.formats.shards import write_shard
from batchwright.inspect.meetings import met_before
from stages.pack.domain import Domain
from stages.pack.inputs import Inputs
from stages.pack.params import PackParams
from stages.pack.plan import Batch, plan_domain, shares_of
from stages.pack.recipe import choose_recipe

Row = dict[str, Any]


def make_batches(inputs: Inputs, policy: str, params: PackParams, seed: int, name: str, folder: Path) -> Metrics:
    """Write all batches of a domain into ``folder``, as many to a file as to a shard.

    Returns:
        ``recipe`` if the domain has one, the measures of each batch as ``rows``, the number of different ``documents``
        to train on, and for each epoch the share of a batch that comes from one cluster, how many pairs are
        ``left_over`` and how many times a pair was ``repeated``.
    """
    domain, draws = inputs.open(name)
    recipe = choose_recipe(name, domain, draws[0], params, seed) if policy == "contextual" else None
    batches = plan_domain(name, draws, policy, params, seed, recipe)
    measures = _write(folder, domain, draws, batches, params.batches_per_shard)
    met = met_before(((batch.epoch, batch.rows) for batch in batches), len(domain.pairs))
    rows = [
        {"epoch": batch.epoch, "domain": name, **measured, "met_before": share}
        for batch, measured, share in zip(batches, measures, met, strict=True)
    ]
    times = [_times_packed(batches, epoch, len(domain.pairs)) for epoch in range(params.epochs)]
    return {
        "recipe": {"cluster_share": recipe.shares, "because": recipe.reason} if recipe else {},
        "rows": rows,
        "shares": shares_of(policy, params, recipe),
        "documents": len(np.unique(domain.negatives.document_class[domain.negatives.kept])),
        "left_over": [int((domain.negatives.kept & (own == 0)).sum()) for own in times],
        "repeated": [int(np.maximum(own - 1, 0).sum()) for own in times],
    }


def batch_file(folder: Path, place: int, batches_per_file: int) -> tuple[Path, int]:
    """Return the file that holds batch number ``place`` of a domain, and the batch's number in that file."""
    return folder / f"{place // batches_per_file:06d}.arrow", place % batches_per_file


def _write(
    folder: Path, domain: Domain, draws: Sequence[Clusters], batches: Sequence[Batch], per_file: int
) -> list[Row]:
    """Write the files that ``folder`` does not contain yet, several at a time in threads; return all measures."""

    def write(start: int) -> list[Row]:
        file, _ = batch_file(folder, start, per_file)
        ledger = file.with_suffix(".json")
        found = kept(ledger, [file])
        if found is None:
            found = keep(ledger, [file], _write_file(file, domain, draws, batches[start : start + per_file]))
        rows: list[Row] = found["rows"]
        return rows

    starts = range(0, len(batches), per_file)
    with ThreadPoolExecutor(workers()) as pool:
        files = bar(pool.map(write, starts), desc="masks", total=len(starts), unit="file")
        return [row for rows in files for row in rows]


def _write_file(file: Path, domain: Domain, draws: Sequence[Clusters], batches: Sequence[Batch]) -> Metrics:
    made = [domain.batch(batch.rows, draws[batch.draw].assignment[batch.rows]) for batch in batches]
    write_shard(file, [record_batch for record_batch, _ in made], compressed=False)  # it is read again soon
    return {"rows": [measures for _, measures in made]}


def _times_packed(batches: Sequence[Batch], epoch: int, pairs: int) -> NDArray[np.int64]:
    rows = [batch.rows for batch in batches if batch.epoch == epoch]
    return np.bincount(np.concatenate([np.empty(0, np.int64), *rows]), minlength=pairs)
