"""A small part of the harness; ``make faults`` runs the whole."""

import os
import random
from pathlib import Path

import pytest
import yaml

from batchwright.core.errors import InputError
from tests.faults import disks, fuzz, kills, mounts, stage_kills
from tests.faults.mends import MUTANTS
from tests.faults.seeds import beir_folder, seeds
from tests.faults.victim import STAGES
from tests.helpers import REPO


def test_every_seed_is_read(tmp_path: Path) -> None:
    for name, file, read in seeds(tmp_path):
        read(file)
        assert file.stat().st_size, name


def test_spoiled_inputs_end_in_no_traceback_crash_or_hang() -> None:
    counts = fuzz.main(seconds=8, seed=random.Random(os.urandom(8)).randrange(2**40))
    assert counts["inputs"] >= fuzz.BATCH
    assert set(counts) == {"inputs"}, counts


def test_damaged_metadata_of_given_vectors_end_no_process() -> None:
    """Some of these inputs say too much or too little of a column's sizes, which PyArrow's own look at them forbids."""
    assert fuzz.batch("vectors 0", 9_000_000) == {"inputs": fuzz.BATCH}


def test_the_fuzzer_would_see_a_reader_that_fails() -> None:
    """A traceback and a crash, both in the middle of a batch."""

    def fail(file: Path) -> object:
        raise KeyError(file.name)

    def crash(file: Path) -> object:
        os.kill(os.getpid(), 9)

    for read, fault in ((fail, "traceback"), (crash, "crash")):
        made = lambda folder, read=read: [(name, file, read) for name, file, _ in seeds(folder)]  # noqa: E731
        assert fuzz.batch("jsonl", 0, made)[fault]


def test_keys_and_ids_that_are_there_twice_are_refused(tmp_path: Path) -> None:
    read = {name: (file, read) for name, file, read in seeds(tmp_path)}
    file, params = read["params.yaml"]
    file.write_text("base:\n  seed: 1\n  seed: 2\n")
    with pytest.raises(InputError, match="key 'seed' is there twice"):
        params(file)
    file, _ = read["beir corpus.jsonl"]
    file.write_text(file.read_text() + '{"_id": "3", "text": "again"}\n')
    with pytest.raises(InputError, match=r"corpus.jsonl, line 11: the id '3' is there twice"):
        beir_folder(file)


def test_the_harness_knows_every_stage() -> None:
    known = yaml.safe_load((REPO / "dvc.yaml").read_text())["stages"].keys()
    assert {stage.partition(" ")[0] for stage in STAGES} == known


def test_each_mend_can_be_undone() -> None:
    """The code that a mutant changes is there once, and so is the test that finds it."""
    for mutant in MUTANTS:
        assert (REPO / mutant.file).read_text().count(mutant.before) == 1, mutant.fault
        file, _, name = mutant.test.partition("::")
        assert f"def {name}" in (REPO / "tests" / file).read_text(), mutant.fault


@pytest.mark.slow
def test_kills_at_random_moments_change_no_byte_and_leave_nothing() -> None:
    counts = kills.main(6)
    assert counts.pop("all killed") + counts.pop("one killed") >= 6
    counts.pop("locks of DVC's own removed", None)
    assert not counts


@pytest.mark.slow
@pytest.mark.skipif(not disks.possible(), reason="a small disk needs user namespaces")
def test_stages_on_full_disks_say_so_and_go_on() -> None:
    counts = disks.main(1, stages=["pack contextual", "train biencoder", "evaluate biencoder"])
    assert counts.pop("runs") == 3
    assert counts.pop("full")
    assert not counts


@pytest.mark.slow
def test_a_stage_that_is_killed_makes_the_same_bytes_when_it_runs_again() -> None:
    counts = stage_kills.main(2, stages=["mine mined", "pretrain seed"])
    assert counts.pop("killed")
    assert not counts


@pytest.mark.slow
@pytest.mark.skipif(not disks.possible(), reason="a disk of its own needs user namespaces")
def test_stages_write_to_disks_of_their_own() -> None:
    assert mounts.main(["filter", "pack random", "fetch tiny", "evaluate xtr"]) == {"runs": 4}
