"""From how many pairs on do hard batches pay? Ours against random batches, on samples of each set.

``DATA`` are Parquet files as ``experiments.rivals`` reads them. For each number of batches, as many pairs as fill these
are drawn to train on; the held-out queries stay the same. The number of steps is the same, too, as far as whole epochs
allow. Runs are kept in the folder ``OUTPUT``; ``OUTPUT.tsv`` gets a row per set and number of batches.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from experiments.rivals import BASELINE
from experiments.rivals.compare import compare
from experiments.rivals.runs import Row, Runs
from experiments.rivals.sets import BATCH, PairSet, Training, pairs_parser, read_set
from experiments.rivals.summary import Group, gain, outcomes

SAME_LOSS, OURS = f"{BASELINE}, our loss", "ours"
STEPS, EXAMPLE = 400, "python -m experiments.rivals.sizes pairs/medquad.parquet --batches 25 50 --output sizes"


def main() -> str:
    """Run all sizes of all sets."""
    arguments = _parse()
    runs = Runs(arguments.output)
    rows: list[Row] = []
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors)
        for batches in arguments.batches:
            if batches * BATCH <= len(pairs.training):
                rows.append(_compare(sample(pairs, batches), batches, runs, arguments.seeds))
                write_tsv(Path(f"{arguments.output}.tsv"), rows)
    return f"{len(list(runs))} runs, {arguments.output}.tsv"


def sample(pairs: PairSet, batches: int) -> PairSet:
    """The same set with so many batches of training pairs, drawn at random."""
    rows = np.sort(np.random.default_rng(0).permutation(len(pairs.training))[: batches * BATCH])
    whole = pairs.training
    training = Training(
        queries=[whole.queries[row] for row in rows],
        documents=[whole.documents[row] for row in rows],
        domains=whole.domains[rows],
        vectors=whole.vectors.take(rows),
    )
    return replace(pairs, name=f"{pairs.name}-{batches}", training=training)


def _compare(pairs: PairSet, batches: int, runs: Runs, seeds: int) -> Row:
    epochs = 2 * max(1, round(STEPS / batches / 2))  # half of them are hard
    for arm in (BASELINE, SAME_LOSS, OURS):
        compare(pairs, runs, arm, "static", epochs, seeds)
    scores_by_arm = {
        arm: outcome.scores for arm, outcome in outcomes(runs)[Group(pairs.name, "static", epochs)].items()
    }
    of_random = float(scores_by_arm[BASELINE].mean(dtype=np.float64))
    return {
        "set": pairs.name.rpartition("-")[0],
        "batches": batches,
        "epochs": epochs,
        "random": round(of_random, 4),
        "over_random": gain(scores_by_arm[OURS], scores_by_arm[BASELINE]),
        "over_random_same_loss": gain(scores_by_arm[OURS], scores_by_arm[SAME_LOSS]),
    }


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals.sizes", str(__doc__), EXAMPLE)
    parser.add_argument("--batches", type=int, nargs="+", default=[12, 25, 50, 100])
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    run("sizes", main)
