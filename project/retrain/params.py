"""Parameters of retraining: what a new model must not lose."""

from pydantic import Field

from batchwright.core.params import PARAMS_FILE, Params, load_params, read_params


class RetrainParams(Params):
    """Group ``retrain``: what ``batchwright retrain`` promotes. The group may be left out."""

    models: list[str] | None = None
    """The runs that are deployed, together: all of them must pass. Null means all ``runs``."""
    most_loss: float = Field(default=0.02, ge=0)
    """nDCG@10 that a model may lose in a collection or a domain, compared with the deployed model on the same queries.
    Over all queries together it may lose nothing."""
    significance: float = Field(default=0.05, gt=0, le=1)
    """A larger loss in a collection or a domain counts if its paired p value is below this."""
    most_drift: float = Field(default=0.1, ge=0)
    """nDCG@10 by which the deployed model may be worse on a domain's held-out pairs of today than on those of the night
    when it was promoted. A larger, significant drop means that the data are broken, and scores on them say nothing."""
    floor: float = Field(default=0.0, ge=0, le=1)
    """Least nDCG@10 of each model in each collection."""
    review: bool = False
    """Push what passes as the branch ``candidate``, for a person to merge and ``batchwright promote``."""


def retrain_params() -> RetrainParams:
    """Read the group ``retrain`` of ``params.yaml``, or return its defaults."""
    return load_params("retrain", RetrainParams) if "retrain" in read_params(PARAMS_FILE) else RetrainParams()
