"""Does a CDE learn to read from its context which words are common, where nothing else tells?

``python -m experiments.cde.planted [--steps N] --output FILE``

Each domain draws ``COMMON`` of ``WORDS`` words that are common in it. A document has ``OWN`` words that are not, and
``NOISE`` common ones; its query has all but one of the former, and other common ones. Small encoders from scratch learn
from a new domain in each step, and are asked in domains that none has seen, with a context of the domain's ``own``, of
``another``'s, or with ``none``. Beside the biencoder there is a CDE (``context: sequence``) whose context is what its
first stage makes of the batch's documents (``first stage``), that less the mean over documents of other domains
(``centred``), the mean of the word vectors of each document (``words``), or the vectors of the common words (``common
words``). ``likeness`` is the mean cosine of two context vectors, before training and after. The last two rows are of
counting words that two texts share, and of weighting them by how rare they are in the domain's documents.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from batchwright.core.command import new_parser, run
from batchwright.core.files import write_tsv
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.common.model_folder import ModelInfo
from experiments.common.small_models import LENGTH, save_start_model
from experiments.common.workspace import Row
from experiments.rivals.training import ndcg_of
from trainers.cde.start import Params, start_from
from trainers.common.params import Optimisation
from trainers.common.passes import set_dropout
from trainers.common.step_loop import build_optimiser

WORDS, COMMON, OWN, NOISE = 64, 8, 3, 5
BATCH, TEMPERATURE, RATE, NEW_RATE = 32, 0.05, 2e-3, 1e-2
"""Pairs of a step, all of them the context of a CDE, and settings."""
DOMAINS, DOCUMENTS = 20, 128
"""Domains that are asked in, and the pairs of each."""
ANSWERS = [[place] for place in range(DOCUMENTS)]
CLS, SEP = WORDS, WORDS + 1
Words = NDArray[np.int64]


class Domain(NamedTuple):
    """The words of n ``queries``, and of the ``documents`` ``(n, words)`` that answer them; the ``common`` ones."""

    queries: Words
    documents: Words
    common: Words


Context = Callable[[ContextualEncoder, Domain], Tensor]
"""Makes the context vectors ``(j, h)`` of a domain."""


def main() -> str:
    """Train all encoders; print and write one row for each."""
    parser = new_parser("experiments.cde.planted", str(__doc__), "python -m experiments.cde.planted --output out.tsv")
    parser.add_argument("--steps", type=int, default=1600)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    unseen = [draw(np.random.default_rng([1, number]), DOCUMENTS) for number in range(DOMAINS)]
    rows: list[Row] = []
    for name, context in CONTEXTS.items():
        encoder = new_encoder(reads=context is not None)
        before = likeness(encoder, context, unseen)
        train(encoder, context, arguments.steps)
        row: Row = {"context": name, **ask(encoder, context, unseen)}
        rows.append({**row, "likeness, first": before, "likeness, last": likeness(encoder, context, unseen)})
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    for name, power in (("shared words", 0), ("rare shared words", 1)):
        scores = [ndcg_of(shared_words(domain, rarity(domain.documents) ** power), ANSWERS) for domain in unseen]
        rows.append({"context": name, "own": _mean(scores)} | dict.fromkeys(list(rows[0])[2:], "-"))
    write_tsv(arguments.output, rows)
    return f"{len(rows)} rows in {arguments.output}"


def draw(rng: np.random.Generator, count: int) -> Domain:
    """Draw a domain and ``count`` pairs of it."""
    common = rng.choice(WORDS, COMMON, replace=False)
    others = np.setdiff1d(np.arange(WORDS), common)
    own = np.stack([rng.choice(others, OWN, replace=False) for _ in range(count)])
    queries, documents = (
        np.stack([np.append(words, rng.choice(common, NOISE, replace=False)) for words in texts])
        for texts in (own[:, 1:], own)
    )
    return Domain(rng.permuted(queries, axis=1), rng.permuted(documents, axis=1), common)


def new_encoder(*, reads: bool) -> ContextualEncoder:
    """A two-layer CDE from random weights, whose vocabulary is the words; if it ``reads`` no context, a biencoder."""
    with tempfile.TemporaryDirectory() as folder:
        save_start_model(Path(folder), "transformer", 0)
        params = Params(temperature=TEMPERATURE, context_documents=0)
        if reads:
            changes = {"context_documents": BATCH, "context": "sequence", "context_bias": None}
            params = params.model_copy(update=changes)
        encoder = start_from(Path(folder), params, ModelInfo(variant="biencoder", max_length=LENGTH))
    for stage in (encoder.first, encoder.second):
        cast(PreTrainedModel, stage[0].model).resize_token_embeddings(WORDS + 2)
    set_dropout(encoder, 0)
    return encoder


def features(texts: Words) -> dict[str, Tensor]:
    """What an encoder reads of texts of one length."""
    ids = torch.from_numpy(np.pad(texts, ((0, 0), (1, 1)), constant_values=((0, 0), (CLS, SEP))))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def of_first_stage(encoder: ContextualEncoder, domain: Domain) -> Tensor:
    """See ``CONTEXTS``."""
    return encoder.embed_context(features(domain.documents[:BATCH]))


def of_first_stage_centred(encoder: ContextualEncoder, domain: Domain) -> Tensor:
    """See ``CONTEXTS``."""
    others = [draw(np.random.default_rng([2, number]), 4).documents for number in range(16)]
    with torch.no_grad():
        mean = encoder.embed_context(features(np.concatenate(others))).mean(dim=0)
    return of_first_stage(encoder, domain) - mean


def of_words(encoder: ContextualEncoder, domain: Domain) -> Tensor:
    """See ``CONTEXTS``."""
    vectors: Tensor = encoder.backbone.get_input_embeddings()(torch.from_numpy(domain.documents[:BATCH]))
    return vectors.mean(dim=1)


def of_common_words(encoder: ContextualEncoder, domain: Domain) -> Tensor:
    """See ``CONTEXTS``."""
    vectors: Tensor = encoder.backbone.get_input_embeddings()(torch.from_numpy(domain.common))
    return vectors


CONTEXTS: dict[str, Context | None] = {
    "biencoder": None,
    "first stage": of_first_stage,
    "first stage, centred": of_first_stage_centred,
    "words": of_words,
    "common words": of_common_words,
}
"""Where context vectors come from, as said above; None: there are none."""


def embed(encoder: ContextualEncoder, context: Tensor | None, texts: Words) -> Tensor:
    """Unit vectors ``(n, h)`` of texts behind context vectors; None: the null vector, if it reads a context."""
    prepared = None if context is None else encoder.prepare(context)
    vectors: Tensor = encoder(features(texts) | {"context": prepared})["sentence_embedding"]
    return functional.normalize(vectors, dim=-1)


def train(encoder: ContextualEncoder, context: Context | None, steps: int) -> None:
    """Train on a new domain in each step."""
    rng = np.random.default_rng(0)
    params = Optimisation(learning_rate=RATE, new_learning_rate=NEW_RATE)
    optimiser, schedule = build_optimiser(encoder, params, steps, encoder.new_parameters())
    for _ in range(steps):
        domain = draw(rng, BATCH)
        vectors = context(encoder, domain) if context else None
        queries, documents = (embed(encoder, vectors, texts) for texts in (domain.queries, domain.documents))
        loss = functional.cross_entropy(queries @ documents.T / TEMPERATURE, torch.arange(BATCH))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(encoder.parameters(), params.max_grad_norm)
        optimiser.step()
        schedule.step()


@torch.no_grad()
def likeness(encoder: ContextualEncoder, context: Context | None, unseen: Sequence[Domain]) -> str:
    """The mean cosine of two context vectors of a domain."""
    if context is None:
        return "-"
    vectors = [functional.normalize(context(encoder, domain), dim=-1) for domain in unseen]
    sums = [(float((of @ of.T).sum()) - len(of)) / (len(of) * (len(of) - 1)) for of in vectors]
    return f"{np.mean(sums):.3f}"


@torch.no_grad()
def ask(encoder: ContextualEncoder, context: Context | None, unseen: Sequence[Domain]) -> Row:
    """nDCG@10 over all queries, by context."""
    encoder.eval()
    scores: dict[str, list[NDArray[np.float32]]] = {"own": [], "another": [], "none": []}
    for number, domain in enumerate(unseen):
        read = {"own": domain, "another": unseen[number - 1], "none": None}
        for name, of in read.items():
            vectors = context(encoder, of) if context and of else None
            queries, documents = (embed(encoder, vectors, texts) for texts in (domain.queries, domain.documents))
            scores[name].append(ndcg_of((queries @ documents.T).numpy(), ANSWERS))
    encoder.train()
    return {name: _mean(of_context) if context or name == "none" else "-" for name, of_context in scores.items()}


def rarity(documents: Words) -> NDArray[np.float64]:
    """The inverse document frequency of each word ``(WORDS,)``."""
    counts = np.bincount(documents.ravel(), minlength=WORDS)  # a document has no word twice
    rarities: NDArray[np.float64] = np.log(len(documents) / np.maximum(counts, 1))
    return rarities


def shared_words(domain: Domain, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight ``(n, n)`` of the words that a query and a document share."""
    queries, documents = (np.eye(WORDS)[texts].sum(axis=1) for texts in (domain.queries, domain.documents))
    scores: NDArray[np.float64] = queries * weights @ documents.T
    return scores


def _mean(scores: Sequence[NDArray[np.float32]]) -> str:
    return f"{np.concatenate(scores).mean(dtype=np.float64):.3f}"


if __name__ == "__main__":
    run("planted", main)
