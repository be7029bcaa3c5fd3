"""Stage ``compare``: what each run gains over its start model, BM25 and random batches, paired by query and seed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Any

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv, write_json, write_tsv
from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS, SCORES, START_MODELS
from batchwright.formats.query_scores import BySeed, read_query_scores
from batchwright.formats.runs import Runs
from stages.scoring.paired import by_seed, difference

OUTPUT = RESULTS / "compare.tsv"
HEADLINE = RESULTS / "metrics.json"
PICTURES = RESULTS / "plots"
POLICIES = ("contextual", "random")

HEADLINE_WIDTH, MOST_COLUMNS = 120, 11
"""The line of ``dvc metrics show`` has at most so many characters, and so many columns."""
DIGITS = 4
POINTS = 50
"""A line of hardness has about so many points."""

RANDOM = "random batches"
_NOT_TOLD = frozenset({"batches", "seeds", "evaluate_every"})
"""Settings that may differ from those of the run on random batches: what is compared, and what changes no model."""
Settings = Mapping[str, Mapping[str, Any]]
"""What each run trains with, by the names of the settings."""

BySystem = Mapping[tuple[str, str], BySeed]
"""nDCG@10 of each seed and query, by collection and system."""
Row = dict[str, Any]


def main() -> str:
    """Write ``results/compare.tsv``: one row per run, collection and what the run is compared with.

    What ``dvc metrics show`` and ``dvc plots show`` show is in ``results/metrics.json`` and ``results/plots``.
    """
    runs = load_params("runs", Runs).root
    settings = {name: _trained_with(name) for name in runs}
    scores = read_query_scores(SCORES / "baselines.parquet", made_by="baselines")
    for name in runs:
        scores |= read_query_scores(SCORES / "runs" / f"{name}.parquet", made_by="evaluate")
    rows = compare(settings, scores)
    write_tsv(OUTPUT, rows)
    first = rows[0]["collection"] if rows else ""
    packed = read_json(RESULTS / "pack/contextual.json", made_by="pack")
    write_json(HEADLINE, headline(packed, {name: _mean(scores[first, name]) for name in runs}))
    curves = {name: read_tsv(RESULTS / "train" / f"{name}-dev.tsv", made_by="train") for name in runs}
    batches = {policy: read_tsv(RESULTS / "pack" / f"{policy}.tsv", made_by="pack") for policy in POLICIES}
    write_tsv(PICTURES / "quality.tsv", quality_bars(scores))
    write_tsv(PICTURES / "learning.tsv", learning_lines(curves))
    write_tsv(PICTURES / "hardness.tsv", hardness_lines(batches))
    gains = [row for row in rows if (row["collection"], row["over"]) == (first, "start")]
    told = ", ".join(f"{row['system']} {row['difference']:+.3f} ± {row['error']:.3f}" for row in gains)
    return f"nDCG@10 over the start model: {told}" if rows else "params.yaml lists no runs to compare"


def _trained_with(run: str) -> dict[str, Any]:
    file = RESULTS / "train" / f"{run}.json"
    trained: dict[str, Any] | None = read_json(file, made_by="train").get("trained_with")
    if trained is None:
        raise InputError(f"{file}: does not say what the run was trained with; run the stage 'train' again")
    return trained


def compare(runs: Settings, scores: BySystem) -> list[Row]:
    """Return the differences in nDCG@10 between runs and their references, with standard errors.

    They are paired by query and, with the run on random batches, by seed; other references are the same for all seeds.
    """
    rows = []
    for collection in dict.fromkeys(collection for collection, _ in scores):
        for name in runs:
            for over, reference in references(name, runs).items():
                ours, theirs = (scores.get((collection, system)) for system in (name, reference))
                if ours and theirs:
                    other = _other_settings(runs[name], runs[reference]) if over == RANDOM else []
                    rows.append(
                        {"collection": collection, "system": name, "over": over, "reference": reference}
                        | {"differs_in": ", ".join(["batches", *other]) if over == RANDOM else ""}
                        | _difference(ours, theirs if over == RANDOM else theirs[:1] * len(ours))
                    )
    return rows


def references(name: str, runs: Settings) -> dict[str, str]:
    """Return the systems to compare the run ``name`` with, by what the difference to them shows.

    ``start`` is the model it starts from, ``BM25`` the lexical baseline, and ``random batches`` the run of the same
    variant from the same start on random batches that differs in the fewest other settings, if there is one.
    """
    run = runs[name]
    start = PurePath(run["start"])
    systems = {
        "start": f"{start.name}, before training" if start.parent == START_MODELS else start.name,
        "BM25": "BM25",
    }
    alike = [
        other
        for other, candidate in runs.items()
        if (candidate["variant"], candidate["start"]) == (run["variant"], run["start"])
        and candidate["batches"] == "random" != run["batches"]
    ]
    if alike:
        systems[RANDOM] = min(alike, key=lambda other: len(_other_settings(run, runs[other])))
    return systems


def _other_settings(run: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the settings, beside the batches, that two runs differ in."""
    names = dict.fromkeys([*run, *other])
    return [name for name in names if name not in _NOT_TOLD and run.get(name) != other.get(name)]


