"""Pack clusters into training batches, stored in Arrow shards."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from batchwright.by_domain.domains import Done, do_domains
from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.files import write_json, write_tsv
from batchwright.core.fingerprint import versions
from batchwright.core.neighbours import processes
from batchwright.core.params import Base, load_params
from batchwright.core.paths import PAIRS, RESULTS, SHARDS
from batchwright.core.terminal import TOLD, hint, safe, warn
from batchwright.formats.cross_encoder import LIBRARIES
from batchwright.formats.pairs import count_pairs, domains
from batchwright.formats.runs import of_seed
from batchwright.formats.shards import REASONS, EpochSummary, Manifest
from batchwright.formats.shards.manifest import SmallDomain, write_card
from pipelines.beam.spread import spread
from stages.pack.batches import make_batches, write_shards
from stages.pack.inputs import Inputs, open_inputs
from stages.pack.params import PackParams
from stages.pack.plan import POLICIES, training_order
from stages.pack.small_domains import described, packed_together, small_domains

OUTPUT = RESULTS / "pack"
_COUNTS = ("rows_mostly_masked", "judge_asked", "judge_masked")
MOSTLY = 0.9
"""A domain is named if more than this share of its negatives is masked."""
MANY = 0.01
"""A domain is named if more than this share of its rows have more than half of their negatives masked."""

Row = Mapping[str, Any]
"""Measures of a batch."""
Domains = Mapping[str, Mapping[str, Any]]
"""What ``make_batches`` returned of each domain."""


def main(policy: str) -> str:
    """Write ``data/shards/POLICY``, the batches of all seeds, and to ``results/pack`` the hardness of the first's."""
    if policy not in POLICIES:
        raise InputError(f"unknown policy '{policy}'{hint(policy, POLICIES)}")
    params = load_params("pack", PackParams)
    seed = load_params("base", Base).seed
    inputs = open_inputs(params.judge)
    sizes = {name: inputs.sizes(name) for name in domains(PAIRS)}
    small = small_domains(sizes, params)
    inputs = replace(inputs, together=packed_together(sizes, small))
    done = [_make_domains(policy, params, seed, place, inputs) for place in range(1, params.seeds + 1)]
    with atomic_dir(SHARDS / policy) as folder:
        packed = [
            _write_seed(of_seed(folder, place), policy, params, seed + place - 1, of_domains, inputs, small)
            for place, of_domains in enumerate(done, start=1)
        ]
    manifest, rows = packed[0]
    of_domains = {name: domain.metrics for name, domain in done[0].items()}
    summary = _summarise(manifest, rows, of_domains)
    write_tsv(OUTPUT / f"{policy}.tsv", rows)
    write_json(OUTPUT / f"{policy}.json", summary)
    warn("pack", _masked(policy, summary["domains"], params.batch_size))
    return (
        f"{manifest.batches:,} {policy} batches of {params.batch_size}{_for_seeds(params.seeds)}, "
        f"hardness {summary['hardness']:.4f}, {summary['masked_share']:.2%} masked, "
        f"{summary['left_over']:,} pairs left over{described(small, params)}{_never_hard(policy, of_domains)}"
    )


def _write_seed(
    folder: Path,
    policy: str,
    params: PackParams,
    seed: int,
    done: Mapping[str, Done],
    inputs: Inputs,
    small: dict[str, SmallDomain],
) -> tuple[Manifest, Sequence[Row]]:
    """Write the shards, manifest and card of one seed; return its manifest and the measures of each batch."""
    of_domains = {name: domain.metrics for name, domain in done.items()}
    order = training_order(
        {name: [row["epoch"] for row in metrics["rows"]] for name, metrics in of_domains.items()}, policy, seed
    )
    rows: list[Row] = [
        {"batch": number, **of_domains[name]["rows"][place]} for number, (name, place) in enumerate(order)
    ]
    files = {name: domain.files for name, domain in done.items()}
    shards, fitting = write_shards(files, order, params.batches_per_shard, folder)
    manifest = Manifest(
        format=fitting,
        policy=policy,
        batch_size=params.batch_size,
        rows=len(order) * params.batch_size,
        batches=len(order),
        seed=seed,
        documents={name: metrics["documents"] for name, metrics in of_domains.items()},
        likeness={name: metrics["likeness"] for name, metrics in of_domains.items()},
        cluster_shares={name: metrics["shares"] for name, metrics in of_domains.items()},
        small_domains=small,
        parameters=params.model_dump(),
        made_with={stage: dict(of_stage) for stage, of_stage in inputs.made_with.items()},
        models=inputs.models,
        epochs=_summarise_epochs(rows, of_domains, params.epochs),
        shards=shards,
    )
    manifest.write(folder)
    write_card(folder, manifest)
    return manifest, rows


def _for_seeds(seeds: int) -> str:
    return f" for each of {seeds} seeds" if seeds > 1 else ""


