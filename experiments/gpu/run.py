"""Trains and evaluates arms on a GPU: ``python -m experiments.gpu.run FOLDER OUTPUT.tsv --minutes N [--arms ...]``.

FOLDER is what ``experiments.gpu.carry`` wrote. By default the arms are those of table 1 of CDE's paper; ``mlm``,
``seed`` and ``retromae`` begin at what ``experiments.gpu.pretraining`` wrote into ``--starts``; ``xtr`` and ``colbert``
score by tokens. The arms take turns, so that they have always seen as many pairs. How many pairs fit is measured first;
the rates warm up and decay over these. ``--summary OUTPUT.npz`` compares arms.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from batchwright.core.command import new_parser, run
from batchwright.core.errors import InputError
from experiments.gpu.arms import ARMS, SCRATCH, TABLE_1
from experiments.gpu.evaluate import Evaluator
from experiments.gpu.folder import TOKENIZER, Carried
from experiments.gpu.machine import SPARE, Clock, name_card
from experiments.gpu.results import Results, summarise
from experiments.gpu.training import SMALL, Arm, Settings, Shape, Tokens, write_start
from trainers.common.job import training_device
from trainers.common.params import Common

EXAMPLE = "python -m experiments.gpu.run --minutes 7 table1 table1.tsv"
WARM, TIMED = 4, 8
"""Steps that come first, and those that are timed."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds: of a step of each arm, and of an evaluation of each variant with one reading."""

    steps: Mapping[str, float]
    evaluations: Mapping[str, float]

    def turn(self, steps: int) -> float:
        """Seconds of a turn of all arms, of so many steps each."""
        return steps * sum(self.steps.values())

    def evaluate(self, *, last: bool) -> float:
        """Seconds of an evaluation of all arms; the ``last`` one has all readings."""
        return sum(self.evaluations[ARMS[name].variant] * len(ARMS[name].readings(last=last)) for name in self.steps)


def main() -> str:
    """Train, evaluate and compare."""
    arguments = _parse()
    if arguments.summary:
        return "\n".join(summarise(arguments.summary))
    clock, card = Clock(60 * arguments.minutes), name_card(small=arguments.small)
    carried = Carried.read(arguments.folder)
    shape = SMALL if arguments.small else Shape()
    clock.say(f"{len(carried.texts):,} texts, {len(carried.queries):,} pairs, {len(carried.tests)} tests")
    tokens = Tokens(arguments.folder / TOKENIZER, carried.texts, shape.length)
    clock.say(f"tokens: {tokens.counts.float().mean():.1f} a text")
    results = Results(file=arguments.output, tests=carried.tests, card=card)
    with tempfile.TemporaryDirectory() as folder:
        scratch = write_start(Path(folder) / "start", arguments.folder / TOKENIZER, shape)
        arms = {
            each.name: Arm(each, carried, tokens, _start(each.recipe.start, scratch, arguments.starts))
            for each in _settings(arguments)
        }
        evaluator = Evaluator(carried=carried, tokens=tokens.to(training_device()))
        clock.say(f"{len(arms)} models are ready")
        train(arms, evaluator, results, clock, arguments)
    lines = list(summarise(arguments.output.with_suffix(".npz")))
    return "\n".join([*lines, f"{arguments.output}: {len(results.rows)} rows"])


def _parse() -> argparse.Namespace:
    parser = new_parser("experiments.gpu.run", str(__doc__), EXAMPLE)
    parser.add_argument("folder", type=Path, metavar="FOLDER", nargs="?")
    parser.add_argument("output", type=Path, metavar="OUTPUT", nargs="?")
    parser.add_argument("--minutes", type=float, default=7, help="all must end within so many")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(TABLE_1))
    parser.add_argument("--starts", type=Path, metavar="FOLDER", help="of pre-trained models")
    parser.add_argument("--pairs", type=int, default=800_000, help="pairs that an arm sees; fewer if time is short")
    parser.add_argument(
        "--temperatures", nargs="+", default=[], metavar="ARM=T", help="an arm's temperature; all others have .05"
    )
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--gate-rate", type=float, default=1e-2, help="the learning rate of CDE's new parameters")
    parser.add_argument("--warmup", type=float, default=0.1, help="share of the steps in which the rate rises")
    parser.add_argument("--context", type=int, default=256, help="documents that CDE reads")
    parser.add_argument("--cde", nargs="+", default=[], metavar="NAME=VALUE", help="further parameters of CDE")
    parser.add_argument("--xtr", nargs="+", default=[], metavar="NAME=VALUE", help="further parameters of XTR")
    parser.add_argument(
        "--random-first", type=float, default=0.0, help="share of random batches before contextual ones"
    )
    parser.add_argument("--turns", type=int, default=8, help="of each arm")
    parser.add_argument("--evaluations", type=int, default=2, help="how often all arms are asked, the end included")
    parser.add_argument("--small", action="store_true", help="tiny models, which train on a CPU")
    parser.add_argument("--summary", type=Path, metavar="OUTPUT.npz", help="compare the arms of a run")
    arguments = parser.parse_args()
    if not arguments.summary and not arguments.output:
        parser.error("name FOLDER and OUTPUT, or --summary")
    return arguments


