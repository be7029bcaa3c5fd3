"""Hard negatives, chosen by the code of the stages, and teachers that score them."""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from torch.nn import Identity

from batchwright.formats.models import locate_model
from batchwright.formats.vectors import blocks
from experiments.rivals.masks import Rows, known_cells
from experiments.rivals.sets import MODEL, SURROGATES, Training
from experiments.rivals.training import Batch
from stages.filter.rank import nearest
from stages.negatives.choice import Choice, Ranking, choose, draw_keys
from trainers.common.passes import computes_bfloat16

MOST_POSITIVES = 100
"""Known positives of a query that may be among the first ranks when negatives are mined."""
CROSS_ENCODER_TOKENS, CROSS_ENCODER_RATE, CROSS_ENCODER_BATCH = 128, 5e-5, 32
Scores = NDArray[np.float32]
Score = Callable[[Training, Rows], Scores]
"""Takes pairs and each one's candidates ``(N, 1 + k)``, the rows whose documents are scored, -1 for none."""


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """What scores documents; ``temperature`` divides its scores."""

    score: Score
    temperature: float


def with_negatives(choice: Choice, training: Training, seed: int, batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches with the hard negatives that our stages choose from what words rank high.

    Known positives and duplicates are none. A pair has its own document in place of those that it lacks.
    """
    chosen = choose_documents(training, choice, seed)
    for batch in batches:
        own = chosen[batch.rows]
        yield replace(batch, negatives=np.where(own >= 0, own, batch.rows[:, None]).ravel())


@lru_cache(maxsize=4)
def choose_documents(training: Training, choice: Choice, seed: int) -> Rows:
    """Return the rows whose documents are the hard negatives of each pair ``(N, k)``, -1 if there are fewer."""
    _, first = np.unique(training.classes[1], return_index=True)
    chosen = []
    for block in blocks(len(training)):
        rows = np.arange(len(training))[block]
        scores, ranked = nearest(
            training.vectors.queries(block), training.vectors, first, choice.depth + MOST_POSITIVES
        )
        positive = np.stack([known_cells(training, rows[[place]], own)[0] for place, own in enumerate(ranked)])
        ranking = Ranking.of(scores, ranked, positive, training.vectors.scores()[block])
        keys = draw_keys(seed, map(str, rows))
        chosen.append(choose([ranking], [np.zeros_like(positive)], choice, keys))
    negatives = np.concatenate(chosen).astype(np.int64)
    print(f"{np.mean(negatives[:, 0] >= 0):.2f} of {len(negatives)} pairs have a hard negative", flush=True)
    return negatives


@lru_cache(maxsize=1)
def taught_scores(training: Training, choice: Choice, teacher: Teacher) -> Scores:
    """A teacher's scores of each pair's document and hard negatives ``(N, 1 + k)``, NaN where there are fewer."""
    started = time.perf_counter()
    chosen = choose_documents(training, choice, seed=0)  # other seeds differ only if the choice is a sample
    candidates = np.column_stack([np.arange(len(training)), chosen])
    scores = np.where(candidates >= 0, teacher.score(training, candidates), np.float32(np.nan))
    first = np.mean(scores[:, 0] > np.nanmax(np.column_stack([np.full(len(scores), -np.inf), scores[:, 1:]]), axis=1))
    print(f"teacher: {time.perf_counter() - started:.0f} s, ranks {first:.2f} of the documents first", flush=True)
    return scores.astype(np.float32)


def score_with_minilm(training: Training, candidates: Rows) -> Scores:
    """Cosines of MiniLM as it is."""
    vectors = SURROGATES["minilm"](training.queries, training.documents).astype(np.float32)
    queries, documents = np.split(vectors, 2)
    scores: Scores = np.einsum("nd,nkd->nk", queries, documents[candidates])
    return scores


def score_with_cross_encoder(training: Training, candidates: Rows) -> Scores:
    """Logits of a cross-encoder that is MiniLM trained for an epoch to tell these pairs from these candidates."""
    places, columns = np.nonzero(candidates >= 0)
    queries = [training.queries[place] for place in places]
    documents = [training.documents[row] for row in candidates[places, columns]]
    with tempfile.TemporaryDirectory() as folder:
        model = CrossEncoder(str(locate_model(MODEL)), num_labels=1, max_length=CROSS_ENCODER_TOKENS)
        settings = CrossEncoderTrainingArguments(
            folder,
            num_train_epochs=1,
            per_device_train_batch_size=CROSS_ENCODER_BATCH,
            learning_rate=CROSS_ENCODER_RATE,
            warmup_steps=0.1,
            use_cpu=model.device.type == "cpu",
            bf16=computes_bfloat16(model.device.type),
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=0,
        )
        rows = Dataset.from_dict({"query": queries, "document": documents, "label": (columns == 0).astype(float)})
        loss = BinaryCrossEntropyLoss(model, pos_weight=torch.tensor(float(candidates.shape[1] - 1)))
        CrossEncoderTrainer(model=model, args=settings, train_dataset=rows, loss=loss).train()
        model.save_pretrained(folder)
        trained = CrossEncoder(folder, local_files_only=True)  # the trainer leaves bfloat16 on
    scores = np.full(candidates.shape, np.nan, np.float32)
    pairs = list(zip(queries, documents, strict=True))
    scores[places, columns] = trained.predict(pairs, activation_fn=Identity(), show_progress_bar=False)
    return scores
