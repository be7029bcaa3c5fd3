"""Locating models: in a folder, in a package, on the hub."""

import hashlib
import json
import re
import sys
import time
from pathlib import Path

import pytest
import torch
from tqdm import tqdm

from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.formats.models import ModelVersion, loading, locate_model, model_hash, weights_size


def model(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_folder_is_used_as_it_is(tmp_path: Path) -> None:
    folder = model(tmp_path / "org" / "name")
    assert locate_model(str(folder)) == folder


def test_a_package_provides_the_model_it_contains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model(tmp_path / "carrier_of_a_model" / "model")
    (folder.parent / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert locate_model("package:carrier_of_a_model") == folder
    assert "carrier_of_a_model" not in sys.modules


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", r"model '\./nowhere': no such folder"),
        ("/no/such/model", "model '/no/such/model': no such folder"),
        ("a/b/c", "model 'a/b/c': no such folder"),
        ("package:not_installed_here", "model 'package:not_installed_here': that package is not installed"),
        ("package:not_installed.here", "model 'package:not_installed.here': that package is not installed"),
        ("package:json", "model 'package:json': the package has no folder 'model'"),
        (
            "nobody/not-in-the-cache",
            "model 'nobody/not-in-the-cache': neither a local folder nor available from the hub",
        ),
        ("not a name!", "model 'not a name!': neither a local folder"),
    ],
)
def test_a_missing_model_is_explained(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        locate_model(name)


def test_the_hash_depends_on_weights_and_configuration_but_not_on_location(tmp_path: Path) -> None:
    first = model_hash(model(tmp_path / "a"))
    assert model_hash(model(tmp_path / "b")) == first
    assert model_hash(model(tmp_path / "c", weights=b"others")) != first
    (tmp_path / "b" / "README.md").write_text("says nothing about the output")
    assert model_hash(tmp_path / "b") == first
    (tmp_path / "b" / "config.json").write_text('{"layers": 3}')
    assert model_hash(tmp_path / "b") != first


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_model_that_was_damaged_since_it_was_made_has_no_hash(tmp_path: Path, file: str) -> None:
    with atomic_dir(tmp_path / "start") as folder:
        model(folder / "minilm")
    (tmp_path / "start/minilm" / file).write_bytes(b"weightz")
    with pytest.raises(InputError, match=f"{file}: damaged, its content is not what"):
        model_hash(tmp_path / "start/minilm")


def test_weights_of_several_formats_count_once(tmp_path: Path) -> None:
    for name, size in (("model.safetensors", 5), ("pytorch_model.bin", 6), ("openvino/openvino_model.bin", 7)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(size))
    assert weights_size(tmp_path) == 5
    (tmp_path / "model.safetensors").unlink()
    assert weights_size(tmp_path) == 6


@pytest.mark.parametrize("named", ["weights-1.bin", "../outside.bin"])
def test_weights_that_only_an_index_names_are_refused_too(tmp_path: Path, named: str) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / named).write_bytes(b"pickled")
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"layer.weight": named}}))
    with pytest.raises(InputError, match=rf"{named} is not in safetensors"):
        locate_model(str(folder))
    (folder / "pytorch_model.bin.index.json").write_text("[]")
    with pytest.raises(InputError, match=r"model '.*': pytorch_model.bin.index.json: cannot be loaded"):
        locate_model(str(folder))


def test_weights_that_would_be_unpickled_are_refused_unless_they_are_named(tmp_path: Path) -> None:
    folder = model(tmp_path / "a")
    (folder / "pytorch_model.bin").write_bytes(b"not read: model.safetensors lies beside it")
    (folder / "training_args.bin").write_bytes(b"never read")
    assert locate_model(str(folder)) == folder
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense/pytorch_model.bin").write_bytes(b"pickled")
    digest = hashlib.sha256(b"pickled").hexdigest()
    with pytest.raises(
        InputError, match=rf"2_Dense/pytorch_model.bin is not in safetensors.*pickled_weights: {digest}"
    ):
        locate_model(str(folder))
    assert locate_model(str(folder), ModelVersion(pickled_weights=[digest])) == folder
    (folder / "2_Dense/pytorch_model.bin").write_bytes(b"something else")
    with pytest.raises(InputError, match="not in safetensors"):
        locate_model(str(folder), ModelVersion(pickled_weights=[digest]))


def test_a_folder_without_weights_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no weights \(\*\.safetensors\)"):
        model_hash(tmp_path)


def test_what_libraries_raise_is_an_input_error_but_for_what_a_gpu_says() -> None:
    message = "model 'x': the shapes of its weights do not match its config.json"
    with pytest.raises(InputError, match=message), loading("model 'x'"):
        raise RuntimeError("You set `ignore_mismatched_sizes` to `False`, thus raising an error.")
    with pytest.raises(InputError, match=message), loading("model 'x'"):
        torch.nn.Linear(2, 3).load_state_dict(torch.nn.Linear(3, 3).state_dict())
    missing = "Error(s) in loading state_dict for Linear: Missing key(s)"
    with pytest.raises(InputError, match=re.escape(f"model 'x': cannot be loaded ({missing})")), loading("model 'x'"):
        raise RuntimeError(missing)
    with pytest.raises(RuntimeError, match="CUDA out of memory"), loading("model 'x'"):
        raise RuntimeError("CUDA out of memory")


def test_a_long_download_shows_a_bar_although_the_hubs_own_are_silenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def download(name: str, tqdm_class: type[tqdm], **_: object) -> str:
        for seconds in (0.0, 2.1):
            with tqdm_class(total=2, desc=f"bytes of {name}") as bar:
                time.sleep(seconds)
                bar.update()
        tqdm_class.__new__(tqdm_class).__del__()  # as one whose constructor a signal ended
        return str(tmp_path)

    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert locate_model("some/model") == tmp_path
    assert capfd.readouterr().err.count("bytes of some/model:  50%") >= 1
