"""Cells of batches that a person, a script or a large model should judge, as JSON Lines with an empty verdict.

They are the hardest negatives that are not masked, those that the surrogate masks by a hair, and mined hard negatives.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import content_id
from batchwright.core.terminal import bar
from batchwright.formats.shards import NAMES, ShardSet, read_reasons
from batchwright.inspect.artifacts import Artifacts
from batchwright.inspect.batch import HARDEST
from batchwright.inspect.domain_pairs import DomainPairs
from batchwright.inspect.evidence import OLD, Evidence, Filtered, Surrogate, surrogate_of, surrogate_vectors

MOST = 100
"""Cells of each kind and domain that are written by default."""
KINDS = ("hardest", "masked", "mined")
HARD, MASKED, MINED = range(3)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the file: does ``document`` answer ``query``?

    ``pair`` is the id of the query's pair, whose document is ``own_document``, and ``other`` that of a pair with
    ``document``. ``score`` is the surrogate's. ``verdict`` is for the judge.
    """

    domain: str
    why: str
    query: str
    own_document: str
    document: str
    score: float
    pair: str
    other: str
    verdict: str = ""


class Drawn:
    """The ``most`` rows of the lowest hashes: the same ones in whatever order they come, one for each ``key``."""

    def __init__(self, most: int, seed: int) -> None:
        self._most, self._seed = most, str(seed)
        self._rows: dict[tuple[int, int], tuple[str, Row]] = {}

    def add(self, key: tuple[int, int], row: Row) -> None:
        """Offer a row; ``key`` is its query's class and its document's."""
        place = content_id(self._seed, row.pair, row.other)
        if key not in self._rows or place < self._rows[key][0]:
            self._rows[key] = place, row
        if len(self._rows) > 2 * self._most + HARDEST:
            self._rows = dict(self._lowest())

    def rows(self) -> list[Row]:
        """Return what was drawn."""
        return [row for _, (_, row) in self._lowest()]

    def _lowest(self) -> list[tuple[tuple[int, int], tuple[str, Row]]]:
        return sorted(self._rows.items(), key=lambda item: item[1][0])[: self._most]


def write_doubtful(shards: ShardSet, artifacts: Artifacts, output: Path, most: int = MOST) -> str:
    """Write ``output``, with at most ``most`` cells of each kind and domain, and return a summary.

    Raises:
        InputError: the output is there already or no ``.jsonl``, what the shards were made of is not there any more, or
            there is nothing to judge.
    """
    if output.suffix != ".jsonl":
        raise InputError(f"{output}: cells to judge are written as JSON Lines; name a .jsonl file")
    if output.exists():
        raise InputError(f"{output}: is there already, and may hold verdicts; name another file, or remove it")
    if most < 1:
        raise InputError(f"--most {most}: must be 1 or more")
    if shards.manifest.format == 1:
        raise InputError(f"{shards.folder}: does not say why cells are masked: {OLD}")
    left_out = Counter[str]()
    rows = _draw(shards, artifacts, most, left_out)
    told = "".join(f"; left out: {count:,} {what}" for what, count in left_out.items())
    if not rows:
        raise InputError(f"{shards.folder}: holds no cell to judge{told}")
    with atomic_file(output) as temporary, temporary.open("w", encoding="utf-8") as handle:
        handle.writelines(json.dumps(asdict(row), ensure_ascii=False) + "\n" for _, row in rows)
    counts = Counter(kind for kind, _ in rows)
    kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS)
    return f"{len(rows):,} cells to judge in {output}: {kinds}{told}"


