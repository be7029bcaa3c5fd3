"""Makes the pairs of one domain from its candidates in all parts, a range of ids at a time.

Hard negatives that answer their query after all are removed, of equal pairs all but one, and each query gets its split.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from batchwright.core.fingerprint import content_id
from batchwright.core.normal_form import normal_form
from batchwright.formats.pairs import ANNOTATED_PAIRS, PAIRS_SCHEMA, ROWS, SAYS_NOTHING, SCORED_PAIRS, Split
from pipelines.ingest.normalise import SHOWN, printable
from pipelines.ingest.read import NOT_STATED, REJECTED, SPLITS, PartRead
from pipelines.ingest.splits import Splits

PAIRS_FILE = "pairs.parquet"
_REJECTS_FILE = "rejects.arrow"
DUPLICATE = "duplicate"
REPEATED, POSITIVE = "negative: a duplicate of the document", "negative: answers the query in another pair"
NEGATIVE_REASONS = (REPEATED, POSITIVE)
"""Why a hard negative was removed from its pair."""
MOVED: Mapping[tuple[str, Split], str] = {
    (of, split): f"split: its {of} is in {split}, by another row"
    for of in ("query", "group")
    for split in SPLITS
    if split != "train"
}
"""Why a pair is in another split than its row says. All other reasons are those of rows that are no pairs."""
_PLACED = REJECTED.append(pa.field("part", pa.int32()))
_RANGE_PAIRS, _RANGE_BYTES = 65_536, 128 << 20
_FEW = 20
"""So many pairs of one document may be most of a small domain."""
_IDS = 16**32  # an id is as many hex digits

Batches = list[tuple[int, pa.RecordBatch]]
"""Place of a part among those of the domain, and some of its candidates, sorted by id."""
Answers = NDArray[np.uint64]
"""Sorted keys of a domain's pairs: 64 bits made of the normal forms of query and document."""


def write_domain(domain: str, parts: Sequence[PartRead], folder: Path, splits: Splits) -> dict[str, Any]:
    """Write unique pairs with their split, sorted by id, and the rejects among the candidates, into ``folder``.

    Pairs whose source says another split are among the rejects, too, though they are kept.

    Returns:
        ``counts`` of pairs by split and of unique texts, queries by normal form; ``pairs_of``: how many pairs each
        of ``parts`` gave; and ``repeated``, if most pairs have the same query or document: by side, its text and how
        many pairs there are.
    """
    batches = [(place, batch) for place, part in enumerate(parts) for batch in part.candidates(domain)]
    has_negatives, has_scores = (
        any(pc.sum(pc.list_value_length(batch[name])).as_py() for _, batch in batches)
        for name in ("negatives", "scores")
    )
    annotated = any(
        pc.any(pc.not_equal(batch[name], SAYS_NOTHING[name])).as_py()
        for _, batch in batches
        for name in ("weight", "metadata")
    )
    schema = ANNOTATED_PAIRS if annotated else SCORED_PAIRS if has_scores else PAIRS_SCHEMA
    answers = answers_in(batch for _, batch in batches) if has_negatives else None
    kept: list[pa.Table] = []
    with (
        pq.ParquetWriter(folder / PAIRS_FILE, schema, compression="zstd") as pairs,
        pa.ipc.new_file(folder / _REJECTS_FILE, _PLACED) as rejects,
    ):
        for candidates in _ranges(batches):
            if answers is not None:  # while each negative is still in its own row
                candidates, removed = screen(candidates, answers)
                rejects.write_table(pa.Table.from_pylist(removed, _PLACED))
            rejects.write_table(_moved(candidates, splits).select(_PLACED.names))
            unique, duplicates = deduplicate(candidates)
            rejects.write_table(duplicates.select(_PLACED.names))
            unique = unique.append_column("split", _named(splits.of(unique["query_hash"].to_numpy())))
            pairs.write_table(unique.select(schema.names).cast(schema), row_group_size=ROWS)
            kept.append(unique.select(["split", "part", "query_hash", "document_hash"]))
    unique = pa.concat_tables(kept)
    repeated = {side: _repeated(side, unique[f"{side}_hash"].to_numpy(), batches) for side in ("query", "document")}
    return _counts(unique, len(parts)) | {"repeated": {side: each for side, each in repeated.items() if each}}


