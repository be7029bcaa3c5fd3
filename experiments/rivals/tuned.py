"""What the stage ``tune`` finds on each set, against the best of the arms that it chooses from.

``python -m experiments.rivals.tuned PAIRS --runs RUNS --output FILE`` searches as the stage does, within half of one
training's steps, on the queries that choose settings. Then it trains what was chosen with other seeds, and scores the
other queries. ``difference`` is that to the best arm in RUNS, a folder that ``python -m experiments.rivals`` wrote,
which was chosen on the very queries that are compared; ``untuned`` is the same of ``ours`` at the default settings.
Static models keep their temperature there, and begin at a quarter of their rate; transformers begin at both.
"""

import os
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from batchwright.core.command import run as run_command
from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from experiments.rivals.arms import ARMS
from experiments.rivals.compare import default_settings, result_of, scorer, texts_of
from experiments.rivals.encoders import Kind, build
from experiments.rivals.orders import steps
from experiments.rivals.runs import Row, Run, Runs
from experiments.rivals.sets import PairSet, pairs_parser, read_set
from experiments.rivals.summary import Group, gain, outcomes
from experiments.rivals.training import Settings, train
from stages.tune.search import MOST, Scores, Trial, search
from stages.tune.stage import FEWEST_STEPS

EPOCHS: dict[Kind, int] = {"static": 4, "transformer": 2, "minilm": 2}
SLOWER: dict[Kind, float] = {"static": 4}
"""By what the rate is divided where the search begins: that of static models was found on some of these very sets."""
SEEDS = 3
SHARE = 0.5
"""Of one training's steps."""
ARM_OF = {
    ("random", "batch"): "random",
    ("random", "domain"): "random, our loss",
    ("contextual", "batch"): "ours, InfoNCE",
    ("contextual", "domain"): "ours",
}
EXAMPLE = "python -m experiments.rivals.tuned pairs/medquad.parquet --runs static --output tuned.tsv"


def main() -> str:
    """Tune on all sets, and write one row for each."""
    parser = pairs_parser("experiments.rivals.tuned", str(__doc__), EXAMPLE, searches=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--kind", choices=EPOCHS, default="static")
    arguments = parser.parse_args()
    torch.set_num_threads(os.cpu_count() or 1)
    rows = []
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors, seen=arguments.seen)
        rows.append(tune(pairs, arguments.kind, Runs(arguments.runs)))
        print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
        write_tsv(arguments.output, rows)
    return f"{arguments.output}: {len(rows)} sets"


def tune(pairs: PairSet, kind: Kind, runs: Runs) -> Row:
    """Search on a set, train what was chosen, and compare it with the best arm among ``runs``."""
    count, every = steps(pairs.training, EPOCHS[kind]), round(MOST / SHARE)
    untuned = default_settings(pairs.training, kind)
    if count // every < FEWEST_STEPS:
        raise InputError(
            f"{pairs.name}: trials of {count // every} steps tell nothing; leave it out, as the stage does"
        )
    chosen = search(
        untuned.temperature,
        untuned.learning_rate / SLOWER.get(kind, 1),
        every,
        partial(try_settings, pairs, kind, count, every),
        keep_temperature=kind == "static",
    )
    trial = chosen.settings
    arm = ARM_OF[trial.batches, trial.negatives_stand_for]
    arms = outcomes(runs)[Group(pairs.name, kind, EPOCHS[kind])]
    best = max(set(arms) & set(ARM_OF.values()), key=lambda name: arms[name].scores.mean(dtype=np.float64))
    kept = Runs(runs.folder / "tuned")  # not among the runs that a summary reads
    scores = _test_scores(pairs, kept, kind, arm, Settings(trial.temperature, trial.learning_rate))
    return {
        **{"set": pairs.name, "kind": kind, "steps": count, "trials": len(chosen.tried)},
        **{"share": round(len(chosen.tried) / chosen.every, 2), "chosen": arm},
        **{"temperature": trial.temperature, "learning_rate": trial.learning_rate},
        **{"ndcg": round(float(scores.mean(dtype=np.float64)), 4)},
        **{"best": best, "difference": gain(scores, arms[best].scores)},
        "untuned": gain(_test_scores(pairs, kept, kind, "ours", untuned), arms[best].scores),
    }


def _test_scores(pairs: PairSet, kept: Runs, kind: Kind, arm: str, settings: Settings) -> NDArray[np.float16]:
    """Scores ``(SEEDS, Q)`` of the test queries."""
    tests = [Run(pairs.name, arm, kind, EPOCHS[kind], settings, seed) for seed in range(1, SEEDS + 1)]
    return np.stack([result_of(pairs, kept, run).scores for run in tests])


def trial_part(every: int) -> slice:
    """Which batches of a training a trial has, as the stage's."""
    return slice(every // 2, None, every)


def try_settings(pairs: PairSet, kind: Kind, count: int, every: int, trial: Trial) -> Scores:
    """Train a trial on every ``every``-th batch of a whole training with seed 0."""
    texts, arm = texts_of(pairs, kind), ARMS[ARM_OF[trial.batches, trial.negatives_stand_for]]
    batches = list(islice(arm.batches(pairs.training, EPOCHS[kind], 0), count))[trial_part(every)]
    settings = Settings(trial.temperature, trial.learning_rate)
    model, loss, score = build(kind, 0, texts.tokens), arm.loss(pairs.training), scorer(pairs, kind, dev=True)
    curve = train(model, kind, texts.pairs, batches, len(batches), loss, settings, score, points=1)
    return {str(query): float(value) for query, value in enumerate(curve.scores[-1])}


if __name__ == "__main__":
    run_command("tuned", main)
