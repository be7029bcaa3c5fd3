"""The command of every stage: its arguments and help, then one summary line, or one error message and exit status 1."""

import argparse
import errno
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable

from batchwright.core.errors import InputError


def command(package: str, about: str, example: str, **arguments: str) -> None:
    """Parse the command line of a stage's package, then call ``main`` of its module ``stage``.

    ``arguments`` maps the names of positional arguments, which ``main`` takes, to their help. The stage is imported
    after parsing, so that help appears at once, and after libraries have been told to keep quiet.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}",
        description=about,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, description in arguments.items():
        parser.add_argument(name, help=description)
    given = vars(parser.parse_args())
    keep_quiet()
    run(package.rpartition(".")[2], lambda: importlib.import_module(f"{package}.stage").main(**given))


def keep_quiet() -> None:
    """Silence third-party warnings and progress bars; call it before those libraries are imported."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_TRAIN_ENABLE_PRINT_PATCH", "0")
    warnings.filterwarnings("ignore")
    logging.getLogger().setLevel(logging.ERROR)


def run(stage: str, main: Callable[[], str]) -> None:
    """Call ``main`` and print the summary it returns, or the reason why it failed."""
    try:
        summary = main()
    except InputError as error:
        _fail(stage, str(error))
    except OSError as error:
        _fail(stage, _explain(error))
    else:
        print(f"{stage}: {summary}")


def _fail(stage: str, message: str) -> None:
    print(f"{stage}: error: {message}", file=sys.stderr)
    sys.exit(1)


def _explain(error: OSError) -> str:
    # The text, not the number: NumPy says "N requested and M written", shutil lists many errors in one.
    signs = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), " requested and ")
    if any(sign in str(error) for sign in signs):
        return "the disk is full; free space or point BATCHWRIGHT_SCRATCH to another disk, then run the stage again"
    return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
