"""How noisy the gradient of a batch is: random batches and hard ones of several shares, at the same weights.

``DATA`` are Parquet files as ``experiments.rivals`` reads them. A two-layer BERT trains on random batches for the first
of two epochs. Then nothing is trained any more: for each kind of batch, the gradient is taken on ``BATCHES`` batches.
``cosine`` is the mean cosine of a batch's gradient and that of the whole domain, the mean over random batches of 2,048
pairs with our loss. ``noise`` is the root of the mean squared distance from the mean gradient, divided by that of
random batches with our loss.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from experiments.rivals.arms import ARMS, ours_arm
from experiments.rivals.compare import texts_of
from experiments.rivals.encoders import RATES, Kind, build
from experiments.rivals.runs import Row
from experiments.rivals.sets import Training, pairs_parser, read_set
from experiments.rivals.training import Batch, Loss, Settings, train

KIND: Kind = "transformer"
SETTINGS = Settings(0.05, RATES[KIND])
TOGETHER, LARGE_BATCHES = 16, 12
EXAMPLE = "python -m experiments.rivals.noise pairs/medquad.parquet --output noise.tsv"
Gradient = Callable[[Batch, Loss], Tensor]


def main() -> str:
    """Measure all sets; the table is written anew after each."""
    arguments = _parse()
    rows: list[Row] = []
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors, surrogate="minilm")
        texts = texts_of(pairs, KIND)
        model = build(KIND, 0, texts.tokens)
        own = pairs.training
        first, loss = list(ARMS["random"].batches(own, 1, 0)), ARMS["random"].loss(own)
        train(model, KIND, texts.pairs, first, len(first), loss, SETTINGS, lambda _: np.zeros(1, np.float32))
        for row in _measure(own, _gradient(model.eval(), texts.pairs), arguments):
            rows.append({"set": file.stem, **row})
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
            write_tsv(arguments.output, rows)
    return f"{len(rows)} kinds of batches in {arguments.output}"


def _gradient(model: nn.Module, places: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Gradient:
    weights = [each for each in model.parameters() if each.requires_grad]

    def gradient(batch: Batch, loss: Loss) -> Tensor:
        queries, documents = (model(side[batch.rows]) for side in places)
        value = loss(queries, documents, batch, torch.tensor(SETTINGS.temperature))
        parts = torch.autograd.grad(value, weights, allow_unused=True)
        return torch.cat([each.flatten() for each in parts if each is not None])

    return gradient


def _measure(training: Training, gradient: Gradient, arguments: argparse.Namespace) -> Iterator[Row]:
    domain, batch = (ARMS[name].loss(training) for name in ("random, our loss", "random"))
    whole = torch.stack([gradient(each, domain) for each in islice(_large(training), LARGE_BATCHES)]).mean(0)
    random = list(islice(ARMS["random"].batches(training, 1, 1), arguments.batches))
    kinds = {"random": random}
    for share in arguments.shares:
        kinds[f"hard, {share:g}"] = list(islice(ours_arm([share]).batches(training, 1, 0), arguments.batches))
    base = None
    for name, batches in kinds.items():
        for stand_for, loss in (("domain", domain), ("batch", batch)):
            gradients = torch.stack([gradient(each, loss) for each in batches])
            spread = float((gradients - gradients.mean(0)).norm(dim=1).square().mean().sqrt())
            base = base or spread
            cosine = float(torch.cosine_similarity(gradients, whole[None]).mean())
            yield {
                "batches": name,
                "stand_for": stand_for,
                "cosine": round(cosine, 3),
                "noise": round(spread / base, 2),
            }


def _large(training: Training) -> Iterator[Batch]:
    """Random batches, ``TOGETHER`` at a time."""
    batches: Iterable[Batch] = ARMS["random"].batches(training, LARGE_BATCHES, 7)
    rows = iter([batch.rows for batch in batches])
    while len(some := list(islice(rows, TOGETHER))) == TOGETHER:
        yield Batch(rows=np.concatenate(some))


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals.noise", str(__doc__), EXAMPLE)
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.5, 0.25, 0.125])
    parser.add_argument("--batches", type=int, default=40)
    return parser.parse_args()


if __name__ == "__main__":
    run("noise", main)
