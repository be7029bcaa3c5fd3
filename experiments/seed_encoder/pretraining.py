"""Does a weak decoder make a better encoder (*Less is More*, section 5)? Pre-training compared after fine-tuning.

``python -m experiments.seed_encoder.pretraining DATA KEPT --domains ... [--seeds N] [--steps N] [--tuning N]
[--kinds KIND ...] [--rate RATE] [--labels SHARE ...] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes; ``KEPT`` keeps what was measured, so that an
interrupted run goes on where it was; name another folder for other data or code. Encoders are pre-trained on the texts
of ``--domains`` for the processor time of ``--steps`` steps of SEED (3, 2), then all are fine-tuned on the same random
batches for ``--tuning`` steps and asked the held-out queries: once for each share of the pairs (``--labels``), of which
the steps then read some more often. One seed and the largest share choose each kind's learning rate: from ``--rate``
on, it is doubled or halved as long as that gains. ``--seeds`` further ones compare the chosen. ``gain`` is the mean
difference in nDCG@10 from MLM at its chosen rate for as many labels, paired by query and seed, ± its standard error;
for what was not chosen, that of the one seed.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean

from batchwright.core.files import write_tsv
from experiments.common.workspace import Row, training_parser
from experiments.seed_encoder.trials import COMPARED, KINDS, MLM, SEED, Measured, Setting, Trials
from stages.scoring.paired import by_query, difference

_LOSSES = ("mlm", "decoder", "h0_gap")
_CHOOSING = 0
"""The seed that chooses."""
Tried = tuple[Setting, float]
"""A setting, and the share of pairs in fine-tuning."""
Results = dict[Tried, dict[int, Measured]]
"""What was measured, by seed."""


def main() -> None:
    """Measure all settings; print and write one row for each."""
    arguments = _parse()
    measured: Results = {}
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(
            Path(folder), arguments.data, arguments.domains, arguments.kept,
            reference=SEED, steps=arguments.steps, tuning=arguments.tuning,
        )  # fmt: skip

        def measure(setting: Setting, labels: float, seed: int) -> float:
            by_seed = measured.setdefault((setting, labels), {})
            if seed not in by_seed:
                by_seed[seed] = trials.measure(setting, seed, labels)
                ndcg = _mean(by_seed[seed])
                print(f"{setting.kind}, {setting.rate:g}, {labels:g}, seed {seed}: {ndcg:.4f}", flush=True)
            return _mean(by_seed[seed])

        chosen: list[Tried] = []
        for kind in arguments.kinds:

            def score(rate: float, kind: str = kind) -> float:
                return measure(Setting(kind, rate), max(arguments.labels), _CHOOSING)

            best = Setting(kind, best_rate(score, arguments.rate))
            chosen += [(best, labels) for labels in arguments.labels]
        for seed, (setting, labels) in product(range(1, arguments.seeds + 1) or [_CHOOSING], chosen):
            measure(setting, labels, seed)
    rows = [_row(tried, measured, chosen) for tried in measured]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)


def best_rate(score: Callable[[float], float], first: float) -> float:
    """Double or halve a rate as long as that gains; what was asked before is asked again."""
    best = first
    for factor in (2, 0.5):
        while score(factor * best) > score(best):
            best *= factor
    return best


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.seed_encoder.pretraining",
        str(__doc__),
        "python -m experiments.seed_encoder.pretraining data kept --domains medquad nl2bash --seeds 5",
    )
    parser.add_argument("kept", type=Path)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--tuning", type=int, default=300)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(COMPARED), metavar="KIND")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--labels", nargs="+", type=float, default=[1.0], metavar="SHARE")
    arguments = parser.parse_args()
    if MLM not in arguments.kinds:
        parser.error(f"--kinds: all are compared with {MLM}; name it, too")
    return arguments


def _row(tried: Tried, measured: Results, chosen: Sequence[Tried]) -> Row:
    setting, labels = tried
    (reference,) = (each for each in chosen if each[0].kind == MLM and each[1] == labels)
    ours, theirs = measured[tried], measured[reference]
    seeds = [seed for seed in ours if seed != _CHOOSING] if tried in chosen else []
    own, other = ([each[seed] for seed in seeds or [_CHOOSING]] for each in (ours, theirs))
    gain, error, _ = difference(*(by_query([each.ndcg for each in side]) for side in (own, other)))
    row: Row = {
        "pre-training": setting.kind,
        "rate": setting.rate,
        "labels": labels,
        "chosen": tried in chosen,
        "seeds": len(own),
        "steps": own[0].steps,
        **{key: round(mean(each.losses[key] for each in own), 4) if key in own[0].losses else "" for key in _LOSSES},
    }
    row |= {
        f"nDCG@10, {step}": round(mean(each.curve[step] for each in own), 4) for step in sorted(own[0].curve, key=int)
    }
    row["gain"] = "" if tried == reference else f"{gain:+.4f} ± {error:.4f}"
    return row


def _mean(measured: Measured) -> float:
    return mean(measured.ndcg.values())


if __name__ == "__main__":
    main()
