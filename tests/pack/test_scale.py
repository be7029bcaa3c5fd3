"""The benchmark that runs the data stages on generated pairs."""

import itertools
import sys
from pathlib import Path

import pytest

from batchwright.core.files import read_tsv
from benchmarks import scale


@pytest.mark.slow
def test_every_stage_is_measured_and_growth_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "scale.tsv"
    options = "--pairs 400 800 --cores 2 --characters 200 --output"
    monkeypatch.setattr(sys, "argv", ["scale", *options.split(), str(output)])
    scale.main()
    rows = read_tsv(output, made_by="benchmarks.scale")
    made = [(row["pairs"], row["stage"]) for row in rows]
    assert made == list(itertools.product(("400", "800"), scale.STAGES))
    assert all(float(row["seconds"]) > 0.2 and 50 < int(row["mib"]) < 5000 for row in rows)
    assert "pack contextual: " in capsys.readouterr().out.splitlines()[-1]


def test_each_size_runs_on_each_number_of_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: Path, pairs: int, cores: int, __: int) -> list[scale.Row]:
        return [{"pairs": pairs, "cores": cores, "stage": stage, "mib": pairs} for stage in scale.STAGES]

    monkeypatch.setattr(scale, "run_stages", run)
    options = "--pairs 400 800 --cores 1 2 --output"
    monkeypatch.setattr(sys, "argv", ["scale", *options.split(), str(tmp_path / "scale.tsv")])
    scale.main()
    rows = read_tsv(tmp_path / "scale.tsv", made_by="benchmarks.scale")
    made = [(row["pairs"], row["cores"], row["stage"]) for row in rows]
    assert made == list(itertools.product(("400", "800"), ("1", "2"), scale.STAGES))


def test_a_stage_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("base: {seed: 1}\n")
    with pytest.raises(SystemExit, match=r"filter failed:\n.*error: params.yaml: "):
        scale.run_stage(tmp_path, "filter")


def test_a_stage_runs_on_as_many_cores_as_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = tmp_path / "counts"
    counts.write_text("#!/bin/sh\nenv -u OMP_NUM_THREADS nproc\nexit 1\n")
    counts.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(counts))
    with pytest.raises(SystemExit, match=r"filter failed:\n1\n"):
        scale.run_stage(tmp_path, "filter", 1)
