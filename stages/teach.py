"""Stage ``teach``: batches with a teacher's scores of each pair's document and hard negatives."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import model_validator

from batchwright.by_domain.domains import Metrics, do_domains
from batchwright.by_domain.kept import keep, kept
from batchwright.by_domain.spread import Map
from batchwright.core.atomic import atomic_dir, atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.fingerprint import fingerprint, text_keys, versions
from batchwright.core.names import BM25, Name, WatchedPath, check_instead
from batchwright.core.params import Base, Language, load_params
from batchwright.core.paths import RESULTS, SHARDS
from batchwright.core.spill import SpilledRows, SpilledTexts, spilled
from batchwright.core.terminal import bar, safe
from batchwright.formats.cross_encoder import LIBRARIES, Reading, Reranker
from batchwright.formats.models import model_hash
from batchwright.formats.prompts import FILE
from batchwright.formats.runs import of_seed, seed_folders
from batchwright.formats.shards import Manifest, ShardSet, extended, format_with, write_shard
from batchwright.formats.shards.manifest import write_card
from batchwright.retrievers import load_retriever
from batchwright.retrievers.common.words import WordIndex, words_of

OUTPUT = RESULTS / "teach"
AT_ONCE = 512
"""Pairs whose scores are kept together, for a run that is killed to go on from."""


class Teaching(Reading):
    """Group ``teach.NAME``; ``max_length`` and ``batch_size`` are a cross-encoder's."""

    batches: Name
    """A folder in ``data/shards``, whose pairs have hard negatives: a packing policy, or an entry of ``mine``."""
    model: WatchedPath
    """The teacher: the folder of a cross-encoder, such as ``raw/models/reranker``, or of a trained model, such as
    ``models/biencoder``. DVC watches it."""
    name: str | None = None
    """A teacher that is no folder, with ``model: raw/models``: a cross-encoder in an installed Python package,
    ``package:NAME``, or on the hub, or ``bm25``."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "Teaching":
        check_instead(self.model, self.name)
        return self


_COLUMNS = ("domain", "query", "document")
Score = Callable[[str, Sequence[str], Sequence[Sequence[str]]], NDArray[np.float32]]
"""Scores the documents given for each query, ``(n,)``, one query after the other; first comes their domain."""


class Teacher(NamedTuple):
    """What scores: the hash of its ``weights``, and whether it must see the ``whole`` of a domain at once."""

    weights: str
    score: Score
    whole: bool = False


class Pairs(NamedTuple):
    """The different pairs of shards, as columns ``domain``, ``query``, ``document`` and ``negatives`` of ``table``.

    ``keys`` ``(U,)`` are hashes of them, and ``places`` ``(R,)`` says which of them each row of all batches is.
    """

    table: pa.Table
    keys: NDArray[np.bytes_]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Sequence[ShardSet]) -> "Pairs":
        """Read all batches, twice."""
        hashes = SpilledRows("S16")
        for batch in _batches(sets):
            hashes.add(_keys(batch))
        keys, first, places = np.unique(hashes.array(), return_index=True, return_inverse=True)
        order = np.argsort(first)
        return cls(_read(_batches(sets), first[order]), keys[order], np.argsort(order)[places])

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many scores each pair needs, ``(U,)``."""
        lengths: NDArray[np.int64] = pc.list_value_length(self.table["negatives"]).to_numpy()
        return lengths + 1


def main(name: str) -> str:
    """Write ``data/shards/NAME`` for all seeds, and how often documents come first to ``results/teach/NAME.json``."""
    params = load_params(f"teach.{name}", Teaching)
    folder = SHARDS / params.batches
    sets = [ShardSet.open(each) for each in seed_folders(folder)]
    pairs = Pairs.of(sets)
    if not (pairs.counts > 1).any():
        raise InputError(
            f"teach.{name}: the pairs in {folder} have no hard negatives, without which nothing is learned from a "
            "teacher; name batches of the stage 'mine', or set filter.mine"
        )
    teacher = open_teacher(name, params, load_params("base", Base).language)
    scores, starts = _score(name, params, teacher, pairs)
    first = 0
    with atomic_dir(SHARDS / name) as output:
        for place, shards in enumerate(sets, start=1):
            rows = pairs.places[first : (first := first + shards.manifest.rows)]
            _write(shards, of_seed(output, place), scores, starts, rows, teacher.weights)
    best = sum(int(scores[start] > scores[start + 1 : end].max()) for start, end in _ranges(starts) if end > start + 1)
    taught = int((np.diff(starts) > 1).sum())
    counted = {"pairs": len(starts) - 1, "without_negatives": len(starts) - 1 - taught, "scores": len(scores)}
    write_json(OUTPUT / f"{name}.json", {**counted, "document_first": round(best / taught, 6)})
    return (
        f"{name}: {len(scores):,} scores of {taught:,} pairs by '{params.name or params.model}', which ranks the "
        f"document above all its hard negatives for {best / taught:.1%}"
    )


