"""``batchwright add`` of a URL: DVC fetches and pins the file; a dataset of the hub is pinned to a commit."""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import datasets
import huggingface_hub
import pytest
import yaml

from pipelines.ingest.sources.huggingface import _load
from project.own import init
from tests.ingest.running import ingest
from tests.project.test_add import PAIRS, add, sources, write_csv


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: Path) -> Path:
    """A new project, in which the test runs."""
    init(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setattr("project.programs._path", lambda: f"{warm}:/usr/bin:/bin")
    return tmp_path / "mine"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A web server's address, which serves the folder ``site``."""
    (tmp_path / "site").mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "site")
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_file_at_a_url_is_imported_and_pinned(mine: Path, site: str, tmp_path: Path, capsys) -> None:
    write_csv(tmp_path / "site/my faq.csv", "Question,Reply")
    before = {path for path in mine.rglob("*") if path.is_file() and ".dvc/" not in str(path)}
    add(f"{site}/my%20faq.csv?download=1", "--look")
    assert "Nothing was written" in capsys.readouterr().out
    assert {path for path in mine.rglob("*") if path.is_file() and ".dvc/" not in str(path)} == before

    add(f"{site}/my%20faq.csv?download=1")
    [source] = sources()
    assert source["path"] == "raw/pairs/my faq.csv"
    pinned = yaml.safe_load(Path("raw/pairs/my faq.csv.dvc").read_text())
    assert pinned["deps"][0]["path"] == f"{site}/my%20faq.csv?download=1"
    assert pinned["deps"][0].keys() & {"etag", "checksum", "md5"}
    assert ingest(*sources()).texts == {*PAIRS}

    with pytest.raises(SystemExit):
        add(f"{site}/my%20faq.csv")
    assert "raw/pairs/my faq.csv: is there already; dvc update" in capsys.readouterr().err


def test_a_bucket_s_file_is_imported(mine: Path, bucket: str, tmp_path: Path) -> None:
    from pyarrow.fs import FileSystem

    system, path = FileSystem.from_uri(bucket)
    with system.open_output_stream(f"{path}/pairs.csv") as stream:
        stream.write(write_csv(tmp_path / "pairs.csv", "query,document").read_bytes())
    add(f"{bucket}/pairs.csv")
    assert ingest(*sources()).texts == {*PAIRS}


@pytest.mark.parametrize(
    ("name", "header", "said"),
    [
        ("unclear.csv", "a,b,c", "unclear.csv"),
        ("absent.csv", "", "dvc import-url failed"),
        ("page", "", "its name says no known kind of file"),
    ],
)
def test_nothing_stays_of_a_file_that_cannot_be_read(
    mine: Path, site: str, tmp_path: Path, capsys, name: str, header: str, said: str
) -> None:
    if header:
        (tmp_path / "site" / name).write_text(f"{header}\n1,2,3\n4,5,6\n")
    before = Path("params.yaml").read_bytes(), {*Path("raw").rglob("*")}
    with pytest.raises(SystemExit):
        add(f"{site}/{name}")
    assert said in capsys.readouterr().err
    assert (Path("params.yaml").read_bytes(), {*Path("raw").rglob("*")} - {Path("raw/pairs/.gitignore")}) == before


def test_a_dataset_of_the_hub_is_pinned_to_its_commit(mine: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    asked = []

    def dataset_info(_: object, name: str, revision: str | None) -> SimpleNamespace:
        if name != "owner/faq":
            raise ConnectionError("404 Not Found")
        return SimpleNamespace(sha=f"commit of {revision}")

    def load_dataset(*arguments: object, **options: object) -> datasets.Dataset:
        asked.append((*arguments, options))
        return datasets.Dataset.from_dict({"question": [q for q, _ in PAIRS], "answer": [d for _, d in PAIRS]})

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", dataset_info)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    _load.cache_clear()
    add("hf://datasets/owner/faq@v2", "--split", "validation", "--config", "en")
    [source] = sources()
    assert source == {
        "kind": "huggingface",
        "name": "owner/faq",
        "config": "en",
        "split": "validation",
        "revision": "commit of v2",
        "columns": {"query": "question", "document": "answer"},
        "domain": "faq",
    }
    assert asked == [("owner/faq", "en", {"split": "validation", "revision": "commit of v2"})]
    for name, said in (("hf://datasets/owner/none", "(404 Not Found)"), ("hf://faq", "is no dataset; write")):
        with pytest.raises(SystemExit):
            add(name)
        assert said in capsys.readouterr().err
    Path("a.csv").write_text("query,document\na b,c d\n")
    with pytest.raises(SystemExit):
        add("a.csv", "--split", "train")
    assert "--split is for datasets of the hub" in capsys.readouterr().err
