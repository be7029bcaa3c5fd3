"""Does a weak decoder make a better encoder (*Less is More*, section 5)? Pre-training compared after fine-tuning.

``python -m experiments.seed_encoder.pretraining DATA KEPT --domains ... [--seeds N] [--steps N] [--tuning N]
[--kinds KIND ...] [--rate RATE] [--labels SHARE ...] [--equal steps] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes; ``KEPT`` keeps what was measured, so that an
interrupted run goes on where it was; name another folder for other data or code. Encoders are pre-trained on the texts
of ``--domains`` for the processor time of ``--steps`` steps of SEED (3, 2), or for as many steps (``--equal``), then
all are fine-tuned on the same random batches for ``--tuning`` steps and asked the held-out queries: once for each share
of the pairs (``--labels``), of which the steps then read some more often. One seed and the largest share choose each
kind's learning rate: from ``--rate`` on, it is doubled or halved as long as that gains (``FILE-rates.tsv``).
``--seeds`` further ones compare the chosen, or the same one if that is 0. ``gain`` is the mean difference in nDCG@10
from MLM at its chosen rate for as many labels, paired by query and seed, ± its standard error.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import get_args

from batchwright.core.files import write_tsv
from experiments.common.workspace import Row, training_parser
from experiments.rivals.tuning import Place, climb
from experiments.seed_encoder.trials import COMPARED, KINDS, MLM, SEED, Equal, Measured, Setting, Trials
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
            reference=SEED, steps=arguments.steps, tuning=arguments.tuning, equal=arguments.equal,
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

            def setting_at(place: Place, kind: str = kind) -> Setting:
                return Setting(kind, arguments.rate * 2.0 ** place[0])

            best = climb(lambda place: measure(setting_at(place), max(arguments.labels), _CHOOSING), (0,), 0)
            chosen += [(setting_at(best), labels) for labels in arguments.labels]
        for seed, (setting, labels) in product(_compared(arguments.seeds), chosen):
            measure(setting, labels, seed)
    rows = [_row(each, measured, _of_mlm(chosen, each), arguments.seeds) for each in chosen]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)
        write_tsv(arguments.output.with_stem(f"{arguments.output.stem}-rates"), list(_rates(measured)))


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
    parser.add_argument("--equal", choices=get_args(Equal), default="time")
    parser.add_argument("--labels", nargs="+", type=float, default=[1.0], metavar="SHARE")
    arguments = parser.parse_args()
    if MLM not in arguments.kinds:
        parser.error(f"--kinds: all are compared with {MLM}; name it, too")
    return arguments


def _of_mlm(chosen: Sequence[Tried], tried: Tried) -> Tried:
    """What MLM was chosen to be, for as many labels."""
    return next(each for each in chosen if each[0].kind == MLM and each[1] == tried[1])


def _row(tried: Tried, measured: Results, reference: Tried, seeds: int) -> Row:
    setting, labels = tried
    own, other = ([measured[each][seed] for seed in _compared(seeds)] for each in (tried, reference))
    gain, error, _ = difference(*(by_query([each.ndcg for each in side]) for side in (own, other)))
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
    row["gain"] = "" if tried == reference else f"{gain:+.4f} ± {error:.4f}"
    return row


def _rates(measured: Results) -> Iterator[Row]:
    """What the choosing seed measured."""
    for (setting, labels), by_seed in measured.items():
        if _CHOOSING in by_seed:
            yield {
                "pre-training": setting.kind,
                "rate": setting.rate,
                "labels": labels,
                "nDCG@10": round(_mean(by_seed[_CHOOSING]), 4),
            }


def _compared(seeds: int) -> Sequence[int]:
    return range(1, seeds + 1) if seeds else [_CHOOSING]


def _mean(measured: Measured) -> float:
    return mean(measured.ndcg.values())


if __name__ == "__main__":
    main()