def _difference(ours: BySeed, theirs: BySeed) -> Row:
    tables = by_seed(ours, theirs)
    gain = difference(*tables)
    seeds, queries = tables[0].shape
    means = {"ndcg@10": float(tables[0].mean()), "reference_ndcg@10": float(tables[1].mean())}
    return {
        "seeds": seeds,
        "queries": queries,
        **means,
        "difference": gain.mean,
        "error": gain.error,
        "p": gain.p,
    }


def headline(packed: Mapping[str, Any], quality: Mapping[str, float]) -> dict[str, float]:
    """Return the few numbers that ``dvc metrics show`` and ``dvc exp show`` show.

    They are what contextual batches are like, from their metrics ``packed``, and the nDCG@10 of the first runs, as many
    as the line has room for; ``results/compare.tsv`` has all.
    """
    values = {"hardness": packed["hardness"], "masked": packed["masked_share"], **quality}
    names = list(values)
    while len(names) > MOST_COLUMNS or _width(names) > HEADLINE_WIDTH:
        names.pop()
    return {name: round(float(values[name]), DIGITS) for name in names}


def _width(names: Iterable[str]) -> int:
    """Return the width of the line: four spaces separate columns, none narrower than a value such as 0.1234."""
    return len(str(HEADLINE)) + sum(4 + max(len(name), 2 + DIGITS) for name in names)


def quality_bars(scores: BySystem) -> list[Row]:
    """Return the mean nDCG@10 of every system; a system has one bar for each collection."""
    several = len({collection for collection, _ in scores}) > 1
    return [
        {"name": f"{system} on {collection}" if several else system, "ndcg@10": _mean(of_queries)}
        for (collection, system), of_queries in scores.items()
    ]


def learning_lines(curves: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Row]:
    """Return the dev curves of all runs as one table, with a line for each ``name``."""
    return [
        {"name": run, "step": int(row["step"]), "ndcg@10": float(row["ndcg@10"])}
        for run, curve in curves.items()
        for row in curve
    ]


def hardness_lines(batches: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Row]:
    """Return the hardness of each policy's batches as they follow one another in a domain, in means of neighbours.

    There is one line for each ``name`` and one field for each ``domain``.
    """
    return [
        {"name": policy, "domain": domain, "batch": number, "hardness": value}
        for policy, rows in batches.items()
        for domain, own in groupby(sorted(rows, key=lambda row: row["domain"]), key=lambda row: row["domain"])
        for number, value in _thinned([float(row["hardness"]) for row in own])
    ]


def _thinned(values: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Yield the number of the first of some neighbours, from 1, and their mean."""
    size = -(-len(values) // POINTS)
    for start in range(0, len(values), size):
        chunk = values[start : start + size]
        yield start + 1, sum(chunk) / len(chunk)


def _mean(scores: BySeed) -> float:
    return sum(sum(of_seed.values()) / len(of_seed) for of_seed in scores) / len(scores)