def _start(name: str, scratch: Path, starts: Path | None) -> Path:
    if name == SCRATCH:
        return scratch
    if not starts or not (starts / name).is_dir():
        raise InputError(f"--starts {starts or ''}: no model '{name}' there; run experiments.gpu.pretraining first")
    return starts / name


def _settings(arguments: argparse.Namespace) -> Iterator[Settings]:
    temperatures = {name: float(value) for name, value in _named(arguments.temperatures)}
    if unknown := sorted(temperatures.keys() - ARMS.keys()):
        raise InputError(f"--temperatures {unknown[0]}: no such arm; the arms are {', '.join(ARMS)}")
    common = Common(
        learning_rate=arguments.learning_rate,
        new_learning_rate=arguments.gate_rate,
        warmup_ratio=arguments.warmup,
        precision="bfloat16",
        dropout=0,
    )
    own = {
        "cde": {"context_documents": 4 if arguments.small else arguments.context, **dict(_named(arguments.cde))},
        "xtr": {"width": 16 if arguments.small else 128, **dict(_named(arguments.xtr))},
    }
    for name in arguments.arms:
        recipe = ARMS[name]
        options: dict[str, Any] = {"temperature": temperatures.get(name, 0.05), **own.get(recipe.variant, {})}
        yield Settings(
            name=name,
            recipe=recipe,
            common=common,
            options=options,
            random_first=arguments.random_first if recipe.policy == "contextual" else 0.0,
        )


def _named(values: list[str]) -> Iterator[tuple[str, str]]:
    for each in values:
        name, equal, value = each.partition("=")
        if not equal:
            raise InputError(f"'{each}': write NAME=VALUE")
        yield name, value


def train(
    arms: Mapping[str, Arm], evaluator: Evaluator, results: Results, clock: Clock, arguments: argparse.Namespace
) -> None:
    """Measure, plan, then train and evaluate turn by turn; the last evaluation is that of all readings."""
    costs = _measure(arms, evaluator, results, clock)
    turns, size = arguments.turns, evaluator.carried.batch_size
    most = min(arguments.pairs // size, *(len(order.rows) for order in evaluator.carried.orders.values()))
    asked = [turn for turn in range(1, turns) if not turn % max(1, turns // arguments.evaluations)]
    evaluating = len(asked) * costs.evaluate(last=False) + costs.evaluate(last=True)
    fit = int(((1 - SPARE) * clock.left - evaluating) / costs.turn(1))
    steps = min(most, fit) // turns
    if steps < 1:
        raise InputError(f"{arguments.minutes:g} minutes are too short: {clock.left:.0f} s are left; raise --minutes")
    if fit < most:
        clock.say(f"{most * size:,} pairs an arm would not fit in the time")
    clock.say(f"{steps * turns * size:,} pairs an arm, {turns} turns; {evaluating:.0f} s to evaluate")
    for arm in arms.values():
        arm.plan(steps * turns)
    for turn in range(1, turns + 1):
        for name, arm in arms.items():
            outcomes, seconds = arm.train(range((turn - 1) * steps, turn * steps))
            results.trained(name, turn * steps * size, outcomes, seconds, size)
        left, needed = clock.left, costs.evaluate(last=True)
        cut = turn < turns and left < needed + 1.05 * costs.turn(steps)
        if cut:
            clock.say(f"{left:.0f} s are left: the rates have not fallen to 0, but all arms have seen as many pairs")
        last = cut or turn == turns
        if last or (turn in asked and left > costs.evaluate(last=False) + needed + costs.turn(steps)):
            _evaluate(arms, evaluator, results, clock, turn * steps * size, last=last)
        if last:
            return


def _evaluate(
    arms: Mapping[str, Arm], evaluator: Evaluator, results: Results, clock: Clock, pairs: int, *, last: bool
) -> None:
    """Ask all arms; first with the reading that matters most, for the case that time runs out."""
    asked = [(place, name, each) for name in arms for place, each in enumerate(ARMS[name].readings(last=last))]
    for _, name, reading in sorted(asked, key=itemgetter(0)):
        if clock.left < 0:
            clock.say(f"no time for {name}, {reading}")
            continue
        began = time.perf_counter()
        scores = evaluator.scores(arms[name], reading)
        results.add(name, pairs, reading, scores, time.perf_counter() - began)


def _measure(arms: Mapping[str, Arm], evaluator: Evaluator, results: Results, clock: Clock) -> Costs:
    """Time steps of each arm, and evaluations of untrained models, which are results, too."""
    steps: dict[str, float] = {}
    evaluations: dict[str, float] = {}
    batches = min(len(order.rows) for order in evaluator.carried.orders.values())
    places = [number * batches // (WARM + TIMED) for number in range(WARM + TIMED)]
    for name, arm in arms.items():
        steps[name] = arm.time_steps(places, WARM)
        clock.say(
            f"{name}: {1000 * steps[name]:.1f} ms a step, {evaluator.carried.batch_size / steps[name]:,.0f} pairs/s"
        )
        variant = ARMS[name].variant
        if variant not in evaluations:
            began = time.perf_counter()
            (reading,) = ARMS[name].readings(last=False)
            scores = evaluator.scores(arm, reading)
            evaluations[variant] = time.perf_counter() - began
            results.add(name, 0, reading, scores, evaluations[variant])
    return Costs(steps=steps, evaluations=evaluations)


if __name__ == "__main__":
    run("run", main)