def _draw(shards: ShardSet, artifacts: Artifacts, most: int, left_out: Counter[str]) -> list[tuple[str, Row]]:
    """Return the rows to write and their kinds, by domain; ``left_out`` counts what could not be looked at."""
    domains: dict[str, DomainPairs] = {}
    drawn: dict[tuple[str, int], Drawn] = defaultdict(lambda: Drawn(most, shards.manifest.seed))
    judge = shards.manifest.parameters.get("judge") is not None
    for number in bar(range(len(shards)), desc="export", unit="batch"):
        batch = shards.batch(number)
        names = batch["domain"].unique().to_pylist()
        for name in names:
            domain = domains[name] if name in domains else domains.setdefault(name, DomainPairs(artifacts, name))
            own = batch.filter(pc.equal(batch["domain"], name))
            rows = domain.rows(own)
            for key, row in _mined(domain, own, rows, left_out):
                drawn[name, MINED].add(key, row)
        if len(names) > 1:
            left_out["batches of several small domains, which have no scores"] += 1
            continue
        surrogate = surrogate_of(shards, artifacts, name, own)
        filtered = Filtered(negatives=domain.negatives, ids=domain.ids, rows=rows, asking=np.empty(0, np.int64))
        evidence = Evidence(surrogate=surrogate, filtered=filtered, judge=judge, missing=[])
        reasons, undecided = read_reasons(own), domain.undecided(rows[:, None], rows)
        for kind, cells in (
            (HARD, _hardest((reasons < 0) & undecided, surrogate)),
            (MASKED, _just_masked((reasons == NAMES.index("score")) & undecided, surrogate, filtered)),
        ):
            for query, document in cells:
                told = evidence.why("score", query, document) if kind == MASKED else "not masked"
                row = Row(
                    why=f"{KINDS[kind]} in batch {number}, {told}",
                    document=own["document"][document].as_py(),
                    score=round(float(surrogate.scores[query, document]), 4),
                    other=own["id"][document].as_py(),
                    **_own(own, query),
                )
                drawn[name, kind].add(domain.key(int(rows[query]), int(rows[document])), row)
    return list(_once(shards, artifacts, drawn))


def _mined(
    domain: DomainPairs, batch: pa.RecordBatch, rows: NDArray[np.int64], left_out: Counter[str]
) -> Iterator[tuple[tuple[int, int], Row]]:
    for place, row, other, text in domain.mined(batch, rows):
        if other < 0:
            left_out["mined texts that no pair has"] += 1
        else:
            found = Row(why="mined", document=text, score=0, other=str(domain.ids[other]), **_own(batch, place))
            yield domain.key(row, other), found


def _own(batch: pa.RecordBatch, place: int) -> dict[str, str]:
    names = {"domain": "domain", "query": "query", "own_document": "document", "pair": "id"}
    return {name: batch[column][place].as_py() for name, column in names.items()}


def _hardest(negatives: NDArray[np.bool_], surrogate: Surrogate) -> list[tuple[int, int]]:
    """Return each query's hardest negative, for the queries whose one scores highest."""
    scores = np.where(negatives & ~np.eye(len(negatives), dtype=bool), surrogate.scores, -np.inf)
    best, highest = scores.argmax(axis=1), scores.max(axis=1)
    queries = np.argsort(-highest, kind="stable")[:HARDEST]
    return [(query, int(best[query])) for query in queries.tolist() if highest[query] > -np.inf]


def _just_masked(by_score: NDArray[np.bool_], surrogate: Surrogate, filtered: Filtered) -> list[tuple[int, int]]:
    """Return the cells that are masked by score and nearest to a limit."""
    thresholds, limits = filtered.negatives.thresholds[filtered.rows][:, None], filtered.negatives.limits(filtered.rows)
    over = np.abs(np.minimum(surrogate.scores - thresholds, surrogate.likeness - limits))
    queries, documents = np.nonzero(by_score)
    nearest = np.argsort(over[queries, documents], kind="stable")[:HARDEST]
    return list(zip(queries[nearest].tolist(), documents[nearest].tolist(), strict=True))


def _once(shards: ShardSet, artifacts: Artifacts, drawn: dict[tuple[str, int], Drawn]) -> Iterator[tuple[str, Row]]:
    """Yield what was drawn, each question once, with the scores of mined documents."""
    asked = set[tuple[str, str, str]]()
    for (name, kind), of in sorted(drawn.items(), key=lambda item: item[0]):
        rows = of.rows()
        if kind == MINED and rows:
            texts = {"query": [row.query for row in rows], "document": [row.document for row in rows]}
            scores = surrogate_vectors(shards, artifacts, name, pa.record_batch(texts)).scores().tolist()
            rows = [replace(row, score=round(score, 4)) for row, score in zip(rows, scores, strict=True)]
        for row in sorted(rows, key=lambda row: (-row.score, row.pair, row.other)):
            if (question := (name, row.query, row.document)) not in asked:
                asked.add(question)
                yield KINDS[kind], row
