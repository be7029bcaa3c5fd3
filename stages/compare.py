"""Stage ``compare``: what each run gains over its start, BM25, random batches and MLM, paired by query and seed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from pathlib import PurePath
from typing import Any, NamedTuple

from pydantic import RootModel

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv, write_json, write_tsv
from batchwright.core.names import POLICIES
from batchwright.core.params import load_params
from batchwright.core.paths import MODELS, RESULTS, SCORES, START_MODELS
from batchwright.formats.query_scores import BySeed, read_query_scores
from batchwright.formats.runs import Runs
from stages.scoring.paired import by_seed, difference

OUTPUT = RESULTS / "compare.tsv"
HEADLINE = RESULTS / "metrics.json"
PICTURES = RESULTS / "plots"

HEADLINE_WIDTH, MOST_COLUMNS = 120, 11
"""The line of ``dvc metrics show`` has at most so many characters, and so many columns."""
DIGITS = 4
POINTS = 50
"""A line of hardness has about so many points."""

RANDOM, WITHOUT_DECODER = "random batches", "MLM"
"""References that are runs, too."""
_NO_MATTER = frozenset({"seeds", "evaluate_every", "validations"})
"""Settings that change no model."""
Entry = Mapping[str, Any]
"""What a run or a start model is trained with, by the names of the settings."""
Entries = Mapping[str, Entry]


class Pretrained(RootModel[dict[str, dict[str, Any] | None]]):
    """Group ``pretrain``, whose entries the stage of that name checks."""


BySystem = Mapping[tuple[str, str], BySeed]
"""nDCG@10 of each seed and query, by collection and system."""
Row = dict[str, Any]


def main() -> str:
    """Write ``results/compare.tsv``: one row per run, collection and what the run is compared with.

    What ``dvc metrics show`` and ``dvc plots show`` show is in ``results/metrics.json`` and ``results/plots``.
    """
    runs = load_params("runs", Runs).root
    settings = {name: _trained_with(name) for name in runs}
    pretrained = {name: entry or {} for name, entry in load_params("pretrain", Pretrained).root.items()}
    scores = read_query_scores(SCORES / "baselines.parquet", made_by="baselines")
    for name in runs:
        scores |= read_query_scores(SCORES / "runs" / f"{name}.parquet", made_by="evaluate")
    rows = compare(settings, pretrained, scores)
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


def compare(runs: Entries, pretrained: Entries, scores: BySystem) -> list[Row]:
    """Return the differences in nDCG@10 between runs and their references, with standard errors.

    They are paired by query and, where the reference is a run on other batches or from another pre-training, by seed;
    other references are the same for all seeds.
    """
    rows = []
    for collection in dict.fromkeys(collection for collection, _ in scores):
        for name in runs:
            for over, (reference, differs_in) in references(name, runs, pretrained).items():
                ours, theirs = (scores.get((collection, system)) for system in (name, reference))
                if ours and theirs:
                    rows.append(
                        {"collection": collection, "system": name, "over": over, "reference": reference}
                        | {"differs_in": ", ".join(differs_in)}
                        | _difference(ours, theirs if differs_in else theirs[:1] * len(ours))
                    )
    return rows


class Reference(NamedTuple):
    """A system that a run is compared with; if it is a run, ``differs_in`` are the settings that differ."""

    system: str
    differs_in: Sequence[str] = ()


def references(name: str, runs: Entries, pretrained: Entries) -> dict[str, Reference]:
    """Return the systems to compare the run ``name`` with, by what the difference to them shows.

    ``start`` is the model it starts from, and ``BM25`` the lexical baseline. ``random batches`` is the run of the same
    variant from the same start on random batches. ``MLM`` is for runs whose encoder was pre-trained with a decoder: the
    run, as many runs later, whose encoder was pre-trained without one. Of several, it is the one that differs in the
    fewest settings.
    """
    run = runs[name]
    start = PurePath(run["start"])
    systems = {
        "start": Reference(f"{start.name}, before training" if start.parent == START_MODELS else start.name),
        "BM25": Reference("BM25"),
    }
    for over, candidates in ((RANDOM, _on_random(run, runs)), (WITHOUT_DECODER, _without(run, runs, pretrained))):
        if alike := list(candidates):
            systems[over] = min(alike, key=lambda reference: len(reference.differs_in))
    return systems


def _on_random(run: Entry, runs: Entries) -> Iterator[Reference]:
    for name, other in runs.items():
        alike = (other["variant"], other["start"]) == (run["variant"], run["start"])
        if alike and other["batches"] == "random" != run["batches"]:
            yield Reference(name, ["batches", *_differing(run, other, {"batches"})])


def _without(run: Entry, runs: Entries, pretrained: Entries) -> Iterator[Reference]:
    encoder, line = _line(run, runs, pretrained)
    if encoder is None or encoder.get("decoder") is None:
        return
    for name, other in runs.items():
        plain, of_other = _line(other, runs, pretrained)
        alike = [each["variant"] for each in line] == [each["variant"] for each in of_other]
        if alike and plain is not None and plain.get("decoder") is None:
            differing = _differing(encoder, plain, {"decoder"})
            for ours, theirs in zip(line, of_other, strict=True):
                mined = not {ours["batches"], theirs["batches"]} & set(POLICIES)  # each by its own model
                differing += _differing(ours, theirs, {"start", "batches"} if mined else {"start"})
            yield Reference(name, ["decoder", *dict.fromkeys(differing)])


def _line(run: Entry, runs: Entries, pretrained: Entries) -> tuple[Entry | None, list[Entry]]:
    """Return how the encoder was pre-trained that a run goes back to, None if it was not, and all runs since."""
    line = [run]
    while len(line) <= len(runs):
        start = PurePath(line[0]["start"])
        if start.parent != MODELS or start.name not in runs:
            return pretrained.get(start.name) if start.parent == START_MODELS else None, line
        line.insert(0, runs[start.name])
    return None, line


def _differing(entry: Entry, other: Entry, compared: Set[str]) -> list[str]:
    """Return the settings that two runs or pre-trainings differ in, but for those ``compared``."""
    names = dict.fromkeys([*entry, *other])
    return [name for name in names if name not in compared | _NO_MATTER and entry.get(name) != other.get(name)]


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
