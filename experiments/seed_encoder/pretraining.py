"""Does a weak decoder make a better encoder (*Less is More*, section 5)? Pre-training compared after fine-tuning.

``python -m experiments.seed_encoder.pretraining DATA KEPT --domains ... [--seeds N] [--steps N] [--tuning N]
[--kinds KIND ...] [--rates RATE ...] [--labels SHARE ...] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes; ``KEPT`` keeps what was measured, so that an
interrupted run goes on where it was; name another folder for other data or code. Encoders are pre-trained on the texts
of ``--domains`` for the processor time of ``--steps`` steps of SEED (3, 2), then all are fine-tuned on the same random
batches for ``--tuning`` steps and asked the held-out queries: once for each share of the pairs (``--labels``), of which
the steps then read some more often. One seed chooses each kind's rate for each share; ``--seeds`` further ones compare
the chosen. ``gain`` is the mean difference in nDCG@10 from MLM at its chosen rate for as many labels, paired by query
and seed, ± its standard error; for what was not chosen, that of the one seed.
"""

import argparse
import tempfile
from collections.abc import Sequence
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

        def measure(all_tried: Sequence[Tried], seed: int) -> None:
            for setting, labels in all_tried:
                one = trials.measure(setting, seed, labels)
                measured.setdefault((setting, labels), {})[seed] = one
                print(f"{setting.kind}, {setting.rate:g}, {labels:g}, seed {seed}: {_mean(one):.4f}", flush=True)

        settings = [Setting(kind, rate) for kind, rate in product(arguments.kinds, arguments.rates)]
        measure(list(product(settings, arguments.labels)), _CHOOSING)
        chosen = [_best(measured, kind, labels) for kind, labels in product(arguments.kinds, arguments.labels)]
        for seed in range(1, arguments.seeds + 1):
            measure(chosen, seed)
    rows = [_row(tried, measured, chosen=tried in chosen) for tried in measured]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)


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
    parser.add_argument("--rates", nargs="+", type=float, default=[1e-3, 2e-3], metavar="RATE")
    parser.add_argument("--labels", nargs="+", type=float, default=[1.0], metavar="SHARE")
    arguments = parser.parse_args()
    if MLM not in arguments.kinds:
        parser.error(f"--kinds: all are compared with {MLM}; name it, too")
    return arguments


def _row(tried: Tried, measured: Results, *, chosen: bool) -> Row:
    setting, labels = tried
    reference = _best(measured, MLM, labels)
    ours, theirs = measured[tried], measured[reference]
    seeds = [seed for seed in ours if seed != _CHOOSING] if chosen else []
    own, other = ([each[seed] for seed in seeds or [_CHOOSING]] for each in (ours, theirs))
    gain, error, _ = difference(*(by_query([each.ndcg for each in side]) for side in (own, other)))
    row: Row = {
        "pre-training": setting.kind,
        "rate": setting.rate,
        "labels": labels,
        "chosen": chosen,
        "seeds": len(own),
        "steps": own[0].steps,
        **{key: round(mean(each.losses[key] for each in own), 4) if key in own[0].losses else "" for key in _LOSSES},
    }
    row |= {
        f"nDCG@10, {step}": round(mean(each.curve[step] for each in own), 4) for step in sorted(own[0].curve, key=int)
    }
    row["gain"] = "" if tried == reference else f"{gain:+.4f} ± {error:.4f}"
    return row


def _best(measured: Results, kind: str, labels: float) -> Tried:
    tried = [each for each in measured if each[0].kind == kind and each[1] == labels]
    return max(tried, key=lambda each: _mean(measured[each][_CHOOSING]))


def _mean(measured: Measured) -> float:
    return mean(measured.ndcg.values())


if __name__ == "__main__":
    main()
