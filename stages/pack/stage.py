"""Pack clusters into training batches, stored in Arrow shards."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from batchwright.by_domain.domains import Done, do_domains
from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.files import write_json, write_tsv
from batchwright.core.fingerprint import versions
from batchwright.core.messages import hint
from batchwright.core.neighbours import processes
from batchwright.core.params import Base, load_params
from batchwright.core.paths import PAIRS, SHARDS
from batchwright.formats.pairs import count_pairs, domains
from batchwright.formats.shards import Manifest
from batchwright.formats.shards.card import write_card
from pipelines.beam.spread import spread
from stages.pack.batches import make_batches, write_shards
from stages.pack.inputs import Inputs, open_inputs
from stages.pack.judge import LIBRARIES
from stages.pack.params import PackParams
from stages.pack.plan import training_order
from stages.pack.policies import POLICIES
from stages.pack.small_domains import described, packed_together, small_domains
from stages.pack.summary import OUTPUT, never_hard, summarise, summarise_epochs, warn_of_masked


def main(policy: str) -> str:
    """Write ``data/shards/POLICY``, and the hardness of every batch to ``results/pack``."""
    if policy not in POLICIES:
        raise InputError(f"unknown policy '{policy}'{hint(policy, POLICIES)}")
    params = load_params("pack", PackParams)
    seed = load_params("base", Base).seed
    inputs = open_inputs(params.judge)
    sizes = {name: inputs.sizes(name) for name in domains(PAIRS)}
    small = small_domains(sizes, params)
    done = _make_domains(policy, params, seed, replace(inputs, together=packed_together(sizes, small)))
    of_domains = {name: domain.metrics for name, domain in done.items()}
    order = training_order(
        {name: [row["epoch"] for row in metrics["rows"]] for name, metrics in of_domains.items()}, policy, seed
    )
    rows = [{"batch": number, **of_domains[name]["rows"][place]} for number, (name, place) in enumerate(order)]
    with atomic_dir(SHARDS / policy) as folder:
        files = {name: domain.files for name, domain in done.items()}
        shards = write_shards(files, order, params.batches_per_shard, folder)
        manifest = Manifest(
            policy=policy,
            batch_size=params.batch_size,
            rows=len(order) * params.batch_size,
            batches=len(order),
            seed=seed,
            documents={name: metrics["documents"] for name, metrics in of_domains.items()},
            cluster_shares={name: metrics["shares"] for name, metrics in of_domains.items()},
            small_domains=small,
            parameters=params.model_dump(),
            models=inputs.models,
            epochs=summarise_epochs(rows, of_domains, params.epochs),
            shards=shards,
        )
        manifest.write(folder)
        write_card(folder, manifest)
    summary = summarise(manifest, rows, of_domains)
    write_tsv(OUTPUT / f"{policy}.tsv", rows)
    write_json(OUTPUT / f"{policy}.json", summary)
    warn_of_masked(policy, summary["domains"], params.batch_size)
    return (
        f"{len(order):,} {policy} batches of {params.batch_size}, hardness {summary['hardness']:.4f}, "
        f"{summary['masked_share']:.2%} masked, {summary['left_over']:,} pairs left over{described(small, params)}"
        f"{never_hard(of_domains)}"
    )


def _make_domains(policy: str, params: PackParams, seed: int, inputs: Inputs) -> dict[str, Done]:
    """Make the batches of every domain, on which the weights of others have no effect."""
    judge = (inputs.judge.weights, versions(*LIBRARIES)) if inputs.judge else None
    settings = policy, seed, params.model_dump(exclude={"weights"}), judge
    together = inputs.together
    weights = {name: params.weights.get(names[0], 1.0) for name, names in together.items()}
    weighted = params.model_copy(update={"weights": weights})
    needed = {
        name: [settings, weights[name], *((domain, inputs.fingerprint(domain)) for domain in names)]
        for name, names in together.items()
    }
    return do_domains(
        f"pack/{policy}",
        Path(__file__).parent,
        partial(make_batches, inputs, policy, weighted, seed),
        needed,
        spread,
        pairs={name: sum(count_pairs(PAIRS, domain) for domain in names) for name, names in together.items()},
        processes=1 if inputs.judge else processes(),
    )
