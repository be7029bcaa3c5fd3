"""From how many pairs on do hard batches pay, and in batches of which size? Ours against random batches.

``DATA`` are Parquet files as ``experiments.rivals`` reads them. For each of ``--batches``, as many pairs as fill these
are drawn to train on; the held-out queries stay the same. The number of steps is the same, too, as far as whole epochs
allow. For each of ``--batch-sizes``, all pairs train for four epochs, in batches of so many pairs. Runs are kept in the
folder ``OUTPUT``; ``OUTPUT.tsv`` gets a row per set and number or size.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from experiments.rivals import BASELINE
from experiments.rivals.compare import compare
from experiments.rivals.orders import steps
from experiments.rivals.runs import Row, Runs
from experiments.rivals.sets import BATCH, PairSet, Training, pairs_parser, read_set
from experiments.rivals.summary import Group, gain, outcomes

SAME_LOSS, OURS = f"{BASELINE}, our loss", "ours"
STEPS, EPOCHS = 400, 4
EXAMPLE = "python -m experiments.rivals.sizes pairs/medquad.parquet --batches 25 50 --output sizes"


def main() -> str:
    """Run all sizes of all sets."""
    arguments = _parse()
    runs = Runs(arguments.output)
    rows: list[Row] = []
    for file in arguments.data:
        for pairs, epochs in _trainings(file, arguments):
            rows.append({"set": file.stem, **_compare(pairs, epochs, runs, arguments.seeds)})
            write_tsv(Path(f"{arguments.output}.tsv"), rows)
    return f"{len(list(runs))} runs, {arguments.output}.tsv"


def _trainings(file: Path, arguments: argparse.Namespace) -> Iterator[tuple[PairSet, int]]:
    """What to train on, and for how many epochs."""
    whole = read_set(file.stem, [file], arguments.vectors, seen=arguments.seen)
    for batches in arguments.batches:
        if batches * BATCH <= len(whole.training):
            yield sample(whole, batches), 2 * max(1, round(STEPS / batches / 2))  # half of them are hard
    for size in arguments.batch_sizes:
        yield read_set(file.stem, [file], arguments.vectors, batch=size, seen=arguments.seen), EPOCHS


def sample(pairs: PairSet, batches: int) -> PairSet:
    """The same set with so many batches of training pairs, drawn at random."""
    rows = np.sort(np.random.default_rng(0).permutation(len(pairs.training))[: batches * BATCH])
    whole = pairs.training
    training = Training(
        queries=[whole.queries[row] for row in rows],
        documents=[whole.documents[row] for row in rows],
        domains=whole.domains[rows],
        groups=whole.groups[rows],
        vectors=whole.vectors.take(rows),
    )
    return replace(pairs, name=f"{pairs.name}-{batches}", training=training)


def _compare(pairs: PairSet, epochs: int, runs: Runs, seeds: int) -> Row:
    for arm in (BASELINE, SAME_LOSS, OURS):
        compare(pairs, runs, arm, "static", epochs, seeds)
    scores_by_arm = {
        arm: outcome.scores for arm, outcome in outcomes(runs)[Group(pairs.name, "static", epochs)].items()
    }
    of_random = float(scores_by_arm[BASELINE].mean(dtype=np.float64))
    return {
        "batch": pairs.training.batch,
        "batches": steps(pairs.training, 1),
        "epochs": epochs,
        "random": round(of_random, 4),
        "over_random": gain(scores_by_arm[OURS], scores_by_arm[BASELINE]),
        "over_random_same_loss": gain(scores_by_arm[OURS], scores_by_arm[SAME_LOSS]),
    }


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals.sizes", str(__doc__), EXAMPLE, searches=True)
    parser.add_argument("--batches", type=int, nargs="+", default=[])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if not arguments.batches and not arguments.batch_sizes:
        parser.error("name --batches or --batch-sizes")
    return arguments


if __name__ == "__main__":
    run("sizes", main)
