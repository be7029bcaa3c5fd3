"""Results, fingerprints and execution settings."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv, write_json, write_tsv
from batchwright.core.fingerprint import content_id, files_fingerprint, fingerprint, text_keys
from batchwright.core.runtime import beam_options, ray_address, scratch, storage, train_gpus, train_workers, workers


def test_equal_json_is_equal_bytes_whatever_the_order_of_keys(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": "é"})
    write_json(tmp_path / "b.json", {"a": "é", "b": 1})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_json(tmp_path / "a.json", made_by="test") == {"a": "é", "b": 1}


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff\xfe"])
def test_invalid_json_is_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.json: .*run the stage 'pack' again"):
        read_json(tmp_path / "a.json", made_by="pack")
    with pytest.raises(InputError, match=r"a\.json/b\.json: no such file; run the stage 'pack' first"):
        read_json(tmp_path / "a.json" / "b.json", made_by="pack")


def test_a_table_is_read_back_with_floats_to_six_digits(tmp_path: Path) -> None:
    write_tsv(tmp_path / "a.tsv", [{"step": 1, "loss": 1 / 3}, {"step": 2, "loss": 1e-9}])
    rows = [{"step": "1", "loss": "0.333333"}, {"step": "2", "loss": "1e-09"}]
    assert read_tsv(tmp_path / "a.tsv", made_by="train") == rows
    with pytest.raises(InputError, match="run the stage 'train' first"):
        read_tsv(tmp_path / "b.tsv", made_by="train")


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_texts_cannot_run_together_in_an_id(left: list[str], right: list[str]) -> None:
    assert (content_id(*left) == content_id(*right)) == (left == right)


@given(st.lists(st.text(), unique=True))
def test_keys_of_different_texts_differ(texts: list[str]) -> None:
    keys = text_keys(texts)
    assert keys.dtype == np.dtype("V16")
    assert len({key.tobytes() for key in keys}) == len(keys) == len(texts)


def test_a_fingerprint_depends_on_every_part_but_not_on_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": 2}, 3) == fingerprint({"b": 2, "a": 1}, 3)
    assert fingerprint({"a": 1}, 3) != fingerprint({"a": 1}, 4)


def test_a_fingerprint_of_files_depends_on_content_and_ignores_compiled_python(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = files_fingerprint([tmp_path])
    (tmp_path / "a.pyc").write_text("compiled")
    assert files_fingerprint([tmp_path]) == first
    (tmp_path / "a.py").write_text("2")
    assert files_fingerprint([tmp_path]) != first


def test_the_environment_variable_sets_the_scratch_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", str(tmp_path))
    assert scratch("pack", "abc") == tmp_path / "pack" / "abc"
    assert (tmp_path / "pack" / "abc").is_dir()


@pytest.mark.parametrize("value", ["many", "-1", "1.5", "", "0"])
def test_a_setting_that_is_not_a_valid_number_is_reported(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("BATCHWRIGHT_WORKERS", value)
    with pytest.raises(InputError, match="environment variable BATCHWRIGHT_WORKERS: expected an integer of at least 1"):
        workers()


@pytest.mark.parametrize(("value", "found"), [("3", (3, 3)), ("1:4", (1, 4)), ("2:2", (2, 2))])
def test_workers_are_a_number_or_a_range(monkeypatch: pytest.MonkeyPatch, value: str, found: tuple[int, int]) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", value)
    assert train_workers() == found


@pytest.mark.parametrize("value", ["0:4", "4:1", "1:", ":2", "1:2:3", "one"])
def test_a_range_of_workers_that_is_none_is_reported(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("BATCHWRIGHT_TRAIN_WORKERS", value)
    with pytest.raises(InputError, match="environment variable BATCHWRIGHT_TRAIN_WORKERS: expected"):
        train_workers()


def test_settings_have_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.startswith(("BATCHWRIGHT_", "BEAM_", "RAY_")):
            monkeypatch.delenv(variable)
    assert workers() >= 1
    assert train_workers() == (0, 0)
    assert (ray_address(), storage()) == ("local", None)
    assert train_gpus(default=1) == 1
    assert beam_options() == ["--runner=FnApiRunner"]
