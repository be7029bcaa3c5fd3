"""The frame of every command: arguments and help, then one summary line, or one error message and exit status 1."""

import argparse
import importlib
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from batchwright.core.atomic import remove_leftovers
from batchwright.core.errors import DISK_IS_FULL, InputError, disk_is_full
from batchwright.core.lock import alone
from batchwright.core.messages import safe, short
from batchwright.core.names import check_names
from batchwright.core.params import PARAMS_FILE
from batchwright.core.paths import DATA, REPORT, RESULTS


def command(module: str, about: str, example: str, **arguments: str) -> None:
    """Parse the command line, then call ``main`` of ``module``.

    ``arguments`` maps each positional argument, which is passed on to ``main``, to its help text. The module is
    imported after parsing, so that ``--help`` is instant, and after third-party output has been silenced.
    """
    parser = new_parser(module, about, example)
    for name, description in arguments.items():
        parser.add_argument(name, help=description)
    given = vars(parser.parse_args())
    keep_quiet()
    run(module.rpartition(".")[2], lambda: str(importlib.import_module(module).main(**given)))


def new_parser(program: str, about: str, example: str) -> argparse.ArgumentParser:
    """A parser for ``python -m PROGRAM`` whose help ends with an example."""
    return argparse.ArgumentParser(prog=f"python -m {program}", **described(about, example))


def described(about: str, *examples: str) -> dict[str, Any]:
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

    def staged() -> str:
        check_names(PARAMS_FILE)
        with alone(stage):
            for folder in (DATA, RESULTS, REPORT.parent):
                remove_leftovers(folder)
            return main()

    run(stage.partition(" ")[0], staged)


def run(program: str, main: Callable[[], str]) -> None:
    """Call ``main`` and print the summary it returns; if it fails, print the reason and exit with status 1."""
    with failing(program):
        summary = main()
    print(f"{program}: {safe(summary)}")


@contextmanager
def failing(program: str) -> Iterator[None]:
    """If the block fails, print the reason and exit with status 1; a bug keeps its traceback.

    If the process is interrupted or terminated meanwhile, the block is left, so that it cleans up, and the status is
    130 or 143.
    """
    terminated: list[int] = []

    def terminate(number: int, frame: object) -> None:  # noqa: ARG001
        terminated.append(number)
        raise KeyboardInterrupt  # Ray passes no other exception on from a signal

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt:
        _stop(program, *(("terminated", signal.SIGTERM) if terminated else ("interrupted", signal.SIGINT)))
    except InputError as error:
        _fail(program, str(error))
    except Exception as error:
        if disk_is_full(error):
            _fail(program, DISK_IS_FULL)
        if isinstance(error, OSError):
            _fail(program, _explain(error))
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(program: str, how: str, number: int) -> None:
    print(f"{program}: {how}; run it again to go on", file=sys.stderr)
    sys.exit(128 + number)


def _fail(stage: str, message: str) -> None:
    print(f"{stage}: error: {short(message, stage)}", file=sys.stderr)
    sys.exit(1)


def _explain(error: OSError) -> str:
    return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
