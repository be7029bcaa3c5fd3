"""How noisy the gradient of a batch is: random batches and hard ones of several shares, at the same weights.

``DATA`` are Parquet files as ``experiments.rivals`` reads them. A model trains on random batches with InfoNCE for half
of its epochs. Then nothing is trained any more. For each kind of batch and loss, the table has the mean cosine of a
batch's gradient with that of the whole domain at the same temperature: the mean over random batches of 2,048 pairs with
our loss.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from experiments.rivals.arms import ARMS, ours_arm
from experiments.rivals.encoders import RATES
from experiments.rivals.lessons import TEMPERATURES, half_trained
from experiments.rivals.runs import Row
from experiments.rivals.sets import Training, pairs_parser, read_set
from experiments.rivals.training import Batch, Loss

TOGETHER, LARGE_BATCHES = 16, 12
LOSSES = {"InfoNCE": "random", "our loss": "random, our loss"}
"""The arms that have them."""
EXAMPLE = "python -m experiments.rivals.noise pairs/medquad.parquet --output noise.tsv"
Gradient = Callable[[Batch, Loss, float], Tensor]


def main() -> str:
    """Measure all sets; the table is written anew after each."""
    arguments = _parse()
    rows: list[Row] = []
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors)
        model, texts = half_trained(pairs, arguments.kind)
        for row in _measure(pairs.training, _gradient(model.eval(), texts.pairs), arguments):
            rows.append({"set": file.stem, **row})
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
            write_tsv(arguments.output, rows)
    return f"{len(rows)} rows in {arguments.output}"


def _gradient(model: nn.Module, places: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Gradient:
    weights = list(model.parameters())

    def gradient(batch: Batch, loss: Loss, temperature: float) -> Tensor:
        queries, documents = (model(side[batch.rows]) for side in places)
        value = loss(queries, documents, batch, torch.tensor(temperature))
        parts = torch.autograd.grad(value, weights, allow_unused=True)  # a pooler's
        return torch.cat([part.flatten() for part in parts if part is not None])

    return gradient


def _measure(training: Training, gradient: Gradient, arguments: argparse.Namespace) -> Iterator[Row]:
    losses = {name: ARMS[arm].loss(training) for name, arm in LOSSES.items()}
    kinds = {"random": list(islice(ARMS["random"].batches(training, 1, 1), arguments.batches))}
    for share in arguments.shares:
        kinds[f"hard {share:g}"] = list(islice(ours_arm([share]).batches(training, 1, 0), arguments.batches))
    large = list(islice(_large(training), LARGE_BATCHES))
    for temperature in arguments.temperatures:
        whole = torch.stack([gradient(batch, losses["our loss"], temperature) for batch in large]).mean(0)
        row: Row = {"temperature": temperature}
        for (kind, batches), (name, loss) in product(kinds.items(), losses.items()):
            gradients = (gradient(batch, loss, temperature) for batch in batches)
            cosines = [float(torch.cosine_similarity(each, whole, 0)) for each in gradients]
            row[f"{kind}, {name}"] = round(float(np.mean(cosines)), 3)
        yield row


def _large(training: Training) -> Iterator[Batch]:
    """Random batches, ``TOGETHER`` at a time."""
    batches: Iterable[Batch] = ARMS["random"].batches(training, LARGE_BATCHES, 7)
    rows = iter([batch.rows for batch in batches])
    while len(some := list(islice(rows, TOGETHER))) == TOGETHER:
        yield Batch(rows=np.concatenate(some))


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals.noise", str(__doc__), EXAMPLE)
    parser.add_argument("--kind", choices=RATES, default="static")
    parser.add_argument("--temperatures", type=float, nargs="+", default=TEMPERATURES)
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.5, 0.25, 0.125])
    parser.add_argument("--batches", type=int, default=40)
    return parser.parse_args()


if __name__ == "__main__":
    run("noise", main)
