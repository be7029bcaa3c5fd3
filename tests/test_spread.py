"""Domains, and parts of large ones, are done in any process: the same bytes, and finished parts survive."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from batchwright.by_domain import domains
from batchwright.by_domain import spread as processes
from batchwright.by_domain.kept import KeptMap
from batchwright.by_domain.spread import on_this_machine
from batchwright.core.errors import InputError
from batchwright.core.paths import PAIRS
from batchwright.formats.pairs import pair_parts, pairs_file
from batchwright.formats.vectors import PairVectors, VectorStore
from pipelines.beam.spread import spread
from stages.cluster import methods
from stages.cluster import stage as cluster
from stages.filter import stage as judge
from stages.pack import stage as pack
from tests.helpers import (
    plant_vectors,
    project_environment,
    run_python,
    start_slowed,
    topic_pairs,
    tree,
    wait_for,
    write_pairs,
    write_params,
)
from tests.job_service import portable_runner

PARTS = {"cluster.resident_pairs": 48}
"""Makes four cells of the large domain."""
IN_PROCESS = "--runner=FnApiRunner"
TWO_PROCESSES = "--runner=FnApiRunner --direct_running_mode=multi_processing --direct_num_workers=2"


@pytest.fixture
def corpus(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(domains, "LARGE", 100)
    for number, (domain, pairs) in enumerate({"ants": 30, "bees/wild": 200, "cats": 40}.items()):
        write_pairs(domain, topic_pairs(pairs, seed=number))
    file = pairs_file(PAIRS, "bees/wild")
    pq.write_table(pq.read_table(file), file, row_group_size=50)
    plant_vectors()
    write_params(workspace, PARTS)
    return workspace


def run_stages() -> tuple[dict[str, bytes], dict[str, bytes]]:
    for main in (judge.main, cluster.main, partial(pack.main, "contextual")):
        main()
    return tree(Path("data")), tree(Path("results"))


def forget() -> None:
    subprocess.run(["rm", "-rf", ".scratch"], check=True)


def read_by_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchwright.formats.pairs._FEW_BYTES", 0)


def test_parts_make_no_difference(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_stages()
    forget()
    read_by_row_groups(monkeypatch)
    divided = run_stages()
    forget()
    monkeypatch.setattr(domains, "LARGE", 1000)
    assert run_stages() == whole == divided
    assert not list(Path(".scratch").rglob("parts"))


def test_processes_make_the_same_bytes(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "MOST_CLUSTERS", 3)
    write_params(corpus, {"cluster.resident_pairs": 3 * 48})  # room for three cells
    read_by_row_groups(monkeypatch)
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "1")
    first = run_stages()
    forget()
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "4")
    real = methods._cluster_cell

    def noted(size: int, iterations: int, part: methods.Part) -> methods.Members:
        if part[2][1] == 1 and len(part[0]) == 48:  # a cell of the large domain
            (tmp_path / f"{os.getpid()}.pid").touch()
            wait_for(lambda: len(list(tmp_path.glob("*.pid"))) >= 3, "three cells are never done at a time")
        return real(size, iterations, part)

    monkeypatch.setattr(methods, "_cluster_cell", noted)
    assert run_stages() == first


def test_little_work_starts_no_process(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(domains, "LARGE", 1000)
    monkeypatch.setattr(processes, "_forked", refuse)
    run_stages()


def test_processes_use_one_core_each(tmp_path: Path) -> None:
    """Products of several cores have other last bits; a large domain's own work is done in this process."""
    code = """
from pathlib import Path
import faiss  # has its own BLAS and OpenMP
from threadpoolctl import threadpool_info, threadpool_limits
from batchwright.by_domain.domains import do_domains
from batchwright.by_domain.spread import on_this_machine
def look(name, *_):
    Path(f"{name}.cores").write_text(str({pool["num_threads"] for pool in threadpool_info()}))
    return {}
look("before")
on_this_machine(look, range(4), desc="look", unit="look", processes=2)
large = {"pairs": {"ants": 10**9, "bees": 10**9}, "processes": 2}
with threadpool_limits(1):
    do_domains("look", Path(), look, {"ants": 1}, **large)
do_domains("look", Path(), look, {"bees": 1}, **large)
"""
    ended = run_python("-c", code, cwd=tmp_path, OMP_NUM_THREADS="3", OPENBLAS_NUM_THREADS="3")
    assert ended.returncode == 0, ended.stderr
    cores = {file.stem: file.read_text() for file in tmp_path.glob("*.cores")}
    assert {name for name, found in cores.items() if found == "{1}"} == {*"0123", "ants"}, cores
    assert len(cores) == 7


def test_an_error_in_a_process_stops_the_others(tmp_path: Path) -> None:
    def work(number: int) -> None:
        if not number:
            raise InputError("number 0")
        time.sleep(0.01)
        (tmp_path / str(number)).touch()

    with pytest.raises(InputError, match="number 0"):
        on_this_machine(work, range(1000), desc="numbers", unit="number", processes=2)
    assert len(list(tmp_path.iterdir())) < 900
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_is_told_of() -> None:
    def work(number: int) -> None:
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(InputError, match=r"numbers: a process was killed, .* smaller BATCHWRIGHT_WORKERS"):
        on_this_machine(work, range(4), desc="numbers", unit="number", processes=2)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_processes_end_with_the_one_that_started_them(number: int, status: int, tmp_path: Path) -> None:
    code = """
import os, time
from pathlib import Path
from batchwright.by_domain.spread import on_this_machine
from batchwright.core.command import failing
def sleep(_):
    Path(f"{os.getpid()}.pid").touch()
    time.sleep(600)
with failing("look"):
    on_this_machine(sleep, range(9), desc="sleep", unit="item", processes=3)
"""
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=project_environment(),
            stderr=said,
            start_new_session=True,
        )
    wait_for(lambda: len(list(tmp_path.glob("*.pid"))) == 3, "there are no three processes")
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    assert process.wait(30) == status
    started = [int(file.stem) for file in tmp_path.glob("*.pid")]
    wait_for(lambda: not any(map(psutil.pid_exists, started)), "processes are left over")
    lines = (tmp_path / "said").read_text().splitlines()
    assert [line for line in lines if "sleep" not in line] == ([lines[-1]] if status > 0 else [])
    assert all("Traceback" not in line for line in lines)


