"""Pack clusters into training batches, stored in Arrow shards."""

import sys
from typing import Any

from batchwright.core.atomic import publish_dir
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import fingerprint
from batchwright.core.hints import hint
from batchwright.core.params import Base, load_params
from batchwright.core.paths import RESULTS, SHARDS
from batchwright.core.results import write_json, write_tsv
from batchwright.core.runtime import scratch
from batchwright.formats.clusters import NONE
from batchwright.formats.dataset_card import write_card
from batchwright.formats.shards import Manifest
from stages.pack.inputs import open_inputs
from stages.pack.params import PackParams
from stages.pack.plan import plan_batches
from stages.pack.policies import POLICIES
from stages.pack.recipe import choose_recipes
from stages.pack.summary import mean_measures, summarise_domains, summarise_epochs, totals
from stages.pack.write import remove_ledgers, write_shards

OUTPUT = RESULTS / "pack"
MOSTLY = 0.9
"""A domain is named if more than this share of its negatives is masked."""
MANY = 0.01
"""A domain is named if more than this share of its rows have more than half of their negatives masked."""


def main(policy: str) -> str:
    """Write ``data/shards/POLICY``, and the hardness of every batch to ``results/pack``."""
    if policy not in POLICIES:
        raise InputError(f"unknown policy '{policy}'{hint(policy, POLICIES)}")
    params = load_params("pack", PackParams)
    seed = load_params("base", Base).seed
    inputs = open_inputs(params.judge)
    kept = {domain: draws[0].assignment != NONE for domain, draws in inputs.clusters.items()}
    recipes = choose_recipes(inputs, params, seed) if policy == "contextual" else {}
    batches = plan_batches(inputs.clusters, policy, params, seed, recipes)
    parts = scratch("pack", fingerprint(policy, params.model_dump(), seed, inputs.fingerprint))
    shards, rows = write_shards(batches, inputs, params.batches_per_shard, parts)
    manifest = Manifest(
        policy=policy,
        batch_size=params.batch_size,
        rows=len(batches) * params.batch_size,
        batches=len(batches),
        seed=seed,
        parameters=params.model_dump(),
        models=inputs.models,
        epochs=summarise_epochs(batches, rows, kept, params.epochs),
        shards=shards,
    )
    left_over = sum(sum(epoch.left_over.values()) for epoch in manifest.epochs)
    counts = {"batches": len(batches), "pairs": manifest.rows, "left_over": left_over, **totals(rows)}
    metrics = {**counts, **mean_measures(rows)}
    metrics["domains"] = summarise_domains(rows)
    for domain, recipe in recipes.items():
        metrics["domains"][domain] |= {"cluster_share": recipe.shares, "because": recipe.reason}
    manifest.write(parts)
    write_card(parts, manifest)
    remove_ledgers(parts)
    publish_dir(parts, SHARDS / policy)
    write_tsv(OUTPUT / f"{policy}.tsv", rows)
    write_json(OUTPUT / f"{policy}.json", metrics)
    _warn_of_masked(policy, metrics["domains"], params.batch_size)
    return (
        f"{len(batches):,} {policy} batches of {params.batch_size}, hardness {metrics['hardness']:.4f}, "
        f"{metrics['masked_share']:.2%} masked, {left_over:,} pairs left over"
    )


def _warn_of_masked(policy: str, domains: dict[str, dict[str, Any]], batch_size: int) -> None:
    for domain, measures in domains.items():
        rows, lost = measures["batches"] * batch_size, measures["rows_mostly_masked"]
        if measures["masked_share"] > MOSTLY:
            masked = f"{measures['masked_share'] * 100:.0f}% of the negatives of '{domain}' are masked"
            _warn(policy, f"{masked}, so it adds next to nothing to training")
        elif lost > MANY * rows:
            masked = f"{lost:,} of {rows:,} rows of '{domain}' have more than half of their negatives masked"
            _warn(policy, f"{masked}, so they add little to training")


def _warn(policy: str, what: str) -> None:
    look = f"batchwright show --worst masked --shards {policy}"
    print(f"pack: warning: {what}; the reasons are in {OUTPUT}/{policy}.json; see them with {look}", file=sys.stderr)
