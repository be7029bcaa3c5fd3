"""The training that all rivals share: batches, masks, loss and temperature differ; and nDCG@10 as it goes on."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from experiments.common.small_models import BASE
from experiments.rivals.encoders import Kind
from trainers.common.params import Optimisation
from trainers.common.step_loop import build_optimiser

POINTS: dict[Kind, int] = {"static": 8, "transformer": 8, "minilm": 4}
"""How often the held-out queries are scored, which takes a transformer as long as it trains."""
DEPTH = 10
DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows of pairs ``(B,)``, and the rows of the pairs whose documents are further negatives ``(n,)``.

    ``groups`` ``(B,)`` are the same for pairs that were put together because they are alike.
    """

    rows: NDArray[np.int64]
    negatives: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    groups: NDArray[np.integer] | None = None


Loss = Callable[[Tensor, Tensor, Batch, Tensor], Tensor]
"""Takes unit vectors of a batch's queries ``(B, d)`` and documents ``(B + n, d)``, the positives first, the batch, and
the temperature, a scalar."""
Tempering = Literal["fixed", "learned", "falling", "late"]
"""``learned``: a parameter that starts at the temperature, as in CLIP. ``falling``: from twice to half of it. ``late``:
lower by a factor of the square root of 2 in the second half."""


class Settings(NamedTuple):
    """What every arm has at its own best: the loss divides cosines by ``temperature``.

    An arm with a teacher has two more; see ``Teacher``.
    """

    temperature: float
    learning_rate: float
    teacher_temperature: float | None = None
    teacher_weight: float | None = None


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Scores ``(points, Q)`` of the held-out queries after ``steps``, and the seconds of training alone."""

    steps: list[int]
    scores: NDArray[np.float32]
    seconds: float


def train(
    model: nn.Module,
    kind: Kind,
    places: tuple[NDArray[np.int64], NDArray[np.int64]],
    batches: Iterable[Batch],
    count: int,
    loss: Loss,
    settings: Settings,
    score: Callable[[nn.Module], NDArray[np.float32]],
    *,
    tempering: Tempering = "fixed",
    points: int | None = None,
) -> Curve:
    """Train on ``count`` batches, each made when it is due.

    ``places`` are each pair's query and document among the texts that the model reads. ``score`` is called at
    ``points`` points, ``POINTS[kind]`` if None.
    """
    temperature = Temperature(settings.temperature, count, tempering)
    common = {name: BASE["train"]["common"][name] for name in ("warmup_ratio", "weight_decay", "max_grad_norm")}
    params = Optimisation(learning_rate=settings.learning_rate, **common)
    optimiser, schedule = build_optimiser(nn.ModuleList([model, temperature]), params, count)
    measured = point_steps(count, points or POINTS[kind])
    scores, seconds = [], 0.0
    for step, batch in enumerate(batches, start=1):
        started = time.perf_counter()
        documents = np.concatenate([batch.rows, batch.negatives])
        value = loss(model(places[0][batch.rows]), model(places[1][documents]), batch, temperature(step))
        optimiser.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), params.max_grad_norm)
        optimiser.step()
        schedule.step()
        value.item()  # waits for a GPU, whose time counts
        seconds += time.perf_counter() - started
        if step in measured:
            scores.append(score(model))
    return Curve(steps=measured, scores=np.stack(scores), seconds=seconds)


class Temperature(nn.Module):
    """The temperature of each of ``count`` steps."""

    def __init__(self, temperature: float, count: int, tempering: Tempering) -> None:
        super().__init__()
        self.logarithm = nn.Parameter(torch.tensor(temperature).log(), requires_grad=tempering == "learned")
        self.falls = math.log(4) / count if tempering == "falling" else 0.0
        self.middle = count / 2
        self.late = math.log(2) / 2 if tempering == "late" else 0.0

    def forward(self, step: int) -> Tensor:
        """The temperature, not below .01, at ``step``, counted from 1."""
        lower = self.falls * (step - self.middle) + (self.late if step > self.middle else 0)
        return (self.logarithm - lower).exp().clamp(min=0.01)


def point_steps(steps: int, points: int) -> list[int]:
    """The steps after which held-out queries are scored, evenly spaced; the last is the end of training."""
    return sorted({max(1, round(steps * point / points)) for point in range(1, points + 1)})


@torch.no_grad()
def embed(model: nn.Module, rows: NDArray[np.int64], block: int = 512) -> NDArray[np.float32]:
    """Unit vectors of some texts."""
    model.eval()
    vectors = [model(rows[start : start + block]).cpu().numpy() for start in range(0, len(rows), block)]
    model.train()
    return np.concatenate(vectors)


def pairs_only(batches: Iterable[NDArray[np.int64]]) -> Iterator[Batch]:
    """Batches without further negatives."""
    return (Batch(rows=rows) for rows in batches)


def best_documents(queries: NDArray[np.float32], documents: NDArray[np.float32]) -> NDArray[np.int64]:
    """The places of each query's best documents, best first, ``(Q, DEPTH)``."""
    scores = torch.from_numpy(queries) @ torch.from_numpy(documents).T
    best: NDArray[np.int64] = scores.topk(DEPTH).indices.numpy()
    return best


def ndcg(ranked: NDArray[np.int64], relevant: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """nDCG@10 of each query ``(Q,)``; all relevant documents are equally so."""
    width = int(ranked.max()) + 1
    codes = [query * width + place for query, places in enumerate(relevant) for place in places if place < width]
    hit = np.isin(np.arange(len(ranked))[:, None] * width + ranked, codes)
    ideal = np.cumsum(DISCOUNTS)[[min(len(places), DEPTH) - 1 for places in relevant]]
    scores: NDArray[np.float32] = (hit @ DISCOUNTS / ideal).astype(np.float32)
    return scores


def ndcg_of(scores: NDArray[np.floating], relevant: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """nDCG@10 of each query ``(Q,)`` by its scores of all documents ``(Q, N)``; of equal ones, the first is ahead."""
    return ndcg(np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH], relevant)
