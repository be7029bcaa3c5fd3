"""The command ``batchwright``, or ``python -m batchwright``."""

import argparse
import os
import sys
from collections.abc import Sequence

from batchwright.commands import add, diff, export, init, promote, push, retrain, rollback, show, stage, upgrade, verify
from batchwright.core.command import described, failing

COMMANDS = {
    "init": init,
    "add": add,
    "show": show,
    "diff": diff,
    "export": export,
    "push": push,
    "verify": verify,
    "retrain": retrain,
    "promote": promote,
    "rollback": rollback,
    "stage": stage,
    "upgrade": upgrade,
}
"""A command is a module with ``ABOUT``, ``EXAMPLES``, ``add_arguments`` and ``main``, which returns what to print."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that ``arguments`` name, by default those of the command line."""
    about = "Makes training batches that are hard and honest, looks into them, and hands them on."
    parser = argparse.ArgumentParser(
        prog="batchwright", **described(about, *(each.EXAMPLES[0] for each in COMMANDS.values()))
    )
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        own = parsers.add_parser(name, help=command.ABOUT, **described(command.ABOUT, *command.EXAMPLES))
        command.add_arguments(own)
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return
    with failing(f"batchwright {given.command}"):
        _print(COMMANDS[given.command].main(given))


def _print(text: str) -> None:
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader, such as head, has seen enough; Python would complain when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
