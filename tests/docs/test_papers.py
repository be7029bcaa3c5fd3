"""``docs/papers.tsv``: every equation, table and figure of the papers says how it is made, or what is missing."""

import argparse
import runpy
import shlex
import sys
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from batchwright.core.files import read_tsv
from docs.schema import AllParams
from tests.helpers import REPO
from tests.profiles import composed, stages, written

ROWS = read_tsv(REPO / "docs/papers.tsv", made_by="hand")
MADE_BY = sorted({made for row in ROWS for made in row["made by"].split("`")[1::2]})


class ParsedError(Exception):
    """A command line was read, and would now be run."""


def test_each_part_is_made_or_says_what_is_missing() -> None:
    assert [row for row in ROWS if not (row["made by"] or row["missing"])] == []
    assert {row["paper"] for row in ROWS} == {"CDE", "SEED", "RetroMAE", "XTR"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning:runpy")
@pytest.mark.parametrize("made", [each for each in MADE_BY if each.startswith(("python -m", "batchwright "))])
def test_a_command_exists_and_takes_its_arguments(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, inside = argparse.ArgumentParser.parse_known_args, [False]

    def parse_only(self: argparse.ArgumentParser, *line: Any) -> tuple[argparse.Namespace, list[str]]:
        if inside[0]:  # the part of a line that belongs to a command of several
            return parse(self, *line)
        inside[0] = True
        assert parse(self, *line)[1] == []
        raise ParsedError

    module, *arguments = shlex.split(made.removeprefix("python -m ").replace("batchwright ", "project ", 1))
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", parse_only)
    with pytest.raises(ParsedError):
        runpy.run_module(module, run_name="__main__")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], set[str]]:
    """The stages of a profile."""
    return cache(lambda name: stages(tmp_path_factory.mktemp(name), written(name)))


@pytest.mark.parametrize("made", [each for each in MADE_BY if each.startswith("dvc ")])
def test_an_experiment_has_valid_parameters_and_stages(made: str, known: Callable[[str], set[str]]) -> None:
    words = shlex.split(made.removeprefix("dvc exp run ").removeprefix("--queue "))
    profile, *changes = [value for option, value in pairwise(words) if option == "-S"]
    name = profile.removeprefix("profiles=")
    for end in (0, -1):  # of the values that are queued
        AllParams.model_validate(composed(name, *(_one_value(change, end) for change in changes)))
    targets = {word for word in words if word not in {"-S", profile, *changes}}
    assert not targets or targets <= known(name)


def _one_value(change: str, place: int) -> str:
    """One of the values that a change queues."""
    key, equal, values = change.partition("=")
    return f"{key}={values.split(',')[place]}" if equal else change


@pytest.mark.parametrize("made", [each for each in MADE_BY if " " not in each])
def test_a_test_or_a_class_exists(made: str) -> None:
    file, _, test = made.partition("::")
    if test:
        assert f"\ndef {test}(" in (REPO / file).read_text(encoding="utf-8")
    else:
        module, _, name = made.rpartition(".")
        assert f"\nclass {name}" in (REPO / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")


def test_nothing_else_makes_a_part() -> None:
    known = ("python -m ", "batchwright ", "dvc exp run ")
    assert [made for made in MADE_BY if " " in made and not made.startswith(known)] == []