@pytest.mark.parametrize("options", [IN_PROCESS, pytest.param(TWO_PROCESSES, marks=pytest.mark.slow)])
def test_beam_makes_the_same_bytes(options: str, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_stages()
    forget()
    monkeypatch.setenv("BEAM_OPTIONS", options)
    assert run_stages() == first


@pytest.mark.slow
def test_a_portable_runner_makes_the_same_bytes(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_stages()
    forget()
    with portable_runner(tmp_path / "port") as options:
        monkeypatch.setenv("BEAM_OPTIONS", options)
        assert run_stages() == first


def test_a_killed_run_goes_on_from_its_finished_cells(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run_stages()
    forget()
    after = "batchwright.by_domain.kept._do_part"
    with start_slowed("cluster", after=after, seconds=1, cwd=corpus, large=100, BATCHWRIGHT_WORKERS="1") as process:
        while len(list(Path(".scratch").rglob("parts/3/?"))) < 3:  # after vectors and cells
            assert process.poll() is None, "the stage ended before it could be killed"
            time.sleep(0.02)
        process.kill()
    done: list[int] = []
    real = methods._cluster_cell

    def noted(size: int, iterations: int, part: methods.Part) -> methods.Members:
        done.append(part[2][-1])
        return real(size, iterations, part)

    monkeypatch.setattr(methods, "_cluster_cell", noted)
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", "1")
    cluster.main()
    assert 4 in done
    assert not {1, 2} & set(done)
    assert (tree(Path("data")), tree(Path("results"))) == expected


@pytest.mark.parametrize(("before", "after"), [("", IN_PROCESS), (IN_PROCESS, "")])
def test_a_killed_run_goes_on_without_beam_or_with_it(
    before: str, after: str, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run_stages()
    forget()
    real = cluster.side_centroids

    def die_in_a_large_domain(vectors: PairVectors, assignment: NDArray[np.int32], do_parts: processes.Map) -> object:
        if len(vectors) >= domains.LARGE:
            raise KeyboardInterrupt
        return real(vectors, assignment, do_parts)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(cluster, "side_centroids", die_in_a_large_domain)
        patched.setenv("BEAM_OPTIONS", before)
        run_stages()
    assert list(Path(".scratch/cluster").rglob("parts/**/1/0"))
    monkeypatch.setenv("BEAM_OPTIONS", after)
    assert run_stages() == expected
    assert not list(Path(".scratch").rglob("parts"))


def test_a_map_keeps_its_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done: list[int] = []

    def double(number: int) -> int:
        done.append(number)
        return 2 * number

    for _ in range(2):
        do_parts = KeptMap(tmp_path / "parts", on_this_machine, "doubled")
        assert list(do_parts(double, [3, 1])) == [6, 2]
        assert list(do_parts(double, (number for number in [5]))) == [10]
    assert done == [3, 1, 5]
    file = tmp_path / "parts/1/0"
    file.write_bytes(file.read_bytes()[:-1])
    assert list(KeptMap(tmp_path / "parts", on_this_machine, "doubled")(double, [3, 1])) == [6, 2]
    assert done == [3, 1, 5, 3]
    assert capsys.readouterr().err == f"warning: {file}: damaged; this part of the work is done again\n"


def test_results_that_another_machine_kept_elsewhere_are_missed(tmp_path: Path) -> None:
    def nowhere(work: object, items: object, **how: object) -> None:
        pass

    with pytest.raises(InputError, match="all processes must share this folder"):
        list(KeptMap(tmp_path / "parts", nowhere, "doubled")(abs, [1]))
    with pytest.raises(InputError, match="all processes must share the folder BATCHWRIGHT_SCRATCH"):
        domains.do_domains("look", tmp_path, lambda *_: {}, {"ants": 1}, nowhere)


def test_vectors_travel_as_the_name_of_their_file(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchwright.core.files.SMALL", 0)
    store = VectorStore.open(Path("data/vectors/planted"))
    vectors = store.of("bees/wild").of_pairs(pair_parts(PAIRS, "bees/wild", "train")).take(slice(5, 9))
    sent = pickle.dumps(vectors)
    assert len(sent) < 1000
    found: PairVectors = pickle.loads(sent)
    assert isinstance(found.vectors, np.memmap)
    np.testing.assert_array_equal(found.queries(slice(None)), vectors.queries(slice(None)))
    np.testing.assert_array_equal(found.documents(slice(None)), vectors.documents(slice(None)))


@pytest.mark.parametrize("options", ["", IN_PROCESS])
def test_a_user_error_names_what_is_wrong(options: str, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> None:
        if number % 2:
            raise InputError(f"{number} is odd")

    monkeypatch.setenv("BEAM_OPTIONS", options)
    spread(refuse, [0, 2], desc="even", unit="number")
    with pytest.raises(InputError, match="3 is odd"):
        spread(refuse, [2, 3], desc="even", unit="number")
