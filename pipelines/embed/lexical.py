"""Lexical vectors: weighted words (``batchwright.core.words``), reduced by a truncated SVD, separately for each domain.

Vocabulary, weights and SVD are fitted on a random sample of both sides. The vocabulary is that of the sampled
documents; other words cannot match any of them. Rows are scaled to unit length twice: before the fit, so that long
documents do not dominate it, and after the reduction, because margins and hardness are defined on cosines. Scaling
removes BM25's preference for documents with many words. A text without known words has the zero vector, which scores 0
with every text.

A fit is a single computation over many texts, so there is nothing to parallelise by record: it runs in one process.
Texts are then encoded block by block. All of it is the same on every processor: weights are rounded to integers, and
what is made of them is exact (``subspace``).

``tfidf`` weights a word, with N and df counted over both sides, by::

    x = (1 + ln tf) * (1 + ln((1 + N) / (1 + df)))

``bm25`` does so, with N, df and the mean length taken over documents, by::

    x = sqrt(idf) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))
    idf = ln(1 + (N - df + 1/2) / (df + 1/2))

BM25 itself is not symmetric: it weights a document's words by that fraction times idf, and a query's words by their
counts. A vector store has one vector per text, whichever side the text is on. So queries are weighted like documents,
and each side gets the square root of idf. If no word is repeated in a query, its inner product with a document is their
BM25 score times a factor that depends on the query alone, so documents are ranked as by BM25. A repeated query word
saturates instead of counting twice.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from batchwright.by_domain.domains import Metrics, copy_files, do_domains
from batchwright.by_domain.spread import Map
from batchwright.core import grid, words
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import files_fingerprint, fingerprint
from batchwright.core.spill import texts_in
from batchwright.core.terminal import counter
from batchwright.formats.models import SIDES, Prefixes
from batchwright.formats.pairs import domains, file_stem, pairs_file, scan_texts
from batchwright.formats.vectors import blocks, write_encoder, write_sorted_vectors
from pipelines.beam.spread import spread
from pipelines.embed.chunks import in_key_order
from pipelines.embed.params import Bm25Params, TfidfParams
from pipelines.embed.subspace import BITS, ROW_BITS, integers, principal_subspace

WORD = re.compile(
    rf"(?:[^\W_]+[{words.MARKS}]*)++"
)  # letters and digits, so the parts of an identifier are separate words
_CODE = [
    Path(grid.__file__),
    Path(words.__file__),
    *map(Path(__file__).with_name, ("lexical.py", "subspace.py", "chunks.py")),
]
_MOST_WORDS = 2**17
_NEGLIGIBLE = 1e-3  # length after the reduction below which a vector's direction is only rounding

Weighting = Callable[[csr_array], csr_array]
"""From word counts ``(n, words)`` to weights of the same shape."""


def embed(pairs: Path, params: TfidfParams | Bm25Params, output: Path) -> tuple[int, int]:
    """Write the vector store to the folder ``output``.

    Returns:
        The number of vectors, and how many of them were computed now.

    Raises:
        InputError: the sampled documents of a domain contain no words.
    """

    def work(domain: str, folder: Path, _: Map) -> Metrics:
        return {"texts": _embed_domain(pairs, domain, params, folder / file_stem(domain))}

    code = files_fingerprint(_CODE)
    made_by = fingerprint(params.model_dump(), code, [version(name) for name in ("numpy", "scipy", "scikit-learn")])
    inputs = {domain: [made_by, files_fingerprint([pairs_file(pairs, domain)])] for domain in domains(pairs)}
    done = do_domains(f"embed/{output.name}", Path(__file__).parent, work, inputs, spread)
    copy_files(done, output)
    write_encoder(output, {**params.model_dump(), "prefixes": Prefixes().model_dump(), "weights": made_by})
    texts = {domain: int(of.metrics["texts"]) for domain, of in done.items()}
    return sum(texts.values()), sum(texts[domain] for domain, of in done.items() if of.new)


def _embed_domain(pairs: Path, domain: str, params: TfidfParams | Bm25Params, folder: Path) -> int:
    queries, documents = (in_key_order(scan_texts(pairs, domain, side))[0] for side in SIDES)
    every, keys = in_key_order(chain(texts_in(queries), texts_in(documents)))
    sampled = {
        side: texts[: params.sample].to_pylist() for side, texts in zip(SIDES, (queries, documents), strict=True)
    }
    if not any(WORD.search(text) for text in sampled["document"]):
        raise InputError(
            f"domain '{domain}': no document contains a letter or a digit; "
            f"vectors of kind '{params.kind}' are computed from words, so use another kind"
        )
    model = fit(sampled["query"], sampled["document"], params)

    def encoded() -> Iterator[NDArray[np.float16]]:
        with counter(len(every), desc=domain, unit="text") as progress:
            for block in blocks(len(every)):
                some = every[block].to_pylist()
                yield model.encode(some)
                progress.update(len(some))

    write_sorted_vectors(folder, keys, params.dimensions, encoded())
    return len(keys)


@dataclass(frozen=True, kw_only=True)
class LexicalModel:
    """A model fitted on one domain; ``basis`` ``(words, dimensions)`` is that of ``principal_subspace``."""

    counter: CountVectorizer
    weigh: Weighting
    basis: NDArray[np.float64]

    def encode(self, some: list[str]) -> NDArray[np.float16]:
        """Encode texts as vectors ``(n, dimensions)`` of unit length, or zero."""
        rows = integers(normalize(self.weigh(csr_array(self.counter.transform(some)))))
        return grid.unit(rows @ self.basis, least=_NEGLIGIBLE * 2.0 ** (ROW_BITS + BITS)).astype(np.float16)


def fit(queries: list[str], documents: list[str], params: TfidfParams | Bm25Params) -> LexicalModel:
    """Fit vocabulary, weights and basis; dimensions beyond the number of texts or words are zero."""
    counter = CountVectorizer(analyzer=_words, max_features=_MOST_WORDS, dtype=np.float64)
    counts = csr_array(counter.fit_transform(documents))
    query_counts = csr_array(counter.transform(queries))
    weigh = fit_weights(params, query_counts, counts)
    rows = integers(normalize(weigh(vstack([query_counts, counts], format="csr"))))
    rank = min(params.dimensions, *rows.shape)
    basis = np.zeros((rows.shape[1], params.dimensions))
    basis[:, :rank] = principal_subspace(rows, rank)
    return LexicalModel(counter=counter, weigh=weigh, basis=basis)


def _words(text: str) -> list[str]:
    return words.words(text.lower(), WORD)


def fit_weights(params: TfidfParams | Bm25Params, queries: csr_array, documents: csr_array) -> Weighting:
    """Fit the weighting of a domain to the word counts of sampled queries and documents."""
    if isinstance(params, TfidfParams):
        return _tfidf(queries, documents)
    return _bm25(params, documents)


def _tfidf(queries: csr_array, documents: csr_array) -> Weighting:
    total = queries.shape[0] + documents.shape[0]
    idf = 1 + np.log((1 + total) / (1 + _texts_with(queries) + _texts_with(documents)))

    def weigh(counts: csr_array) -> csr_array:
        return _with_values(counts, (1 + np.log(counts.data)) * idf[counts.indices])

    return weigh


def _bm25(params: Bm25Params, documents: csr_array) -> Weighting:
    df = _texts_with(documents)
    root_idf = np.sqrt(np.log1p((documents.shape[0] - df + 0.5) / (df + 0.5)))
    mean_length = documents.sum() / documents.shape[0]

    def weigh(counts: csr_array) -> csr_array:
        lengths = np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
        saturation = params.k1 * (1 - params.b + params.b * lengths / mean_length)
        fraction = counts.data * (params.k1 + 1) / (counts.data + saturation)
        return _with_values(counts, fraction * root_idf[counts.indices])

    return weigh


def _texts_with(counts: csr_array) -> NDArray[np.int64]:
    """Number of texts that contain each word, ``(words,)``."""
    return np.bincount(counts.indices, minlength=counts.shape[1])


def _with_values(counts: csr_array, values: NDArray[np.floating]) -> csr_array:
    return csr_array((values, counts.indices, counts.indptr), shape=counts.shape)
