"""What a random batch teaches by temperature and loss: how much, and about how many documents.

``DATA`` are Parquet files as ``experiments.rivals`` reads them, each of one domain. A static model trains on random
batches with InfoNCE for half of its epochs. Then nothing is trained any more. ``lesson`` is the mean of what a batch's
softmax gives to documents other than the query's own, which is the size of its gradient in the scores. ``documents`` is
the number of documents that it is about, whichever the loss: e to the mean entropy of their shares.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from batchwright.formats.shards.batch import stands_for
from experiments.rivals.arms import ARMS, StandFor, document_counts
from experiments.rivals.compare import Texts, texts_of
from experiments.rivals.encoders import RATES, Kind, build
from experiments.rivals.masks import known
from experiments.rivals.runs import Row
from experiments.rivals.sets import PairSet, Training, pairs_parser, read_set
from experiments.rivals.training import Settings, train

TEMPERATURE, EPOCHS, BATCHES = 0.07, 2, 20
TEMPERATURES = (0.035, 0.05, 0.07, 0.1, 0.14)
LOSSES: dict[str, StandFor] = {"InfoNCE": "batch", "our loss": "domain"}
EXAMPLE = "python -m experiments.rivals.lessons pairs/medquad.parquet --output lessons.tsv"
Rows = NDArray[np.int64]


def main() -> str:
    """Measure all sets; the table is written anew after each."""
    arguments = pairs_parser("experiments.rivals.lessons", str(__doc__), EXAMPLE).parse_args()
    rows: list[Row] = []
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors)
        model, texts = half_trained(pairs)
        scored = list(islice(_scores(model, texts.pairs, pairs.training), BATCHES))
        for temperature in TEMPERATURES:
            of_loss = {
                name: np.mean([lesson(*batch, temperature, stand_for) for batch in scored], axis=0)
                for name, stand_for in LOSSES.items()
            }
            documents = round(float(np.exp(of_loss["InfoNCE"][1])), 1)  # the same for both
            lessons = {name: round(float(measured[0]), 3) for name, measured in of_loss.items()}
            rows.append({"set": file.stem, "temperature": temperature, "documents": documents, **lessons})
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
        write_tsv(arguments.output, rows)
    return f"{len(rows)} rows in {arguments.output}"


def half_trained(pairs: PairSet, kind: Kind = "static") -> tuple[nn.Module, Texts]:
    """A model after half of a training on random batches with InfoNCE, and the texts that it reads."""
    texts, own = texts_of(pairs, kind), pairs.training
    model, settings = build(kind, 0, texts.tokens), Settings(TEMPERATURE, RATES[kind])
    batches, loss = list(ARMS["random"].batches(own, EPOCHS, 0)), ARMS["random"].loss(own)
    train(model, kind, texts.pairs, batches, len(batches), loss, settings, lambda _: np.zeros(1, np.float32))
    return model, texts


def lesson(scores: Tensor, counts: Tensor, temperature: float, stand_for: StandFor) -> tuple[float, float]:
    """Return the lesson of a batch, and the mean entropy, in nats, of the documents that it is about.

    Args:
        scores: ``(B, B)``, cosines of queries and documents; -inf where a document is masked.
        counts: ``(B, B)``, how many documents each stands for.
    """
    logits = scores / temperature + (counts.log() if stand_for == "domain" else 0)
    softmax = logits.softmax(dim=1)
    others = softmax.masked_fill(torch.eye(len(scores), dtype=torch.bool), 0)
    shares = others / others.sum(dim=1, keepdim=True)
    return float(others.sum(dim=1).mean()), float(torch.special.entr(shares).sum(dim=1).mean())


@torch.no_grad()
def _scores(model: nn.Module, places: tuple[Rows, Rows], training: Training) -> Iterator[tuple[Tensor, Tensor]]:
    """The arguments of ``lesson`` for random batches that the model was not trained on in this order."""
    mask, sizes = known(training), document_counts(training)
    for batch in ARMS["random"].batches(training, 1, 1):
        queries, documents = (model(side[batch.rows]) for side in places)
        masked = torch.from_numpy(mask(batch.rows))
        counts = stands_for(np.arange(len(masked)), sizes[str(training.domains[batch.rows[0]])])
        yield (queries @ documents.T).masked_fill(masked, -torch.inf), torch.from_numpy(counts)


if __name__ == "__main__":
    run("lessons", main)
