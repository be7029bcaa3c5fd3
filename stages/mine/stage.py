"""Writes the contextual batches with hard negatives that trained models and BM25 find (ANCE, arXiv 2007.00808)."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.by_domain.domains import Metrics, do_domains
from batchwright.by_domain.spread import Map
from batchwright.core.atomic import atomic_dir
from batchwright.core.files import write_json
from batchwright.core.fingerprint import files_fingerprint, versions
from batchwright.core.names import BM25
from batchwright.core.params import Base, load_params
from batchwright.core.paths import CORPUS, NEGATIVES, PAIRS, RESULTS, SHARDS, VECTORS
from batchwright.core.spill import blocks_of, spilled_rows, spilled_texts
from batchwright.formats.cross_encoder import LIBRARIES
from batchwright.formats.models import model_hash
from batchwright.formats.negatives import KnownPositives, Negatives, judged
from batchwright.formats.pairs import count_pairs, domains, file_stem, pair_parts, pairs_file, scan_pairs, scan_texts
from batchwright.formats.shards import ShardSet, format_with, unscored
from batchwright.formats.shards.manifest import write_card
from batchwright.formats.vectors import PairVectors, Provenance, VectorStore, blocks
from batchwright.retrievers.common.words import words_of
from stages import negatives as shared
from stages.mine.documents import Known, know, read_documents
from stages.mine.params import Mining
from stages.mine.rewrite import Mined, rewrite_shards, write_mined
from stages.mine.search import Found, Miner, Search, load_miner
from stages.negatives.choice import MOST_RANKS, NONE, Choice, Ranking, choose, draw_keys

BATCHES = SHARDS / "contextual"
OUTPUT = RESULTS / "mine"


def main(name: str) -> str:
    """Write ``data/shards/NAME``, and the number of hard negatives found to ``results/mine/NAME.json``."""
    params = load_params(f"mine.{name}", Mining)
    base = load_params("base", Base)
    shards = ShardSet.open(BATCHES)
    miners = [load_miner(miner, base.language) for miner in params.miners]
    hashes = {miner: words_of(base.language) if miner == BM25 else model_hash(Path(miner)) for miner in params.miners}
    source = Provenance.read(NEGATIVES, made_by="filter")
    store = VectorStore.open(VECTORS / source.vectors)
    near_duplicates = float(source.parameters["near_duplicates"])

    def work(domain: str, folder: Path, do_parts: Map) -> Metrics:
        texts = read_documents(domain)
        rows = _mine(domain, texts, store, miners, near_duplicates, params, base.seed, do_parts)
        write_mined(folder, rows, texts)
        counts = {"mined": np.count_nonzero(rows != NONE), "from_corpus": np.count_nonzero(rows >= len(rows))}
        return {"pairs": len(rows), **{name: int(count) for name, count in counts.items()}}

    needed = {domain: _inputs(domain, store) for domain in domains(PAIRS)}
    settings = (
        params.model_dump(),
        hashes,
        base.model_dump(),
        versions(*LIBRARIES, "bm25s"),
        near_duplicates,
        files_fingerprint([Path(shared.__file__).parent]),
    )
    done = do_domains(
        f"mine/{name}",
        Path(__file__).parent,
        work,
        {domain: [settings, files_fingerprint(files)] for domain, files in needed.items()},
        pairs={domain: _documents_in(domain) for domain in needed},
    )
    with atomic_dir(SHARDS / name) as folder:
        mined = {domain: _open(domain, of.files) for domain, of in done.items()}
        written = rewrite_shards(shards, mined, folder)
        first, *joined = params.miners
        own = {"miner": hashes[first], **{f"miner {also}": hashes[also] for also in joined}}
        changes = {
            "format": format_with(unscored(shards.batch(0)).schema.names),
            "shards": written,
            "made_with": {**shards.manifest.made_with, "mine": params.model_dump()},
            "models": {**shards.manifest.models, **own},
        }
        manifest = shards.manifest.model_copy(update=changes)
        manifest.write(folder)
        write_card(folder, manifest)
    counts = {key: sum(of.metrics[key] for of in done.values()) for key in ("pairs", "mined", "from_corpus")}
    missing = params.count * counts["pairs"] - counts["mined"]
    write_json(OUTPUT / f"{name}.json", {**counts, "missing": missing})
    by = " and ".join(f"'{miner}'" for miner in params.miners)
    corpus = f", {counts['from_corpus']:,} of them from the corpus" if counts["from_corpus"] else ""
    before = any(
        pc.any(pc.greater(batch["negatives"].value_lengths(), 0)).as_py() for batch in shards.columns("negatives")
    )
    instead = "; they replace those that the batches had" if before else ""
    found = f"{counts['mined']:,} hard negatives for {counts['pairs']:,} pairs, mined by {by}"
    return f"{name}: {found}{corpus}; {missing:,} missing{instead}"


def _inputs(domain: str, store: VectorStore) -> list[Path]:
    corpus = pairs_file(CORPUS, domain)
    files = [pairs_file(PAIRS, domain), NEGATIVES / file_stem(domain), store.files(domain)]
    return [*files, *([corpus] if corpus.exists() else [])]


def _documents_in(domain: str) -> int:
    return sum(count_pairs(folder, domain) for folder in (PAIRS, CORPUS) if pairs_file(folder, domain).exists())


def _open(domain: str, folder: Path) -> Mined:
    chunks = chain([[]], blocks_of(scan_texts(PAIRS, domain, "id", "train")))  # a first one if there are no pairs
    ids = spilled_rows(np.array(chunk, "S32") for chunk in chunks)
    return Mined(ids, folder)


def _mine(
    domain: str,
    texts: pa.LargeStringArray,
    store: VectorStore,
    miners: Sequence[Miner],
    near_duplicates: float,
    params: Choice,
    seed: int,
    do_parts: Map,
) -> NDArray[np.int32]:
    """Return the rows ``(N, count)`` of each pair's hard negatives among ``texts``, those of ``read_documents``."""
    vectors = store.of(domain).of_pairs(pair_parts(PAIRS, domain, "train"))
    negatives = Negatives.read(NEGATIVES, domain, len(vectors))
    if not len(vectors):
        return np.empty((0, params.count), np.int32)
    known = know(domain, negatives, near_duplicates, do_parts)
    positives = KnownPositives(known.negatives)
    ranks = [
        params.depth + min(int(positives.count(known.negatives.query_class[block]).max()), MOST_RANKS)
        for block in blocks(len(vectors))
    ]
    queries = spilled_texts(batch["query"] for batch in scan_pairs(PAIRS, domain, "train", ["query"]))
    found = [Search(miner, domain, texts, known.different, queries).all(ranks, do_parts) for miner in miners]
    keys = draw_keys(seed, scan_texts(PAIRS, domain, "id", "train")) if params.sample else None
    return choose_negatives(found, vectors, known, params, keys)


