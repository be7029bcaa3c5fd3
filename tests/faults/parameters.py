"""Parameters with all groups, for fuzzers to spoil, and each group in a file of its own, which is sooner read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, RootModel

from batchwright.core.params import Base, load_params, read_params
from batchwright.formats.runs import Runs
from pipelines.embed.params import EmbedParams
from pipelines.ingest.params import IngestParams
from project.retrain.gate import RetrainParams
from stages.cluster.params import ClusterParams
from stages.fetch import StartModel
from stages.filter.params import FilterParams
from stages.mine.params import Mining
from stages.pack.params import PackParams
from stages.params.check import check_params
from stages.pretrain import Pretrain
from stages.scoring.collection import EvaluateParams
from stages.teach import Teaching
from stages.tune.stage import Tuning
from tests.faults.sources import Seed
from tests.helpers import REPO
from trainers.common.params import Common
from trainers.variants import VARIANTS, load_variant


class Entries(RootModel[dict[str, dict[str, Any]]]):
    """A group with one entry for each run of a stage."""


GROUPS: dict[str, type[BaseModel]] = {
    "base": Base,
    "ingest": IngestParams,
    "embed": EmbedParams,
    "filter": FilterParams,
    "cluster": ClusterParams,
    "pack": PackParams,
    "train.common": Common,
    **{f"train.{variant}": load_variant(variant).Params for variant in VARIANTS},
    "runs": Runs,
    "evaluate": EvaluateParams,
    "retrain": RetrainParams,
}
ENTRIES: dict[str, type[BaseModel]] = {
    "start_models": StartModel,
    "pretrain": Pretrain,
    "mine": Mining,
    "teach": Teaching,
    "tune": Tuning,
}
"""Of each entry of a group."""
MORE: dict[str, Any] = {
    "mine": {"mined": {"model": "models/biencoder", "count": 4, "depth": 50}},
    "teach": {"taught": {"batches": "contextual", "model": "raw/models/reranker"}},
    "tune": {"best": {"run": "static", "share": 0.5}},
    "retrain": {"models": ["biencoder"], "most_loss": 0.1},
}


def parameter_seeds(folder: Path) -> Iterator[Seed]:
    """Write parameters below ``folder``."""
    whole = REPO / "params.yaml"
    (folder / "params.yaml").write_text(whole.read_text())
    yield "params.yaml", folder / "params.yaml", names_and_seed
    params = read_params(whole) | MORE
    params["train"] |= {variant: {} for variant in VARIANTS if variant not in params["train"]}
    for group, values in params.items():
        file = folder / f"{group}.yaml"
        file.write_text(yaml.safe_dump({group: values}))
        yield f"params {group}", file, group_of


def names_and_seed(file: Path) -> object:
    """Read what is read of a file before any group of a stage."""
    return check_params(file), load_params("base", Base, file)


def group_of(file: Path) -> object:
    """Read the only group of a file, as the stages read it."""
    check_params(file)
    group = file.stem
    if group in ENTRIES:
        names = load_params(group, Entries, file).root
        return [load_params(f"{group}.{name}", ENTRIES[group], file) for name in names]
    return [load_params(name, model, file) for name, model in GROUPS.items() if name.partition(".")[0] == group]
