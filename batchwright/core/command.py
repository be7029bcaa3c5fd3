"""The frame of every command: arguments and help, then one summary line, or one error message and exit status 1."""

import argparse
import ctypes
import importlib
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

from batchwright.core.atomic import remove_leftovers
from batchwright.core.errors import DISK_IS_FULL, InputError, disk_is_full
from batchwright.core.paths import DATA, REPORT, RESULTS
from batchwright.core.runtime import SCRATCH, scratch_root
from batchwright.core.terminal import safe, say, short

_DVC = "DVC_STAGE"
"""What DVC sets for the stages that it runs."""
_SIGNAL_OF_PARENTS_DEATH = 1
"""``PR_SET_PDEATHSIG``."""


class Command(NamedTuple):
    """An entry of a table of commands: the function gets the arguments by name, and returns what to print."""

    about: str
    examples: tuple[str, ...]
    function: Callable[..., str] | str
    """Or ``module:name``, which is imported when it is called: ``--help`` is instant, and needs no packages."""
    arguments: Mapping[str, Mapping[str, Any]] = {}
    """What ``add_argument`` gets, by name."""

    def __call__(self, *values: Any, **arguments: Any) -> str:
        """Call the function."""
        function: Any = self.function
        if isinstance(function, str):
            module, _, name = function.partition(":")
            function = getattr(importlib.import_module(module), name)
        return str(function(*values, **arguments))


def parse(
    program: str, about: str, commands: Mapping[str, Command], line: Sequence[str] | None = None, version: str = ""
) -> tuple[str, dict[str, Any]]:
    """Return the name of the command that ``line`` asks for, by default that of the process, and its arguments.

    If it asks for none, all are listed, and the process ends; so it does after ``--version``.
    """
    parser = argparse.ArgumentParser(
        prog=program, **_described(about, *(command.examples[0] for command in commands.values()))
    )
    if version:
        parser.add_argument("--version", action="version", version=version)
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in commands.items():
        subparser = parsers.add_parser(name, help=command.about, **_described(command.about, *command.examples))
        for argument, options in command.arguments.items():
            subparser.add_argument(argument, **options)
    known, unknown = parser.parse_known_args(line)
    values = vars(known)
    chosen: str | None = values.pop("command")
    if unknown:  # the help of the command, and not that of all, says what it takes
        parsers.choices.get(chosen or "", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if chosen is None:
        parser.print_help()
        parser.exit()
    return chosen, values


def command(module: str, about: str, example: str, **arguments: str) -> None:
    """Parse the command line of a script, then call ``main`` of ``module``.

    ``arguments`` maps each positional argument, which is passed on to ``main``, to its help text. The module is
    imported after parsing, so that ``--help`` is instant, and after third-party output has been silenced.
    """
    parser = new_parser(module, about, example)
    for name, description in arguments.items():
        parser.add_argument(name, help=description)
    values = vars(parser.parse_args())
    keep_quiet()
    run(module.rpartition(".")[2], lambda: str(importlib.import_module(module).main(**values)))


def new_parser(program: str, about: str, example: str) -> argparse.ArgumentParser:
    """A parser for ``python -m PROGRAM`` whose help ends with an example."""
    return argparse.ArgumentParser(prog=f"python -m {program}", **_described(about, example))


def _described(about: str, *examples: str) -> dict[str, Any]:
    """Return the arguments that make a parser say what its command does, and end its help with examples."""
    return {
        "description": about,
        "epilog": "\n  ".join(["example:" if len(examples) == 1 else "examples:", *examples]),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def keep_quiet() -> None:
    """Silence third-party warnings and progress bars; call it before importing those libraries."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # unset, it warns of processes that fork
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_TRAIN_ENABLE_PRINT_PATCH", "0")
    os.environ.setdefault("RAY_COLOR_PREFIX", "0")
    warnings.filterwarnings("ignore")
    logging.getLogger().setLevel(logging.ERROR)


def run_stage(stage: str, main: Callable[[], str]) -> None:
    """Run a stage, named with its arguments: one at a time, and without what killed ones left."""

    if _DVC in os.environ:
        end_with_parent()

    def staged() -> str:
        with alone(stage):
            for folder in (DATA, RESULTS, REPORT.parent):
                remove_leftovers(folder)
            return main()

    run(stage.partition(" ")[0], staged)


def end_with_parent() -> None:
    """Let this process be terminated when the one that started it ends, however that is; on Linux only.

    DVC, for one, passes no signal on to a stage.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENTS_DEATH, signal.SIGTERM)


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold the locks of ``name`` during the block; they end with the process, however that ends.

    One keeps apart those that write this project, the other those that share a scratch folder.

    Raises:
        InputError: another process holds one of them.
    """
    from filelock import FileLock, Timeout  # the library does without

    with ExitStack() as locks:
        for root in sorted({SCRATCH.resolve(), scratch_root().resolve()}):
            folder = root / "locks"
            folder.mkdir(parents=True, exist_ok=True)
            try:
                locks.enter_context(FileLock(folder / quote(name, safe=" "), blocking=False))
            except Timeout:
                raise InputError("another process is running this here; wait until it ends, or stop it") from None
        yield


def run(program: str, main: Callable[[], str]) -> None:
    """Call ``main`` and print the summary it returns; if it fails, print the reason and exit with status 1."""
    with failing(program):
        summary = main()
    say(f"{program}: {safe(summary)}")


@contextmanager
def failing(program: str) -> Iterator[None]:
    """If the block fails, print the reason and exit with status 1; a bug keeps its traceback.

    If the process is interrupted or terminated meanwhile, the block is left, so that it cleans up, and the status is
    130 or 143.
    """
    terminated: list[int] = []

    def terminate(number: int, frame: object) -> None:  # noqa: ARG001
        terminated.append(number)
        if len(terminated) == 1:  # another one, such as that of end_with_parent, must not stop the cleaning up
            raise KeyboardInterrupt  # Ray passes no other exception on from a signal

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt:
        how, number = ("terminated", signal.SIGTERM) if terminated else ("interrupted", signal.SIGINT)
        print(f"{program}: {how}; run it again to go on", file=sys.stderr)
        sys.exit(128 + number)
    except Exception as error:
        reason = _reason(error)
        if reason is None:
            raise
        print(f"{program}: error: {short(reason, program)}", file=sys.stderr)
        sys.exit(1)
    finally:
        signal.signal(signal.SIGTERM, before)


def _reason(error: Exception) -> str | None:
    """Return what tells the user why a command failed, or None if that is a bug."""
    if isinstance(error, InputError):
        return str(error)
    if disk_is_full(error):
        return DISK_IS_FULL
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    return None