def _make_domains(policy: str, params: PackParams, first: int, place: int, inputs: Inputs) -> dict[str, Done]:
    """Make the batches of every domain for one seed; the weights of other domains have no effect on them."""
    seed = first + place - 1
    judge = (inputs.judge.weights, versions(*LIBRARIES)) if inputs.judge else None
    settings = policy, seed, params.model_dump(exclude={"weights", "seeds"}), judge
    together = inputs.together
    weights = {name: params.weights.get(names[0], 1.0) for name, names in together.items()}
    weighted = params.model_copy(update={"weights": weights})
    needed = {
        name: [settings, weights[name], *((domain, inputs.fingerprint(domain)) for domain in names)]
        for name, names in together.items()
    }
    return do_domains(
        f"pack/{policy}" if place == 1 else f"pack/{policy}-{place}",
        Path(__file__).parent,
        partial(make_batches, inputs, policy, weighted, seed),
        needed,
        spread,
        pairs={name: sum(count_pairs(PAIRS, domain) for domain in names) for name, names in together.items()},
        processes=1 if inputs.judge else processes(),
    )


def _summarise(manifest: Manifest, rows: Sequence[Row], domains: Domains) -> dict[str, Any]:
    """Summarise all batches, given the measures of each in ``rows``: overall, and by domain with its recipe."""
    left_over = sum(sum(epoch.left_over.values()) for epoch in manifest.epochs)
    counts = {"batches": manifest.batches, "pairs": manifest.rows, "left_over": left_over, **_totals(rows)}
    summaries = _summarise_domains(rows)
    of_domains = {name: summary | domains[name]["recipe"] for name, summary in summaries.items()}
    return {**counts, **_mean_measures(rows), "domains": of_domains}


def _summarise_epochs(rows: Sequence[Row], domains: Domains, epochs: int) -> list[EpochSummary]:
    """Summarise each epoch; ``rows`` holds the measures of each batch, in training order."""
    summaries: list[EpochSummary] = []
    for epoch in range(epochs):
        of_epoch = [row for row in rows if row["epoch"] == epoch]
        summaries.append(
            EpochSummary(
                first_batch=sum(summary.batches for summary in summaries),
                batches=len(of_epoch),
                left_over={name: domain["left_over"][epoch] for name, domain in domains.items()},
                repeated=sum(domain["repeated"][epoch] for domain in domains.values()),
                met_before=_mean(of_epoch, "met_before"),
                **_mean_measures(of_epoch),
            )
        )
    return summaries


def _summarise_domains(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the number of batches, the totals and the mean measures of each domain."""
    by_domain = defaultdict(list)
    for row in rows:
        by_domain[row["domain"]].append(row)
    return {
        domain: {"batches": len(batches), **_totals(batches), **_mean_measures(batches)}
        for domain, batches in by_domain.items()
    }


def _totals(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many rows are mostly masked and, if there is a judge, how many cells it was asked about and masked."""
    return {name: sum(row[name] for row in rows) for name in _COUNTS if any(name in row for row in rows)}


def _mean_measures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the mean of each measure over batches, including the masked share by reason."""
    means = {name: _mean(rows, name) for name in ("hardness", "unmasked_hardness", "masked_share")}
    return {**means, "masked_by": {reason: _mean(rows, f"masked_{reason}") for reason in REASONS}}


def _mean(rows: Sequence[Row], name: str) -> float:
    return round(float(sum(row[name] for row in rows)) / max(len(rows), 1), 6)


def _never_hard(policy: str, domains: Domains) -> str:
    """Say which domains ``cluster_share: auto`` gives random batches only, and why."""
    recipes = {name: domain["recipe"] for name, domain in domains.items()}
    reasons = [
        f"'{safe(name)}': {recipe['because']}"
        for name, recipe in recipes.items()
        if recipe and not any(recipe["cluster_share"])
    ]
    if not reasons:
        return ""
    more = f"\n  and {len(reasons) - TOLD:,} more, see {OUTPUT}/{policy}.json" if len(reasons) > TOLD else ""
    return "; random batches only for" + "".join(f"\n  {reason}" for reason in reasons[:TOLD]) + more


def _masked(policy: str, domains: Mapping[str, Mapping[str, Any]], batch_size: int) -> Iterator[str]:
    """Tell of domains that masks leave little of; ``domains`` are their measures."""
    see = f"batchwright show --worst masked --shards {policy}"
    look = f"the reasons are in {OUTPUT}/{policy}.json; see them with {see}"
    for domain, measures in domains.items():
        rows, lost = measures["batches"] * batch_size, measures["rows_mostly_masked"]
        if measures["masked_share"] > MOSTLY:
            masked = f"{measures['masked_share'] * 100:.0f}% of the negatives of '{domain}' are masked"
            yield f"{masked}, so it adds next to nothing to training; {look}"
        elif lost > MANY * rows:
            masked = f"{lost:,} of {rows:,} rows of '{domain}' have more than half of their negatives masked"
            yield f"{masked}, so they add little to training; {look}"
