"""What a night's data are like, by domain, and whether that is still like the accepted night's, before hours are spent.

The accepted night's figures are in its record, ``retrain.json``.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from pydantic import Field

from batchwright.core.files import read_json
from batchwright.core.params import Params
from batchwright.core.paths import NEGATIVES, PAIRS, RESULTS
from batchwright.core.terminal import shown
from batchwright.formats.models import SIDES
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import domains, scan_pairs, scan_texts
from pipelines.ingest.domain import DUPLICATE
from pipelines.ingest.sources.labels import NO_MATCH

LAST = "pack"
"""The last stage before hours are spent."""
_STAGES = ("ingest", "embed", "filter", "cluster", LAST)
LEAST = 100
"""Pairs of a domain from which on its figures say something; below, chance alone may double them."""
_AMOUNTS = {"query": "characters of a query", "document": "characters of a document", "hardness": "hardness"}
_SHARES = {"doubtful": "doubtful pairs", "masked": "masked negatives"}
_OF_BATCHES = ("hardness", "masked")
_ERRORS = 3
_NAMED = 3
"""New pairs that are named."""

Figures = Mapping[str, Any]
"""Those of a night: the share of rejected rows, and by domain ``pairs``, mean lengths in characters, the shares of
``doubtful`` pairs and ``masked`` negatives, ``hardness``, and the ``recipe`` that makes these two comparable."""


class DriftParams(Params):
    """Group ``retrain.drift``: how far the data may be from those of the deployed night."""

    action: Literal["stop", "warn"] = "stop"
    """``stop`` ends the night before it trains, as rejected; ``warn`` says it and goes on. So does ``stop`` on a night
    with other parameters or code of the stages up to ``pack``, which may be meant."""
    times: float = Field(default=2.0, gt=1)
    """A domain may have so many times fewer pairs, and queries, documents or hardness so many times as much, or as
    little. Domains with fewer than 100 pairs only must not vanish."""
    share: float = Field(default=0.05, gt=0, le=1)
    """How much the share of rejected rows may change, and a domain's shares of doubtful pairs and masked negatives, or
    three standard errors of a share of so many pairs, if that is more."""


def figures() -> dict[str, Any]:
    """Return those of the data as they are now."""
    ingested = read_json(RESULTS / "ingest.json", made_by="ingest")
    filtered = read_json(RESULTS / "filter.json", made_by="filter")
    packed = read_json(RESULTS / "pack/contextual.json", made_by="pack")["domains"]
    found = {domain: _lengths(domain) for domain in domains(PAIRS)}
    for domain, of_domain in found.items():
        if judged := filtered.get(domain):
            of_domain["doubtful"] = _share(judged["doubtful"], judged["pairs"])
        if batches := packed.get(domain):
            limit = filtered.get(domain, {}).get("likeness") is not None
            of_domain |= {"masked": batches["masked_share"], "hardness": batches["hardness"]}
            of_domain["recipe"] = [batches.get("cluster_share"), limit]
    rows = list(ingested["sources"].values())
    faults = sum(count for row in rows for why, count in row["rejected"].items() if why not in (DUPLICATE, NO_MATCH))
    return {"rejected": _share(faults, sum(row["in"] for row in rows)), "domains": found}


def _lengths(domain: str) -> dict[str, Any]:
    """Return the number of pairs, and the mean lengths of their texts."""
    pairs, characters = 0, dict.fromkeys(SIDES, 0)
    for batch in scan_pairs(PAIRS, domain, columns=SIDES):
        pairs += len(batch)
        for side in SIDES:
            characters[side] += pc.sum(pc.utf8_length(batch[side])).as_py() or 0
    return {"pairs": pairs} | {side: round(characters[side] / max(pairs, 1), 1) for side in SIDES}


def _share(part: int, whole: int) -> float:
    return round(part / max(whole, 1), 6)


def drift(
    before: Figures, now: Figures, limits: DriftParams, doubtful: Callable[[str], str] = lambda _: ""
) -> list[str]:
    """Return a line for each figure that is further from that of ``before`` than ``limits`` allow.

    ``doubtful`` says of a domain with too many doubtful pairs which they are.
    """
    pairs = sum(of_domain["pairs"] for of_domain in now["domains"].values())
    found = list(_jump("rejected rows", before["rejected"], now["rejected"], pairs, limits))
    for domain, then in before["domains"].items():
        today = now["domains"].get(domain, {"pairs": 0})
        found += [f"{domain}: {line}" for line in _of_domain(then, today, limits, partial(doubtful, domain))]
    return found


def _of_domain(then: Figures, today: Figures, limits: DriftParams, doubtful: Callable[[], str]) -> Iterator[str]:
    if not today["pairs"]:
        yield f"{then['pairs']:,} pairs -> none any more"
        return
    if then["pairs"] >= LEAST and then["pairs"] > limits.times * today["pairs"]:
        yield f"{then['pairs']:,} pairs -> {today['pairs']:,}"
    if min(then["pairs"], today["pairs"]) < LEAST:
        return
    same = then.get("recipe") == today.get("recipe")
    there = [name for name in then if name in today and (same or name not in _OF_BATCHES)]
    for name, words in _AMOUNTS.items():
        if name in there and max(then[name], today[name]) > limits.times * min(then[name], today[name]):
            yield f"{words} {then[name]:,} -> {today[name]:,}"
    for name, words in _SHARES.items():
        if name in there:
            for line in _jump(words, then[name], today[name], today["pairs"], limits):
                yield line + (doubtful() if name == "doubtful" and then[name] < today[name] else "")


def _jump(words: str, then: float, today: float, pairs: int, limits: DriftParams) -> Iterator[str]:
    mean = (then + today) / 2
    chance = _ERRORS * math.sqrt(mean * (1 - mean) / max(pairs, 1))
    if abs(today - then) > max(limits.share, chance):
        yield f"{words} {then:.3f} -> {today:.3f}"


def newest_doubtful(domain: str, before: Path) -> str:
    """Name some pairs of a domain that ``before``, the folder of earlier pairs, lacks: those that fit least.

    That is by the scores of the vectors that the filter goes by. It says nothing if none is new.
    """
    there = set(scan_texts(before, domain, "id")) if domain in domains(before) else set()
    ids = list(scan_texts(PAIRS, domain, "id", "train"))
    scores = Negatives.read(NEGATIVES, domain, len(ids)).scores
    new = [int(row) for row in np.argsort(scores, kind="stable") if ids[row] not in there]
    if not new:
        return ""
    named = pa.array([ids[row] for row in new[:_NAMED]], pa.string())
    found = {}
    for batch in scan_pairs(PAIRS, domain, "train", ["id", *SIDES]):
        for pair in batch.filter(pc.is_in(batch["id"], value_set=named)).to_pylist():
            found[pair["id"]] = f"{shown(pair['query'])} with {shown(pair['document'])}"
    return f"; of {len(new):,} new pairs, these fit least: {'; '.join(found[name] for name in named.to_pylist())}"


def locked_data(lock: str | None, what: Literal["outs", "params"]) -> dict[str, Any]:
    """Return, of a ``dvc.lock``, what the stages up to ``pack`` wrote, or their parameters."""
    stages = yaml.safe_load(lock or "{}").get("stages", {})
    return {name: stage.get(what) for name, stage in stages.items() if name.partition("@")[0] in _STAGES}
