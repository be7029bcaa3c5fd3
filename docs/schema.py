"""The whole of ``params.yaml`` as one model, and its JSON schema."""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from batchwright.core.names import Name
from batchwright.core.params import Base, Params
from pipelines.embed.params import EmbedParams
from pipelines.ingest.params import IngestParams
from project.retrain.gate import RetrainParams
from stages.cluster.params import ClusterParams
from stages.fetch import StartModel
from stages.filter.params import FilterParams
from stages.mine.params import Mining
from stages.pack.params import PackParams
from stages.pretrain import Pretrain
from stages.scoring.collection import EvaluateParams
from stages.teach import Teaching
from stages.tune.stage import Tuning
from trainers.biencoder import Params as BiencoderParams
from trainers.cde.start import Params as CdeParams
from trainers.common.params import Common, run_model
from trainers.seed_encoder import Params as SeedEncoderParams
from trainers.xtr.learner import Params as XtrParams


class TrainParams(Params):
    """Group ``train``; every variant that ``runs`` names needs its group."""

    common: Common
    """What all runs share, unless their entry in ``runs`` says otherwise."""
    biencoder: BiencoderParams | None = None
    """The plain biencoder: one encoder, one vector per text."""
    cde: CdeParams | None = None
    """Contextual document embeddings: texts are read together with documents of their corpus."""
    seed_encoder: SeedEncoderParams | None = None
    """Fine-tuning of an encoder that was pre-trained with a weak decoder."""
    xtr: XtrParams | None = None
    """One vector per token; documents are found by the tokens that a query's tokens retrieve."""


_VARIANTS: dict[str, type[Params]] = {
    "VARIANT": BiencoderParams,  # which has what all have, and temperature: auto
    "cde": CdeParams,
    "seed_encoder": SeedEncoderParams,
    "xtr": XtrParams,
}
Run = run_model({"common": Common, **_VARIANTS})


class AllParams(Params):
    """All of ``params.yaml``."""

    base: Base
    """What all stages share."""
    ingest: IngestParams
    """Reads sources, and writes their pairs domain by domain."""
    embed: EmbedParams
    """Turns texts into vectors."""
    filter: FilterParams
    """Decides which documents of a batch are false negatives and must be masked."""
    cluster: ClusterParams
    """Groups pairs that are hard for each other."""
    pack: PackParams
    """Packs clusters into training batches."""
    start_models: dict[Name, StartModel]
    """Models to start training from, fetched to ``models/start/NAME``."""
    pretrain: dict[Name, Pretrain]
    """Encoders to pre-train on the texts of all training pairs and more, written to ``models/start/NAME``."""
    train: TrainParams
    """How models are trained, by variant."""
    runs: dict[Name, Run]  # type: ignore[valid-type]
    """What to train: each run produces ``models/NAME`` and its results."""
    tune: dict[Name, Tuning]
    """Settings and batches for a run, found by short trials. A run takes them with ``batches: NAME``."""
    mine: dict[Name, Mining]
    """Copies of the contextual batches, in ``data/shards/NAME``, with hard negatives that models and BM25 find."""
    teach: dict[Name, Teaching]
    """Copies of batches, in ``data/shards/NAME``, with a teacher's scores of documents and hard negatives."""
    tokens: list[Name]
    """Runs of the variant ``xtr`` whose retrieval by tokens is measured."""
    evaluate: EvaluateParams
    """What trained models and baselines are evaluated on."""
    retrain: RetrainParams | None = None
    """What ``batchwright retrain`` promotes."""


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles of fields, which only repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def schema() -> dict[str, Any]:
    """The JSON schema of ``params.yaml``."""
    found = AllParams.model_json_schema(schema_generator=_Untitled)
    for model in [found, *found["$defs"].values()]:
        del model["title"]
        if "kind" in model["properties"]:  # its value selects the model, so the model's docstring describes it
            model["properties"]["kind"].setdefault("description", model["description"])
    plain: dict[str, Any] = json.loads(json.dumps(found).replace("``", "`"))
    return {"$schema": GenerateJsonSchema.schema_dialect, **plain}