def read_rejects(folder: Path) -> pa.Table:
    """Read what ``write_domain`` rejected: ``REJECTED``, and as ``part`` its place among the parts of the domain."""
    with pa.memory_map(str(folder / _REJECTS_FILE)) as source:
        return pa.ipc.open_file(source).read_all()


def _ranges(batches: Batches) -> Iterator[pa.Table]:
    """Cut the candidates where their ids, which are hashes, are likely to make ranges of equal size."""
    pairs, size = sum(len(batch) for _, batch in batches), sum(batch.nbytes for _, batch in batches)
    count = max(math.ceil(pairs / _RANGE_PAIRS), math.ceil(size / _RANGE_BYTES))
    bounds = np.array([f"{_IDS * number // count:032x}" for number in range(1, count)], dtype="S32")
    cuts = [np.array([0, *np.searchsorted(_ids(batch), bounds), len(batch)]) for _, batch in batches]
    for number in range(count):
        yield pa.Table.from_batches(
            _placed(batch.slice(cut[number], cut[number + 1] - cut[number]), place)
            for (place, batch), cut in zip(batches, cuts, strict=True)
        )


def _ids(batch: pa.RecordBatch) -> NDArray[np.bytes_]:
    """Return the ids of a record batch ``(n,)`` without a copy."""
    ids = batch["id"]
    return np.frombuffer(ids.buffers()[2], dtype="S32")[ids.offset : ids.offset + len(ids)]


def _placed(batch: pa.RecordBatch, place: int) -> pa.RecordBatch:
    return batch.append_column("part", pa.array(np.full(len(batch), place, dtype=np.int32)))


def _named(splits: NDArray[np.int8]) -> pa.Array:
    return pa.array(SPLITS).take(pa.array(splits))


def _moved(candidates: pa.Table, splits: Splits) -> pa.Table:
    """Return the rows whose source says another split than their query is in, as rejects."""
    stated, queries = candidates["stated"].to_numpy(), candidates["query_hash"].to_numpy()
    found, grouped = splits.of(queries), splits.keys(queries) != queries
    places = np.flatnonzero((stated != NOT_STATED) & (stated != found))
    what = np.where(grouped[places], "group", "query").tolist()
    reasons = pa.array([MOVED[of, SPLITS[place]] for of, place in zip(what, found[places], strict=True)], pa.string())
    return _rejected(candidates.take(pa.array(places)), reasons)


def _rejected(candidates: pa.Table, reasons: pa.Array) -> pa.Table:
    """Return rows as rejects, shown by their queries."""
    queries = pc.utf8_slice_codeunits(candidates["query"], 0, SHOWN)
    shown = pa.array([printable(query) for query in queries.to_pylist()], pa.large_string())
    rejected = candidates.select(["source", "row", "part"])
    return rejected.append_column("reason", reasons).append_column("text", shown)


def answers_in(batches: Iterable[pa.RecordBatch]) -> Answers:
    """Return the keys of all pairs of a domain."""
    keys = [
        _key(normal_form(query.as_py()), normal_form(document.as_py()))
        for batch in batches
        for query, document in zip(batch["query"], batch["document"], strict=True)
    ]
    return np.unique(np.array(keys, dtype=np.uint64))