def choose_negatives(
    found: Sequence[Found],
    surrogate: PairVectors,
    known: Known,
    params: Choice,
    keys: NDArray[np.uint64] | None = None,
) -> NDArray[np.int32]:
    """Choose the hard negatives of N pairs from what each miner ``found``: rows of documents of pairs and corpus.

    Known positives and their duplicates are none, nor documents of pairs that are false negatives: the vectors of the
    ``surrogate`` judge them as packing does, unless someone judged otherwise. It has no pair to compare with a document
    of the corpus, so that the miners' scores alone say whether this may be a false negative (``max_share``).

    Returns:
        Rows ``(N, count)``, padded with -1.
    """
    positives, irrelevant = KnownPositives(known.negatives), judged(known.negatives, relevant=False)
    chosen = np.empty((len(surrogate), params.count), dtype=np.int32)
    for block in blocks(len(surrogate), rows_each=max(rows.shape[1] for _, rows in found)):
        queries = known.negatives.query_class[block][:, None]
        rankings, false = [], []
        for scores, rows in ((scores[block], rows[block].astype(np.int64)) for scores, rows in found):
            classes = known.classes[rows]  # those of a row -1 do not matter
            own = classes == known.negatives.document_class[block][:, None]
            rankings.append(Ranking.of(scores, rows, positives.contains(queries, classes), _own(scores, own, rows)))
            false.append(_false(block, rows, surrogate, known.negatives) & ~irrelevant.contains(queries, classes))
        chosen[block] = choose(rankings, false, params, None if keys is None else keys[block])
    return chosen


def _own(scores: NDArray[np.float32], own: NDArray[np.bool_], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the score of each query's ``own`` document, NaN if it was not found."""
    there = own & (rows != NONE)
    score = np.take_along_axis(scores, there.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(there.any(axis=1), score, np.float32(np.nan))


def _false(block: slice, rows: NDArray[np.int64], surrogate: PairVectors, negatives: Negatives) -> NDArray[np.bool_]:
    """Return which of ``rows`` ``(n, k)`` are documents of pairs and, by the surrogate, false negatives."""
    of_pairs = (rows != NONE) & (rows < len(surrogate))
    looked_up = np.where(of_pairs, rows, 0)
    documents = surrogate.documents(looked_up.ravel()).reshape(*rows.shape, -1)
    scores = np.einsum("nd,nkd->nk", surrogate.queries(block), documents)
    false: NDArray[np.bool_] = of_pairs & negatives.false(block, scores, surrogate.likeness(block, looked_up))
    return false
