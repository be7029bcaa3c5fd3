"""Undo the mend of each known fault, and look whether a test finds it: ``python -m tests.faults.mutants [NUMBER ...]``.

``NUMBER`` chooses among them. A test must pass as the code is, and fail with the mend undone.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.faults.victim import change
from tests.helpers import REPO


class Mutant(NamedTuple):
    """What is wrong again if ``before``, which is in ``file`` once, is replaced by ``after``; ``test`` must see it."""

    fault: str
    file: str
    before: str
    after: str
    test: str


MUTANTS = [
    Mutant(
        "files of a killed run become part of the artifact",
        "batchwright/by_domain/domains.py",
        'files.rglob(".*")',
        'files.rglob(".no such file")',
        "test_by_domain.py",
    ),
    Mutant(
        "temporary files of killed runs stay in results",
        "batchwright/core/command.py",
        "        remove_leftovers(RESULTS)\n",
        "",
        "core/test_command.py::test_a_stage_removes_what_killed_ones_left_in_results",
    ),
    Mutant(
        "the old artifact is gone before the new one has its name",
        "batchwright/core/atomic.py",
        "        path.rename(old)\n",
        "        shutil.rmtree(path)\n",
        "core/test_atomic.py",
    ),
    Mutant(
        "a source changes while it is read",
        "batchwright/core/unchanged.py",
        "if before.get(file) != after.get(file)",
        "if False",
        "ingest/test_watched.py",
    ),
    Mutant(
        "a run is killed between reading a source that changed and noticing it",
        "pipelines/ingest/read.py",
        "    check_unchanged()  # before",
        "    # before",
        "ingest/test_kept.py",
    ),
    Mutant(
        "a source lies where DVC does not look",
        "stages/ingest/stage.py",
        "    check_watched(_files(params), RAW_PAIRS)\n",
        "",
        "ingest/test_watched.py",
    ),
    Mutant(
        "a damaged artifact is read",
        "batchwright/core/seal.py",
        " sha256(file) != expected",
        "False",
        "core/test_seal.py",
    ),
    Mutant(
        "verify does not see damage",
        "batchwright/core/seal.py",
        "elif file_sha256(folder / name) != sums[name]",
        "elif False",
        "integrity/test_verify.py",
    ),
    Mutant(
        "a damaged checkpoint is used",
        "trainers/common/checkpoint.py",
        "if any(faults(folder)):",
        "if False:",
        "train/test_training.py",
    ),
    Mutant(
        "only one checkpoint is kept",
        "trainers/common/checkpoint.py",
        "_KEPT = 2",
        "_KEPT = 1",
        "train/test_training.py",
    ),
    Mutant(
        "a damaged shard is copied from object storage",
        "batchwright/formats/shards/remote.py",
        "if file_sha256(temporary) != shard.sha256",
        "if False",
        "formats/test_shards.py",
    ),
    Mutant(
        "a damaged chunk of vectors is used",
        "pipelines/embed/chunk_files.py",
        "if hashlib.sha256(array).digest() != digest",
        "if False",
        "embed/test_resume.py",
    ),
    Mutant(
        "finished work of a domain is used although it is damaged",
        "batchwright/by_domain/kept.py",
        'if found["checked"] == _fingerprint(files, values)',
        "if True",
        "test_by_domain.py",
    ),
    Mutant(
        "a finished part of a large domain is used although it is damaged",
        "batchwright/by_domain/kept_map.py",
        "return found[_DIGEST:] if found[:_DIGEST] == hashlib.sha256(found[_DIGEST:]).digest() else None",
        "return found[_DIGEST:]",
        "test_spread.py::test_a_map_keeps_its_results",
    ),
    Mutant(
        "a file of batches that is damaged after its part was finished is used",
        "stages/pack/batches.py",
        "(file in left and file_sha256(file) != sha256)",
        "False",
        "pack/test_stage.py::test_a_killed_run_resumes_and_gives_the_same_bytes",
    ),
    Mutant(
        "processes of a stage that was killed go on",
        "batchwright/by_domain/spread.py",
        "    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)\n",
        "",
        "test_spread.py::test_processes_end_with_the_one_that_started_them",
    ),
    Mutant(
        "a stage that is interrupted or terminated waits for its processes",
        "batchwright/by_domain/spread.py",
        "            child.kill()\n",
        "            pass\n",
        "test_spread.py::test_processes_end_with_the_one_that_started_them",
    ),
    Mutant(
        "a process uses several cores, so that the last bits of its products are others",
        "batchwright/by_domain/spread.py",
        "    signal.signal(signal.SIGTERM, signal.SIG_DFL)\n    threadpool_limits(1)\n",
        "    signal.signal(signal.SIGTERM, signal.SIG_DFL)\n",
        "test_spread.py::test_processes_use_one_core_each",
    ),
    Mutant(
        "a run resumed after its last step writes another tokenizer",
        "trainers/common/tokenizer_file.py",
        "        tokenizer.no_padding()\n",
        "        return\n",
        "train/test_training.py",
    ),
    Mutant(
        "a name leaves its folder",
        "batchwright/core/names.py",
        "if not _NAME.fullmatch(name)",
        "if not name",
        "core/test_names.py",
    ),
    Mutant(
        "a domain takes the name of another file",
        "batchwright/formats/pairs/files.py",
        'quote(domain, safe=" ").replace(".", "%2E")',
        "domain",
        "core/test_names.py",
    ),
    Mutant(
        "commands are built from names that are none",
        "batchwright/core/command.py",
        "    check_names(PARAMS_FILE)\n",
        "",
        "core/test_names.py",
    ),
    Mutant(
        "many domains, too many open files",
        "stages/pack/write.py",
        "    with pa.memory_map(str(file)) as source:\n        return pa.ipc.open_file(source).get_batch(number)\n",
        "    OPEN.append(pa.OSFile(str(file)))\n    return pa.ipc.open_file(OPEN[-1]).get_batch(number)\n\nOPEN = []\n",
        "pack/test_stage.py",
    ),
    Mutant(
        "offsets and views that point outside are followed",
        "batchwright/core/untrusted.py",
        "        column = column.view(raw)\n    column.validate(full=True)\n",
        "        column = column.view(raw)\n",
        "ingest/test_saved_folders.py",
    ),
    Mutant(
        "a small file becomes gigabytes",
        "pipelines/ingest/sources/files.py",
        "if size > most",
        "if False",
        "ingest/test_limits.py",
    ),
    Mutant(
        "a line or a row has no end",
        "batchwright/core/lines.py",
        "if size > MOST_CHARACTERS",
        "if False",
        "ingest/test_limits.py",
    ),
    Mutant(
        "a row of Parquet or Arrow has no end",
        "batchwright/core/untrusted.py",
        "int(sizes.max())",
        "0",
        "ingest/test_long_rows.py",
    ),
    Mutant(
        "a repeated text of given vectors becomes gigabytes",
        "pipelines/embed/at_once.py",
        "min(_ROWS, max(1, _BYTES // max(longest, 1)))",
        "_ROWS",
        "embed/test_limits.py",
    ),
    Mutant(
        "damaged metadata of given vectors end the process",
        "pipelines/embed/at_once.py",
        'for _ in itertools.islice(table.iter_batches(1, row_groups=[group], columns=["text"]), 1):',
        "for _ in range(1):",
        "faults/test_faults.py::test_damaged_metadata_of_given_vectors_end_no_process",
    ),
    Mutant(
        "a damaged folder of save_to_disk ends in a traceback",
        "pipelines/ingest/sources/huggingface.py",
        "    except Exception as error:",
        "    except OSError as error:",
        "ingest/test_saved_folders.py",
    ),
    Mutant(
        "a repeated text of Parquet becomes gigabytes",
        "batchwright/core/untrusted.py",
        "if size > most",
        "if False",
        "ingest/test_limits.py",
    ),
    Mutant(
        "a deeply nested line ends in a traceback",
        "pipelines/ingest/sources/jsonl.py",
        "except (ValueError, RecursionError)",
        "except ValueError",
        "ingest/test_bad_rows.py",
    ),
    Mutant(
        "deeply nested parameters end in a traceback",
        "batchwright/core/params.py",
        '    except RecursionError:\n        raise InputError(f"{file}: is nested',
        '    except ZeroDivisionError:\n        raise InputError(f"{file}: is nested',
        "core/test_params.py",
    ),
    Mutant(
        "dates before the year 1 end in a traceback",
        "batchwright/core/untrusted.py",
        "return pa.types.is_temporal(kind) or not",
        "return not",
        "filter/test_judgements.py",
    ),
    Mutant(
        "judgements that are no numbers end in a traceback",
        "batchwright/formats/beir.py",
        "    except ValueError:\n        return None\n",
        "    except ZeroDivisionError:\n        return None\n",
        "formats/test_beir.py",
    ),
    Mutant(
        "pickled weights are read",
        "batchwright/formats/models.py",
        "    _check_pickled(name, folder, version.pickled_weights)\n",
        "",
        "formats/test_models.py",
    ),
    Mutant(
        "a damaged model ends in a library's traceback",
        "batchwright/formats/models.py",
        "    except Exception as error:\n        text",
        "    except ZeroDivisionError as error:\n        text",
        "formats/test_models.py",
    ),
    Mutant(
        "weights that a model lacks are drawn at random",
        "batchwright/formats/models.py",
        "    if missing:\n",
        "    if False:\n",
        "fetch/test_stage.py",
    ),
    Mutant(
        "data control the terminal",
        "batchwright/core/message.py",
        'c if c.isprintable() or c == "\\n" else',
        "c if c else",
        "core/test_message.py",
    ),
    Mutant(
        "errors are longer than a screen",
        "batchwright/core/message.py",
        "if len(text) <= MOST",
        "if True",
        "core/test_message.py",
    ),
    Mutant(
        "a key of YAML is there twice",
        "batchwright/core/params.py",
        "if twice := [",
        "if False and [",
        "faults/test_faults.py::test_keys_and_ids_that_are_there_twice_are_refused",
    ),
    Mutant(
        "an id of BEIR is there twice",
        "batchwright/formats/beir.py",
        "if key in seen",
        "if False",
        "faults/test_faults.py::test_keys_and_ids_that_are_there_twice_are_refused",
    ),
    Mutant(
        "whoever reaches the Ray cluster may use it",
        "trainers/launch/cluster.py",
        'os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))',
        'os.environ.setdefault("RAY_AUTH_MODE", "disabled")',
        "train/test_launch.py::test_a_cluster_of_our_own_asks_for_a_token_and_prints_progress_only",
    ),
    Mutant(
        "a full disk ends in a traceback",
        "batchwright/core/errors.py",
        "if any(sign in text for sign in signs) or",
        "if",
        "pack/test_stage.py",
    ),
    Mutant(
        "a terminated command leaves what it began",
        "batchwright/core/command.py",
        "signal.signal(signal.SIGTERM, terminate)",
        "signal.getsignal(signal.SIGTERM)",
        "core/test_command.py::test_a_signal_ends_a_command_with_one_line_and_its_code",
    ),
    Mutant(
        "a stage runs twice at once",
        "batchwright/core/lock.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "test_by_domain.py",
    ),
    Mutant(
        "hours are spent before memory runs out",
        "batchwright/core/room.py",
        "if free is not None and free < needed",
        "if False",
        "core/test_room.py",
    ),
    Mutant(
        "hours are spent before the disk is full",
        "batchwright/core/room.py",
        "if free < sums[disk]",
        "if False",
        "core/test_room.py",
    ),
    Mutant(
        "an interrupted training on workers ends with another code",
        "trainers/launch/fit.py",
        "    _Trainer(\n",
        "    TorchTrainer(\n",
        "train/test_launch.py::test_a_signal_ends_a_training_on_workers_with_its_code",
    ),
    Mutant(
        "a terminated training on workers ends with another code",
        "trainers/launch/cluster.py",
        "        signal.signal(signal.SIGTERM, terminate)",
        "        _ = terminate",
        "train/test_launch.py::test_a_signal_ends_a_training_on_workers_with_its_code",
    ),
    Mutant(
        "a run takes the unfinished folder of one whose name begins alike",
        "batchwright/core/atomic.py",
        '_UNFINISHED = "~"',
        '_UNFINISHED = "."',
        "core/test_atomic.py::test_a_writer_touches_no_other_ones_folder",
    ),
    Mutant(
        "a damaged start model is trained",
        "batchwright/formats/models.py",
        "        check(file, most_bytes=None)",
        "        pass",
        "formats/test_models.py::test_a_model_that_was_damaged_since_it_was_made_has_no_hash",
    ),
    Mutant(
        "of a key that is there twice the last value counts",
        "batchwright/core/json_lines.py",
        "if len(found) < len(pairs)",
        "if False",
        "formats/test_beir.py",
    ),
    Mutant(
        "a damaged part of a domain is done again without a word",
        "batchwright/by_domain/kept_map.py",
        "                if results[-1].exists():\n",
        "                if False:\n",
        "test_spread.py::test_a_map_keeps_its_results",
    ),
    Mutant(
        "damaged mined negatives are used",
        "stages/mine/stage.py",
        "        if kept(ledger, [file]) is None:\n",
        "        if not file.exists():\n",
        "mine/test_stage.py::test_a_second_run_and_a_resumed_one_give_the_same_bytes",
    ),
]


def main(chosen: list[int]) -> int:
    """Print a line per mutant; return how many were not found."""
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        code = _copy(Path(name, "code"))
        sound: dict[str, bool] = {}
        for number, mutant in enumerate(MUTANTS):
            if chosen and number not in chosen:
                continue
            if mutant.test not in sound:
                sound[mutant.test] = _passes(code, mutant.test)
            found = sound[mutant.test] and not _with(code, mutant)
            missed += not found
            state = "found" if found else "NOT FOUND" if sound[mutant.test] else "TEST FAILS ANYWAY"
            print(f"{number:2}  {state}  {mutant.fault}: {mutant.test}", flush=True)
    return missed


def _copy(folder: Path) -> Path:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True).stdout
    folder.mkdir()
    subprocess.run(["xargs", "-0", "cp", "--parents", "-t", folder], input=listed, cwd=REPO, check=True)
    return folder


def _with(code: Path, mutant: Mutant) -> bool:
    """Whether the test passes with the mend undone."""
    file = code / mutant.file
    text = change(file, mutant.before, mutant.after)
    try:
        return _passes(code, mutant.test)
    finally:
        file.write_text(text)


def _passes(code: Path, test: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", f"tests/{test}"]
    settings = {**os.environ, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"}
    return not subprocess.run(command, cwd=code, env=settings, capture_output=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(min(main(list(map(int, sys.argv[1:]))), 1))
