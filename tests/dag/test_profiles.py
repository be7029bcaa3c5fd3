"""Every profile is a whole set of parameters that all stages accept."""

import pytest
import yaml

from formats.params import Base, load_params
from pipelines.embed.params import EmbedParams
from pipelines.ingest.params import IngestParams
from stages.cluster.params import ClusterParams
from stages.evaluate.params import EvaluateParams
from stages.filter.params import FilterParams
from stages.mine.params import RoundParams
from stages.pack.params import PackParams
from tests.dag.closure import ROOT
from trainers.params import Common
from trainers.seed.pretraining.params import PretrainParams
from trainers.variants import load_variant

PROFILES = [ROOT / "params.yaml", *sorted((ROOT / "profiles").glob("*.yaml"))]
GROUPS = {
    "base": Base,
    "ingest": IngestParams,
    "embed": EmbedParams,
    "cluster": ClusterParams,
    "filter": FilterParams,
    "pack": PackParams,
    "train.common": Common,
    "evaluate": EvaluateParams,
}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda file: file.name)
def test_profile_is_accepted_by_every_stage(profile):
    for group, model in GROUPS.items():
        load_params(group, model, profile)
    for variant in yaml.safe_load(profile.read_text())["variants"]:
        load_params(f"train.{variant}", load_variant(variant).Params, profile)
    for variant in yaml.safe_load(profile.read_text())["pretrain"]:
        load_params(f"pretrain.{variant}", PretrainParams, profile)
    for name in yaml.safe_load(profile.read_text())["rounds"]:
        load_params(f"rounds.{name}", RoundParams, profile)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda file: file.name)
def test_profile_names_only_vectors_that_it_makes(profile):
    made = set(load_params("embed", EmbedParams, profile).models)
    assert load_params("cluster", ClusterParams, profile).vectors in made
    assert load_params("filter", FilterParams, profile).vectors in made
