"""Does a weak decoder make a better encoder (*Less is More*, section 5)? Pre-training compared after fine-tuning.

``python -m experiments.seed_encoder.pretraining DATA KEPT --domains ... [--seeds N] [--steps N] [--tuning N]
[--rates R R] [--labels SHARE ...] [--grid] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes; ``KEPT`` keeps what was measured, so that an
interrupted run goes on where it was; name another folder for other data or code. Encoders are pre-trained on the texts
of ``--domains`` for the processor time of ``--steps`` steps of SEED (3, 2), then all are fine-tuned on the same random
batches for ``--tuning`` steps and asked the held-out queries: once for each share of the pairs (``--labels``), of which
the steps then read some more often. First MLM and SEED (3, 2) at each of ``--rates``; with
``--grid``, then the other decoders at SEED's better rate. ``gain`` is the mean difference in nDCG@10 from MLM at its
better rate for as many labels, paired by query and seed, ± its standard error.
"""

import argparse
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import mean

from batchwright.core.files import write_tsv
from experiments.common.workspace import Row, training_parser
from experiments.seed_encoder.trials import COMPARED, GRID, Measured, Setting, Trials
from stages.scoring.paired import by_query, difference

MLM, SEED = COMPARED
_LOSSES = ("mlm", "decoder", "h0_gap")
Results = dict[tuple[Setting, float], list[Measured]]
"""What was measured with each seed, by the share of pairs in fine-tuning."""


def main() -> None:
    """Measure all settings; print and write one row for each."""
    arguments = _parse()
    measured: Results = {}
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(
            Path(folder), arguments.data, arguments.domains, arguments.kept,
            reference=SEED, steps=arguments.steps, tuning=arguments.tuning,
        )  # fmt: skip

        def measure(settings: Sequence[Setting]) -> None:
            for seed in range(arguments.seeds):
                for setting, labels in product(settings, arguments.labels):
                    one = trials.measure(setting, seed, labels)
                    measured.setdefault((setting, labels), []).append(one)
                    print(f"{setting.kind}, {setting.rate:g}, {labels:g}, seed {seed}: {_mean(one):.4f}", flush=True)

        measure([Setting(kind, rate) for kind in COMPARED for rate in arguments.rates])
        if arguments.grid:
            rate = _better(measured, SEED, arguments.labels[-1]).rate
            measure([Setting(kind, rate) for kind in GRID])
    rows = [_row(*key, measured) for key in measured]
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
    parser.add_argument("--rates", nargs="+", type=float, default=[1e-3, 2e-3], metavar="RATE")
    parser.add_argument("--labels", nargs="+", type=float, default=[1.0], metavar="SHARE")
    parser.add_argument("--grid", action="store_true")
    return parser.parse_args()


def _row(setting: Setting, labels: float, measured: Results) -> Row:
    own = measured[setting, labels]
    reference = _better(measured, MLM, labels)
    ours, theirs = (by_query([each.ndcg for each in measured[key, labels]]) for key in (setting, reference))
    gain, error, _ = difference(ours, theirs)
    row: Row = {
        "pre-training": setting.kind,
        "rate": setting.rate,
        "labels": labels,
        "seeds": len(own),
        "steps": own[0].steps,
        **{key: round(mean(each.losses[key] for each in own), 4) if key in own[0].losses else "" for key in _LOSSES},
    }
    row |= {
        f"nDCG@10, {step}": round(mean(each.curve[step] for each in own), 4) for step in sorted(own[0].curve, key=int)
    }
    row["gain"] = "" if setting == reference else f"{gain:+.4f} ± {error:.4f}"
    return row


def _better(measured: Results, kind: str, labels: float) -> Setting:
    tried = [setting for setting, share in measured if setting.kind == kind and share == labels]
    return max(tried, key=lambda each: mean(map(_mean, measured[each, labels])))


def _mean(measured: Measured) -> float:
    return mean(measured.ndcg.values())


if __name__ == "__main__":
    main()
