"""A cross-encoder as a teacher: MiniLM, trained to find a query's document among its candidates, once for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel

from batchwright.core.atomic import atomic_dir
from batchwright.core.fingerprint import fingerprint
from batchwright.formats.models import locate_model
from experiments.common.small_models import BASE
from experiments.rivals.sets import MODEL
from trainers.common.job import training_device
from trainers.common.params import Optimisation
from trainers.common.passes import computes_bfloat16
from trainers.common.step_loop import build_optimiser

TOKENS, RATE, QUERIES = 128, 5e-5, 8
"""Tokens of a query and a document, learning rate, and queries of a step, each with all of its candidates."""
MOST = 2500
"""Queries that it is trained on."""
READ_AT_ONCE, POOL = 64, 64
"""Texts that are scored at once; steps whose queries are sorted by length, so that little is padded."""
Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class CrossEncoder:
    """Reads a query and a document together; in bfloat16, where there are kernels for it."""

    model: PreTrainedModel
    tokenizer: Any

    @classmethod
    def load(cls, name: str) -> "CrossEncoder":
        """Load a model; the head of one that has none is drawn."""
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(
            name,
            num_labels=1,
            attn_implementation="eager",  # the backward pass of the default takes half of a step on a processor
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        return cls(model=model.to(training_device()), tokenizer=AutoTokenizer.from_pretrained(name))

    def read(self, texts: "Offers", rows: Rows) -> Tensor:
        """Logits ``(n,)`` of some texts."""
        device = training_device()
        given = {name: [values[row] for row in rows] for name, values in texts.tokens.items()}
        padded = self.tokenizer.pad(given, return_tensors="pt").to(device)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=computes_bfloat16(device)):
            logits: Tensor = self.model(**padded).logits[:, 0]
        return logits.float().cpu()


@dataclass(frozen=True, kw_only=True)
class Offers:
    """Queries joined with their candidates, as ``tokens`` by name; ``place`` ``(N, 1 + k)`` says where, -1 for none."""

    tokens: dict[str, list[list[int]]]
    place: Rows

    @classmethod
    def of(cls, tokenizer: Any, queries: Sequence[str], documents: Sequence[str], candidates: Rows) -> "Offers":
        """Join queries with ``candidates``, rows of ``documents`` or -1."""
        there = candidates >= 0
        asked = [queries[row] for row in np.nonzero(there)[0].tolist()]
        tokens = tokenizer(
            asked, [documents[row] for row in candidates[there].tolist()], truncation=True, max_length=TOKENS
        )
        place = np.full(candidates.shape, -1)
        place[there] = np.arange(len(asked))
        return cls(tokens=dict(tokens), place=place)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each text."""
        return np.array([len(ids) for ids in self.tokens["input_ids"]])


def trained_on(queries: Sequence[str], documents: Sequence[str], candidates: Rows, folder: Path) -> Path:
    """Train a cross-encoder unless ``folder`` has it, and return the folder that holds it.

    Of the ``candidates`` ``(N, 1 + k)`` of each query, rows of ``documents`` or -1, the first is the right one. The
    loss is the cross-entropy of the softmax over a query's candidates.
    """
    kept = (
        folder
        / f"cross-encoder-{fingerprint(MODEL, TOKENS, RATE, QUERIES, MOST, queries, documents, candidates.tolist())}"
    )
    if kept.exists():
        return kept
    encoder = CrossEncoder.load(str(locate_model(MODEL)))
    offers = Offers.of(encoder.tokenizer, queries, documents, candidates)
    asked = np.flatnonzero(candidates[:, 0] >= 0)
    lengths = np.where(offers.place >= 0, offers.lengths[offers.place], 0).max(axis=1)
    batches = [asked[rows] for rows in _batches(lengths[asked], seed=0)]
    common = {name: BASE["train"]["common"][name] for name in ("warmup_ratio", "weight_decay", "max_grad_norm")}
    optimiser, schedule = build_optimiser(encoder.model, Optimisation(learning_rate=RATE, **common), steps=len(batches))
    encoder.model.train()
    for number, rows in enumerate(batches):
        place = offers.place[rows]
        there = torch.from_numpy(place >= 0)
        scores = torch.full(place.shape, -torch.inf).masked_scatter(there, encoder.read(offers, place[place >= 0]))
        loss = functional.cross_entropy(scores, torch.zeros(len(rows), dtype=torch.int64))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(encoder.model.parameters(), common["max_grad_norm"])
        optimiser.step()
        schedule.step()
        if number % 100 == 0:
            print(f"cross-encoder: step {number} of {len(batches)}, loss {loss.item():.3f}", flush=True)
    with atomic_dir(kept) as unfinished:
        encoder.model.save_pretrained(unfinished)
        encoder.tokenizer.save_pretrained(unfinished)
    return kept


@torch.no_grad()
def score_with(model: Path, queries: Sequence[str], documents: Sequence[str], candidates: Rows) -> Scores:
    """Logits of each query's candidates ``(N, 1 + k)``, NaN where there is none."""
    encoder = CrossEncoder.load(str(model))
    encoder.model.eval()
    offers = Offers.of(encoder.tokenizer, queries, documents, candidates)
    order = np.argsort(offers.lengths, kind="stable")
    logits = np.empty(len(order), np.float32)
    for start in range(0, len(order), READ_AT_ONCE):
        rows = order[start : start + READ_AT_ONCE]
        logits[rows] = encoder.read(offers, rows).numpy()
    return np.where(offers.place >= 0, logits[offers.place], np.float32(np.nan))


def _batches(lengths: NDArray[np.int64], seed: int) -> Iterator[Rows]:
    """Batches of queries of like length, in random order; each query is in one at most."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(lengths))[:MOST]
    for start in range(0, len(order), POOL * QUERIES):
        pool = order[start : start + POOL * QUERIES]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        cut = [pool[at : at + QUERIES] for at in range(0, len(pool), QUERIES)]
        yield from (cut[place] for place in rng.permutation(len(cut)))