def screen(pairs: pa.Table, answers: Answers) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Remove the hard negatives that repeat their pair's document, or a document that answers the same query.

    Texts are the same if their normal forms are, as in the stage ``filter``; ``answers`` are those of the whole domain.
    Return the pairs without these negatives, and the negatives as rejects with the rows that they came from.
    """
    lists, scores = pairs["negatives"].to_pylist(), pairs["scores"].to_pylist()
    rejected: list[dict[str, Any]] = []
    for row, negatives in enumerate(lists):
        if not negatives:
            continue
        query, document = (normal_form(pairs[side][row].as_py()) for side in ("query", "document"))
        lists[row], of = [], scores[row]
        scores[row] = of[:1]
        for place, negative in enumerate(negatives, start=1):
            form = normal_form(negative)
            if not _holds(answers, _key(query, form)):
                lists[row].append(negative)
                scores[row] += of[place : place + 1]
                continue
            origin = {name: pairs[name][row].as_py() for name in ("source", "row", "part")}
            reason = REPEATED if form == document else POSITIVE
            rejected.append({**origin, "reason": reason, "text": printable(negative)})
    return _with(pairs, negatives=lists, scores=scores), rejected


def _with(pairs: pa.Table, **columns: list[list[Any]]) -> pa.Table:
    """Return ``pairs`` with other lists in some columns."""
    for name, lists in columns.items():
        place = pairs.schema.get_field_index(name)
        pairs = pairs.set_column(place, name, pa.array(lists, pairs.schema.field(place).type))
    return pairs


def _key(query: str, document: str) -> np.uint64:
    return np.uint64(int(content_id(query, document)[:16], 16))


def _holds(answers: Answers, key: np.uint64) -> bool:
    place = int(np.searchsorted(answers, key))
    return place < len(answers) and bool(answers[place] == key)


def deduplicate(candidates: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the unique pairs of a domain, sorted by id, and their duplicates with the columns of rejects.

    Of equal pairs, that of the first ``part`` counts, and of the first source and row in it. It gets the hard negatives
    of the others, in the same order, each once. Of a teacher's scores, the first of each text counts.
    """
    order = pc.sort_indices(candidates, [(key, "ascending") for key in ("id", "part", "source", "row")]).to_numpy()
    repeated = _equals_previous(candidates["id"].take(pa.array(order)))
    duplicates = candidates.take(pa.array(order[repeated]))
    rejected = _rejected(duplicates, pa.repeat(DUPLICATE, len(duplicates)))
    unique = candidates.take(pa.array(order[~repeated]))
    negatives, scores = _joined(candidates.select(["negatives", "scores"]).take(pa.array(order)), repeated)
    return _with(unique, negatives=negatives, scores=scores), rejected


def _joined(candidates: pa.Table, repeated: NDArray[np.bool_]) -> tuple[list[list[str]], list[list[float]]]:
    """Join each list of negatives with those after it that are of the same pair, and their scores likewise."""
    lists: list[dict[str | None, float]] = []  # None stands for the pair's document
    for same_pair, texts, scores in zip(repeated.tolist(), *candidates.to_pydict().values(), strict=True):
        if not same_pair:
            lists.append({None: math.nan})
        of = lists[-1]
        for text, score in zip([None, *texts], scores or [math.nan] * (1 + len(texts)), strict=True):
            if math.isnan(of.setdefault(text, score)):
                of[text] = score
    negatives = [[text for text in of if text is not None] for of in lists]
    return negatives, [[] if all(map(math.isnan, of.values())) else list(of.values()) for of in lists]


def _equals_previous(ids: pa.ChunkedArray) -> NDArray[np.bool_]:
    equal = np.zeros(len(ids), bool)
    if len(ids) > 1:
        equal[1:] = pc.equal(ids[1:], ids[:-1]).to_numpy()
    return equal


def _repeated(side: str, texts: NDArray[np.uint64], batches: Batches) -> tuple[str, int] | None:
    middle = np.partition(texts, len(texts) // 2)[len(texts) // 2]  # where one with most places must be
    count = int(np.count_nonzero(texts == middle))
    if count <= max(_FEW, len(texts) / 2):
        return None
    found = (batch.filter(pc.equal(batch[f"{side}_hash"], pa.scalar(middle))) for _, batch in batches)
    return next(rows[side][0].as_py() for rows in found if len(rows)), count


def _counts(pairs: pa.Table, parts: int) -> dict[str, Any]:
    by_split = {split: pc.sum(pc.equal(pairs["split"], split)).as_py() for split in ("train", "dev", "test")}
    texts = {"queries": "query_hash", "documents": "document_hash"}
    unique = {name: pc.count_distinct(pairs[column]).as_py() for name, column in texts.items()}
    return {"counts": by_split | unique, "pairs_of": np.bincount(pairs["part"].to_numpy(), minlength=parts).tolist()}
