"""How two shard sets differ: pairs, hardness, masks, who meets whom, and parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.fingerprint import content_id
from batchwright.formats.shards import NAMES, Manifest, ShardSet
from batchwright.formats.shards.batch import Numbers, batch_numbers, share_met
from batchwright.inspect.overview import Measured, by_domain, means, measure

EXAMPLES = 5
"""Gained and lost pairs that are shown."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """A value of each shard set, None where one has none."""

    name: str
    a: Any
    b: Any


@dataclass(frozen=True, kw_only=True)
class Group:
    """A domain's batches of one epoch in either shard set."""

    domain: str
    epoch: int
    batches: Sides
    hardness: Sides
    masked_share: Sides


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How ``b`` differs from ``a``.

    ``lost`` and ``gained`` are ids by domain, ``examples`` some of their queries by id. Of the pairs in ``both``,
    ``other_negatives`` have other hard negatives in the first of their batches. ``masked_by`` are shares of the
    negatives. ``meet_in_both`` are the shares of each set's meetings, that is, of two pairs in one batch, that take
    place in the other set as well, in any epoch.
    """

    a: str
    b: str
    parameters: list[Sides]
    pairs: Sides
    both: int
    other_negatives: int
    lost: dict[str, list[str]]
    gained: dict[str, list[str]]
    examples: dict[str, str]
    groups: list[Group]
    masked_by: list[Sides]
    meet_in_both: Sides


def compare(a: ShardSet, b: ShardSet) -> Difference:
    """Compare two shard sets."""
    queries, negatives, batches = zip(*(_read(shards) for shards in (a, b)), strict=True)
    lost, gained = queries[0].keys() - queries[1].keys(), queries[1].keys() - queries[0].keys()
    every = queries[0] | queries[1]
    measured = measure(a), measure(b)
    return Difference(
        a=str(a.folder),
        b=str(b.folder),
        parameters=_parameters(a, b),
        pairs=Sides(name="pairs", a=len(queries[0]), b=len(queries[1])),
        both=len(both := queries[0].keys() & queries[1].keys()),
        other_negatives=sum(negatives[0].get(pair) != negatives[1].get(pair) for pair in both),
        lost=_of_domains(lost, every),
        gained=_of_domains(gained, every),
        examples={name: every[name][1] for ids in (lost, gained) for name in sorted(ids)[:EXAMPLES]},
        groups=_groups(*measured),
        masked_by=_reasons(*measured),
        meet_in_both=Sides(name="meet in both", **_meetings(a, b, batches, {name: n for n, name in enumerate(every)})),
    )


def _read(shards: ShardSet) -> tuple[dict[str, tuple[str, str]], dict[str, str], list[list[str]]]:
    """Return domain and query of each pair, a hash of its first hard negatives, and the ids of each batch."""
    pairs: dict[str, tuple[str, str]] = {}
    negatives: dict[str, str] = {}
    batches = []
    for batch in shards.columns("id", "query", "domain", "negatives"):
        ids, queries, domains, lists = (batch[name].to_pylist() for name in ("id", "query", "domain", "negatives"))
        pairs.update(zip(ids, zip(domains, queries, strict=True), strict=True))
        for pair, texts in zip(ids, lists, strict=True):
            if texts and pair not in negatives:
                negatives[pair] = content_id(*texts)
        batches.append(ids)
    return pairs, negatives, batches


def _parameters(a: ShardSet, b: ShardSet) -> list[Sides]:
    """Return the parameters that differ, and limits of likeness of domains in both, as far as both sets have them.

    Parameters have the names of ``params.yaml``.
    """
    flat = [_packed(side.manifest) | _found(side, other) for side, other in ((a, b), (b, a))]
    names = sorted(flat[0] | flat[1])
    sides = [Sides(name=name, a=flat[0].get(name), b=flat[1].get(name)) for name in names]
    return [side for side in sides if side.a != side.b]


def _packed(manifest: Manifest) -> dict[str, Any]:
    own = manifest.model_dump(include={"policy", "seed", "models"})
    return _flat({**own, "pack": manifest.parameters})


def _found(own: ShardSet, other: ShardSet) -> dict[str, Any]:
    """Return what the manifest says of the stages before packing, without what only it says, being newer."""
    manifest, others = own.manifest, other.manifest
    if not (manifest.made_with and others.made_with):
        return {}
    limits = {name: limit for name, limit in manifest.likeness.items() if name in others.likeness}
    return _flat(manifest.made_with) | _flat(limits, "likeness.")


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{before}{name}.") if isinstance(value, dict) and value else {f"{before}{name}": value}
    return flat


def _of_domains(ids: set[str], pairs: Mapping[str, tuple[str, str]]) -> dict[str, list[str]]:
    domains: dict[str, list[str]] = {}
    for name in sorted(ids):
        domains.setdefault(pairs[name][0], []).append(name)
    return dict(sorted(domains.items()))


def _groups(a: list[Measured], b: list[Measured]) -> list[Group]:
    first, second = by_domain(a), by_domain(b)
    groups = []
    for domain, epoch in sorted(first.keys() | second.keys()):
        batches = [side.get((domain, epoch)) for side in (first, second)]
        measures = [{"batches": len(group), **means(group)} if group else {} for group in batches]
        sides = {
            name: Sides(name=name, a=measures[0].get(name), b=measures[1].get(name))
            for name in ("batches", "hardness", "masked_share")
        }
        groups.append(Group(domain=domain, epoch=epoch, **sides))
    return groups


def _reasons(a: list[Measured], b: list[Measured]) -> list[Sides]:
    measured = {name for batch in (*a, *b) for name in batch.masked_by}
    return [Sides(name=name, a=_share(a, name), b=_share(b, name)) for name in NAMES if name in measured]


def _share(batches: list[Measured], reason: str) -> float:
    return round(sum(batch.masked_by.get(reason, 0) for batch in batches) / max(len(batches), 1), 6)


def _meetings(
    a: ShardSet, b: ShardSet, batches: tuple[list[list[str]], list[list[str]]], numbers: Mapping[str, int]
) -> dict[str, float]:
    rows = [[np.array([numbers[name] for name in ids]) for ids in side] for side in batches]
    epochs = [_epochs(shards, side, len(numbers)) for shards, side in zip((a, b), rows, strict=True)]
    shares = ([share_met(pairs, other) for pairs in side] for side, other in zip(rows, reversed(epochs), strict=True))
    return dict(zip("ab", (round(float(np.mean(side)), 6) for side in shares), strict=True))


def _epochs(shards: ShardSet, rows: list[NDArray[np.int64]], pairs: int) -> list[Numbers]:
    """Return the number of each pair's batch in each epoch."""
    batches = ((shards.manifest.epoch_of(number), of_batch) for number, of_batch in enumerate(rows))
    return list(batch_numbers(batches, pairs).values())
