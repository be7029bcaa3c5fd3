"""Does the best rate of a training fall with its steps, as the stage ``tune`` takes it to?

``python -m experiments.rivals.trials PAIRS --kind KIND --every N N --output FILE`` trains on every ``N``-th batch of a
training, with ours at the temperature where all arms begin, at ``FACTORS`` times the rate where they begin. The table
has dev nDCG@10 by factor, and the best ``rate``.
"""

import os

import torch

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from experiments.rivals.orders import steps
from experiments.rivals.runs import Row
from experiments.rivals.sets import pairs_parser, read_set
from experiments.rivals.tuned import EPOCHS, trial_part, try_settings
from experiments.rivals.tuning import first_settings
from stages.tune.search import CONTEXTUAL, Trial, Tried

FACTORS = (0.25, 0.5, 1, 2, 4, 8, 16, 32)
EXAMPLE = "python -m experiments.rivals.trials pairs/medquad.parquet --every 18 6 1 --output trials.tsv"


def main() -> str:
    """Try all rates on all sets; the table is written anew after each length."""
    parser = pairs_parser("experiments.rivals.trials", str(__doc__), EXAMPLE)
    parser.add_argument("--kind", choices=EPOCHS, default="static")
    parser.add_argument("--every", type=int, nargs="+", required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(os.cpu_count() or 1)
    kind, rows = arguments.kind, list[Row]()
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors)
        count, first = steps(pairs.training, EPOCHS[kind]), first_settings(kind)
        trials = [Trial(CONTEXTUAL, "domain", first.temperature, first.learning_rate * factor) for factor in FACTORS]
        for every in arguments.every:
            tried = [Tried(trial, try_settings(pairs, kind, count, every, trial)) for trial in trials]
            best = max(tried, key=lambda one: one.ndcg).trial
            row: Row = {"set": file.stem, "kind": kind, "steps": len(range(count)[trial_part(every)])}
            row |= {f"{factor:g}": round(one.ndcg, 3) for factor, one in zip(FACTORS, tried, strict=True)}
            rows.append({**row, "rate": round(best.learning_rate, 6)})
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
            write_tsv(arguments.output, rows)
    return f"{len(rows)} rows in {arguments.output}"


if __name__ == "__main__":
    run("trials", main)
