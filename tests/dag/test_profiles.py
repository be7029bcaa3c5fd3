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
from trainers.common.params import Common
from trainers.variants import load_variant

PROFILES = [ROOT / "params.yaml", *sorted(set((ROOT / "profiles").glob("*.yaml")) - {ROOT / "profiles/current.yaml"})]

each_profile = pytest.mark.parametrize("profile", PROFILES, ids=lambda file: file.name)


@each_profile
def test_profile_is_accepted_by_every_stage(profile: Path) -> None:
    for group, model in _groups(profile):
        load_params(group, model, profile)


def _groups(profile: Path) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the groups that stages load, one for each entry of a map, with their models."""
    params = _read(profile)
    for name, field in AllParams.model_fields.items():
        if field.annotation is TrainParams:
            yield "train.common", Common
            yield from ((f"train.{run.variant}", load_variant(run.variant).Params) for run in params.runs.values())
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield name, field.annotation
        elif isinstance(entries := getattr(params, name), dict):
            yield from ((f"{name}.{entry}", get_args(field.annotation)[1]) for entry in entries)


@each_profile
def test_profile_uses_only_vectors_that_it_makes(profile: Path) -> None:
    params = _read(profile)
    assert {params.cluster.vectors, params.filter.vectors} <= params.embed.models.keys()


@each_profile
def test_every_run_has_parameters_batches_and_a_start_model(profile: Path) -> None:
    params = _read(profile)
    fetched = {f"models/start/{name}" for name in [*params.start_models, *params.pretrain]}
    for name, run in params.runs.items():
        assert getattr(params.train, run.variant) is not None, name
        assert run.batches in {*POLICIES, *params.mine, *params.tune}, name
        assert run.start in fetched | {f"models/{other}" for other in params.runs if other != name}, name


@each_profile
def test_tokens_are_measured_only_for_runs(profile: Path) -> None:
    params = _read(profile)
    assert set(params.tokens) <= params.runs.keys()


def _read(profile: Path) -> AllParams:
    return AllParams.model_validate(yaml.safe_load(profile.read_text(encoding="utf-8")))
