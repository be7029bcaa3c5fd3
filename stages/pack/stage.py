"""Pack clusters into training batches, stored in Arrow shards."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from batchwright.by_domain.domains import Done, do_domains
from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.files import write_json, write_tsv
from batchwright.core.fingerprint import versions
from batchwright.core.messages import hint, safe
from batchwright.core.neighbours import processes
from batchwright.core.params import Base, load_params
from batchwright.core.paths import PAIRS, RESULTS, SHARDS
from batchwright.formats.pairs import count_pairs
from batchwright.formats.pairs import domains as all_domains
from batchwright.formats.shards import Manifest
from batchwright.formats.shards.card import write_card
from pipelines.beam.spread import spread
from stages.pack.batches import make_batches
from stages.pack.inputs import Inputs, open_inputs
from stages.pack.judge import LIBRARIES
from stages.pack.params import PackParams
from stages.pack.plan import training_order
from stages.pack.policies import POLICIES
from stages.pack.sizes import described, packed_together, small_domains
from stages.pack.summary import Row, mean_measures, summarise_domains, summarise_epochs, totals
from stages.pack.write import write_shards

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
    sizes = {name: inputs.sizes(name) for name in all_domains(PAIRS)}
    small = small_domains(sizes, params)
    found = _make_domains(policy, params, seed, replace(inputs, together=packed_together(sizes, small)))
    domains = {name: done.metrics for name, done in found.items()}
    epochs = {name: [row["epoch"] for row in domain["rows"]] for name, domain in domains.items()}
    order = training_order(epochs, policy, seed)
    rows = [{"batch": number, **domains[name]["rows"][place]} for number, (name, place) in enumerate(order)]
    with atomic_dir(SHARDS / policy) as folder:
        shards = write_shards(
            {name: done.files for name, done in found.items()}, order, params.batches_per_shard, folder
        )
        manifest = Manifest(
            policy=policy,
            batch_size=params.batch_size,
            rows=len(order) * params.batch_size,
            batches=len(order),
            seed=seed,
            documents={name: domain["documents"] for name, domain in domains.items()},
            cluster_shares={name: domain["shares"] for name, domain in domains.items()},
            small_domains=small,
            parameters=params.model_dump(),
            models=inputs.models,
            epochs=summarise_epochs(rows, domains, params.epochs),
            shards=shards,
        )
        manifest.write(folder)
        write_card(folder, manifest)
    metrics = _describe(manifest, rows, domains)
    write_tsv(OUTPUT / f"{policy}.tsv", rows)
    write_json(OUTPUT / f"{policy}.json", metrics)
    _warn_of_masked(policy, metrics["domains"], params.batch_size)
    return (
        f"{len(order):,} {policy} batches of {params.batch_size}, hardness {metrics['hardness']:.4f}, "
        f"{metrics['masked_share']:.2%} masked, {metrics['left_over']:,} pairs left over{described(small, params)}"
        f"{_never_hard(domains)}"
    )


def _make_domains(policy: str, params: PackParams, seed: int, inputs: Inputs) -> dict[str, Done]:
    """Make the batches of every domain, on which the weights of others have no effect."""
    judge = (inputs.judge.weights, versions(*LIBRARIES)) if inputs.judge else None
    settings = policy, seed, params.model_dump(exclude={"weights"}), judge
    weights = {name: params.weights.get(domains[0], 1.0) for name, domains in inputs.together.items()}
    weighted = params.model_copy(update={"weights": weights})
    needed = {
        name: [settings, weights[name], *((domain, inputs.fingerprint(domain)) for domain in domains)]
        for name, domains in inputs.together.items()
    }
    return do_domains(
        f"pack/{policy}",
        Path(__file__).parent,
        partial(make_batches, inputs, policy, weighted, seed),
        needed,
        spread,
        pairs={
            name: sum(count_pairs(PAIRS, domain) for domain in domains) for name, domains in inputs.together.items()
        },
        processes=1 if inputs.judge else processes(),
    )


def _describe(manifest: Manifest, rows: Sequence[Row], domains: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    left_over = sum(sum(epoch.left_over.values()) for epoch in manifest.epochs)
    counts = {"batches": manifest.batches, "pairs": manifest.rows, "left_over": left_over, **totals(rows)}
    summaries = summarise_domains(rows)
    of_domains = {name: summary | domains[name]["recipe"] for name, summary in summaries.items()}
    return {**counts, **mean_measures(rows), "domains": of_domains}


def _never_hard(domains: Mapping[str, Mapping[str, Any]]) -> str:
    """Say which domains ``cluster_share: auto`` gives random batches only, and why for the first of them."""
    recipes = {name: domain["recipe"] for name, domain in domains.items()}
    reasons = {name: each["because"] for name, each in recipes.items() if each and not any(each["cluster_share"])}
    if not reasons:
        return ""
    name, reason = next(iter(reasons.items()))
    others = f" and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
    return f"; random batches only for '{safe(name)}'{others}: {reason}"


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
    print(
        f"pack: warning: {safe(what)}; the reasons are in {OUTPUT}/{policy}.json; see them with {look}", file=sys.stderr
    )
