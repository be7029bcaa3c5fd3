"""``batchwright push`` against a stand-in for the hub."""

import re
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from batchwright.commands import push as command
from batchwright.core.errors import InputError
from batchwright.formats.dataset_card import write_card
from batchwright.formats.shards import ShardSet
from tests.end_to_end.docs import ROOT
from tests.handover.hub import Hub, serve
from tests.helpers import run_python, tree
from tests.train.toys import toy_batch, toy_rows, write_toy_model, write_toy_shards


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve() as hub:
        yield hub


def write_shards(folder: Path, batches: int) -> Path:
    rows = toy_rows(4 * batches)
    write_toy_shards(folder, [toy_batch(rows[4 * number : 4 * number + 4]) for number in range(batches)])
    write_card(folder, ShardSet.open(folder).manifest)
    return folder


def push(hub: Hub, *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    return run_python(
        "-m", "batchwright", "push", *map(str, arguments), cwd=Path.cwd(), **hub.environment | environment
    )


def test_shards_arrive_whole_in_a_private_repository(hub: Hub, tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "shards", 4)
    done = push(hub, folder, "me/batches")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder} is at {hub.endpoint}/datasets/me/batches\n"
    arrived = hub.repositories["datasets/me/batches"]
    assert {".gitattributes": b"", **tree(folder)} == arrived
    assert hub.visibility == {"datasets/me/batches": "private"}


def test_the_commands_that_the_page_shows(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_shards(tmp_path / "data/shards/contextual", 1)
    write_toy_model(tmp_path / "models/biencoder")
    page = (ROOT / "docs/other-trainers.md").read_text(encoding="utf-8")
    shown = re.findall(r"`batchwright push ([^ `]+) OWNER/NAME`", page)
    for number, folder in enumerate(shown):
        done = push(hub, folder, f"me/pushed-{number}")
        assert done.returncode == 0, done.stderr
    assert list(hub.repositories) == ["datasets/me/pushed-0", "models/me/pushed-1"]


def test_a_second_push_removes_shards_that_are_gone(hub: Hub, tmp_path: Path) -> None:
    assert push(hub, write_shards(tmp_path / "two", 4), "me/batches").returncode == 0
    assert push(hub, write_shards(tmp_path / "one", 1), "me/batches", "--public").returncode == 0
    arrived = hub.repositories["datasets/me/batches"]
    assert {".gitattributes": b"", **tree(tmp_path / "one")} == arrived
    assert hub.visibility == {"datasets/me/batches": "private"}, "a repository stays as visible as it was"


def test_a_model_arrives_without_hidden_files(hub: Hub, tmp_path: Path) -> None:
    model = write_toy_model(tmp_path / "model")
    (model / "README.md").write_text("---\nlibrary_name: sentence-transformers\n---\n# A model\n")
    expected = tree(model)
    (model / ".cache").mkdir()
    (model / ".cache" / "kept").touch()
    done = push(hub, model, "me/encoder", "--public")
    assert done.returncode == 0, done.stderr
    assert {".gitattributes": b"", **expected} == hub.repositories["models/me/encoder"]
    assert hub.visibility == {"models/me/encoder": "public"}


@pytest.mark.parametrize(
    ("repository", "environment", "message"),
    [
        ("you/batches", {}, "You don't have the rights"),
        ("me/batches", {"HF_TOKEN": "hf_wrong"}, "401 Unauthorized"),
        ("me/not a name", {}, "Repo id"),
        ("me/batches", {"HF_HUB_OFFLINE": "1"}, "offline mode is enabled"),
        ("me/batches", {"HF_ENDPOINT": "http://127.0.0.1:9"}, "refused"),
    ],
)
def test_what_the_hub_refuses_is_one_line(
    hub: Hub, tmp_path: Path, repository: str, environment: dict[str, str], message: str
) -> None:
    done = push(hub, write_shards(tmp_path / "shards", 1), repository, **environment)
    assert done.returncode == 1
    assert done.stderr.startswith(f"batchwright push: error: '{repository}' on ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not hub.commits


def test_damaged_shards_and_other_folders_stay_here(hub: Hub, tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "shards", 1)
    (shards / "train-00000-of-00001.arrow").write_bytes(b"cut")
    done = push(hub, shards, "me/batches")
    assert done.returncode == 1
    assert "expected" in done.stderr
    shutil.rmtree(shards)
    shards.mkdir()
    done = push(hub, shards, "me/batches")
    assert "holds neither shards (manifest.json) nor a trained model (modules.json)" in done.stderr
    assert not hub.repositories


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.delitem(sys.modules, "batchwright.handover.push", raising=False)
    with pytest.raises(InputError, match="'huggingface_hub' is not installed; run: pip install"):
        command.main(Namespace(folder=Path(), repository="me/batches", public=False))