def open_teacher(name: str, params: Teaching, language: Language | None) -> Teacher:
    """Load the teacher of ``teach.NAME``; the ``language`` of the texts is for BM25.

    Raises:
        InputError: it is neither a cross-encoder nor a retriever.
    """
    if params.name == BM25:
        return Teacher(words_of(language), partial(_by_words, language), whole=True)
    folder = Path(params.model)
    if params.name is None and (folder / FILE).exists():
        retriever = load_retriever(folder)
        return Teacher(model_hash(folder), lambda domain, queries, own: retriever.score(queries, own, domain))
    if params.name is None and not folder.is_dir():
        raise InputError(f"teach.{name}: model '{folder}': no such folder")
    reranker = Reranker(f"teach.{name}", params.name or params.model, params)

    def score(_: str, queries: Sequence[str], own: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        return reranker.score([(query, text) for query, texts in zip(queries, own, strict=True) for text in texts])

    return Teacher(reranker.weights, score)


def _by_words(
    language: Language | None, _: str, queries: Sequence[str], own: Sequence[Sequence[str]]
) -> NDArray[np.float32]:
    numbers = {text: number for number, text in enumerate(sorted({text for texts in own for text in texts}))}
    found = zip(WordIndex(list(numbers), language).scores(queries), own, strict=True)
    return np.concatenate([of_all[[numbers[text] for text in texts]] for of_all, texts in found]).astype(np.float32)


def _score(
    name: str, params: Teaching, teacher: Teacher, pairs: Pairs
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return all scores, one pair after the other, and where each pair's begin, and the last one's end."""
    domains = pairs.table["domain"].combine_chunks().dictionary_encode()
    codes, names = domains.indices.to_numpy(), domains.dictionary.to_pylist()
    order = np.lexsort([pairs.keys, codes])  # by hash, so that what else is there changes little
    ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
    rows = {domain: order[ends[code] : ends[code + 1]] for code, domain in enumerate(names)}
    settings = params.model_dump(exclude={"batches", "model"}), teacher.weights, versions(*LIBRARIES, "bm25s")

    def work(domain: str, folder: Path, _: Map) -> Metrics:
        own = rows[domain]
        at_once = len(own) if teacher.whole else AT_ONCE
        for start in bar(range(0, len(own), at_once), desc=f"teach, {safe(domain)}", unit="part"):
            file = folder / f"{start:09d}.npy"
            ledger = file.with_suffix(".json")
            if kept(ledger, [file]) is None:
                given = pairs.table.take(own[start : start + at_once]).to_pydict()
                texts = [[first, *more] for first, more in zip(given["document"], given["negatives"], strict=True)]
                found = teacher.score(domain, given["query"], texts)
                if not np.isfinite(found).all():
                    raise InputError(f"teach.{name}: '{params.name or params.model}' gives scores that are not finite")
                with atomic_file(file) as temporary, temporary.open("wb") as handle:
                    np.save(handle, found)
                keep(ledger, [file], {})
        return {}

    inputs = {domain: [settings, fingerprint(pairs.keys[own].tobytes().hex())] for domain, own in rows.items()}
    done = do_domains(f"teach/{name}", Path(__file__), work, inputs)
    starts = np.concatenate([[0], np.cumsum(pairs.counts)])
    scores = spilled(int(starts[-1]), np.float32)
    for domain, own in rows.items():
        found = np.concatenate([np.load(file) for file in sorted(done[domain].files.glob("*.npy"))])
        counts = pairs.counts[own]
        within = np.arange(len(found)) - np.repeat(np.cumsum(counts) - counts, counts)
        scores[np.repeat(starts[own], counts) + within] = found
    return scores, starts


def _write(
    shards: ShardSet,
    folder: Path,
    scores: NDArray[np.float32],
    starts: NDArray[np.int64],
    rows: NDArray[np.int64],
    weights: str,
) -> None:
    """Write ``shards`` with scores to ``folder``; ``rows`` ``(R,)`` are the pairs of their rows."""
    size, written, first = shards.manifest.batch_size, [], 0
    for shard in shards.manifest.shards:
        batches = []
        for number in range(first, first + shard.batches):
            own = rows[number * size : (number + 1) * size]
            lists = [scores[starts[pair] : starts[pair + 1]] for pair in own]
            offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int32)
            lists_of_scores = pa.ListArray.from_arrays(offsets, np.concatenate(lists))
            batches.append(extended(shards.batch(number), scores=lists_of_scores))
        written.append(write_shard(folder / shard.name, batches))
        first += shard.batches
    changes = {
        "format": format_with(batches[0].schema.names),
        "shards": written,
        "models": {**shards.manifest.models, "teacher": weights},
    }
    manifest: Manifest = shards.manifest.model_copy(update=changes)
    manifest.write(folder)
    write_card(folder, manifest)


def _ranges(starts: NDArray[np.int64]) -> "zip[tuple[int, int]]":
    return zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)


def _batches(sets: Sequence[ShardSet]) -> Iterator[pa.RecordBatch]:
    return (shards.batch(number) for shards in sets for number in range(len(shards)))


def _keys(batch: pa.RecordBatch) -> NDArray[np.bytes_]:
    """Return hashes ``(B,)`` of the pairs of a batch and their hard negatives."""
    rows = zip(batch["id"].to_pylist(), batch["negatives"].to_pylist(), strict=True)
    return text_keys("\0".join([pair, *negatives]) for pair, negatives in rows).view("S16")


def _read(batches: Iterable[pa.RecordBatch], rows: NDArray[np.int64]) -> pa.Table:
    """Return some ``rows``, ascending, of all batches, memory-mapped."""
    columns, lists, lengths = {name: SpilledTexts() for name in _COLUMNS}, SpilledTexts(), SpilledRows(np.int64)
    first = 0
    for batch in batches:
        own = slice(*np.searchsorted(rows, [first, first + len(batch)]))
        if len(chosen := rows[own] - first):
            found = batch.take(pa.array(chosen))
            for name, texts in columns.items():
                texts.add(found[name])
            lists.add(found["negatives"].flatten())
            lengths.add(found["negatives"].value_lengths().to_numpy())
        first += len(batch)
    ends = np.concatenate([[0], np.cumsum(lengths.array())])
    negatives = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), lists.array())
    return pa.table({**{name: texts.array() for name, texts in columns.items()}, "negatives": negatives})
