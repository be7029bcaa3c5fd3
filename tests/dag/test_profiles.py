"""Every profile is a complete set of parameters: all stages accept it, and every name in it refers to something."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from batchwright.core.params import load_params
from docs.schema import AllParams, TrainParams
from stages.pack.plan import POLICIES
from tests.dag.closure import ROOT
from tests.profiles import NAMES, composed, stages, written
from trainers.common.params import Common, overridden
from trainers.variants import load_variant

each_profile = pytest.mark.parametrize("name", NAMES)
PAPERS = {"cde_unsupervised": 29, "cde_supervised": 33, "seed_encoder": 1, "seed_encoder_documents": 2, "xtr": 1}
"""How many sets each trains on."""


@each_profile
def test_profile_is_accepted_by_every_stage(name: str, tmp_path: Path) -> None:
    for whole, values in composed(name).items():
        (tmp_path / whole).write_text(yaml.safe_dump({whole: values}), encoding="utf-8")  # files that are soon read
    for group, model in _groups(name):
        load_params(group, model, tmp_path / group.partition(".")[0])


def _groups(name: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the groups that stages load, one for each entry of a map, with their models."""
    params = _read(name)
    for group, field in AllParams.model_fields.items():
        if field.annotation is TrainParams:
            yield "train.common", Common
            yield from ((f"train.{run.variant}", load_variant(run.variant).Params) for run in params.runs.values())
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield group, field.annotation
        elif isinstance(entries := getattr(params, group), dict):
            yield from ((f"{group}.{entry}", get_args(field.annotation)[1]) for entry in entries)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


@each_profile
def test_its_stages_fit_together(name: str, repository: Path) -> None:
    params = _read(name)
    wanted = {f"train@{run}" for run in params.runs} | {f"mine@{entry}" for entry in params.mine}
    wanted |= {f"pretrain@{entry}" for entry in params.pretrain} | {f"fetch@{model}" for model in params.start_models}
    assert wanted | {"ingest", "compare", "report"} <= stages(repository, written(name))


@each_profile
def test_profile_uses_only_vectors_that_it_makes(name: str) -> None:
    params = _read(name)
    assert {params.cluster.vectors, params.filter.vectors} <= params.embed.models.keys()


@each_profile
def test_every_run_has_parameters_batches_and_a_start_model(name: str) -> None:
    params = _read(name)
    fetched = {f"models/start/{entry}" for entry in [*params.start_models, *params.pretrain]}
    assert params.evaluate.rerank is None or params.evaluate.rerank.first in {"BM25", *fetched}
    for entry, run in params.runs.items():
        assert getattr(params.train, run.variant) is not None, entry
        assert run.batches in {*POLICIES, *params.mine, *params.tune}, entry
        assert run.start in fetched | {f"models/{other}" for other in params.runs if other != entry}, entry
        assert (run.epochs or params.train.common.epochs) <= params.pack.epochs, entry


@each_profile
def test_the_parameters_of_every_run_go_together(name: str) -> None:
    params = _read(name)
    for entry, run in params.runs.items():
        common = overridden(params.train.common, run)
        common.check(entry, common.hard_negatives, common.negatives_stand_for)
        overridden(getattr(params.train, run.variant), run).check(entry, common)


@each_profile
def test_every_run_is_of_domains_that_are_read(name: str) -> None:
    params = composed(name)
    read = {source.get("domain") for source in params["ingest"]["sources"]}
    assert {domain for run in params["runs"].values() for domain in run.get("domains") or ()} <= read


@each_profile
def test_tokens_are_measured_only_for_runs(name: str) -> None:
    params = _read(name)
    assert set(params.tokens) <= params.runs.keys()


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_profile_says_its_cost_and_what_is_not_checked_and_pins_what_it_can(name: str) -> None:
    text = (ROOT / f"profiles/{name}.yaml").read_text(encoding="utf-8")
    head = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("#"))
    assert "# Cost: " in text and "hours of an H200" in head and "460,000" in head
    assert all(word in head for word in ("hecked: ", "Different: ", "stand-ins"))
    assert "rom memory" in head or "Not checked" in head
    params = composed(name)
    models = [*params["embed"]["models"].values(), *params["start_models"].values()]
    hub = [each for each in [*params["ingest"]["sources"], *models] if not each.get("name", "raw/").startswith("raw/")]
    assert [each for each in hub if len(each.get("revision", "")) != 40] == []
    assert params["train"]["common"]["precision"] == "bfloat16"
    assert len(params["evaluate"]["beir"]) > 0


@pytest.mark.parametrize("name", ["cde_unsupervised", "cde_supervised"])
def test_every_set_of_cde_has_the_prefixes_of_the_paper(name: str) -> None:
    params = _read(name)
    prefixes = params.start_models["cde" if name == "cde_supervised" else "nomic_bert"].prefixes
    surrogate = params.embed.models["nomic"]
    assert prefixes and surrogate.kind == "model" and prefixes == surrogate.prefixes
    sets = {source.domain for source in params.ingest.sources if source.kind == "huggingface"} - {None}
    assert len(sets or prefixes.domains) == PAPERS[name]
    kinds = [prefixes.of(domain, "document") for domain in sets or prefixes.domains]
    counts = {kind: kinds.count(f"{kind}: ") for kind in ("search_document", "search_query", "clustering")}
    if sets:
        assert counts == {"search_document": 11, "search_query": 1, "clustering": 11}
        assert prefixes.of("quora", "query") == "search_query: "
    else:
        assert counts == {"search_document": 8, "search_query": 0, "clustering": 9}
        assert prefixes.of("quora", "query") == "classification: "


def _read(name: str) -> AllParams:
    return AllParams.model_validate(composed(name))
