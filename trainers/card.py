"""Model cards."""

from pathlib import Path
from string import Template

import yaml

from formats.fingerprint import fingerprint
from formats.manifest import Manifest
from trainers.job import TrainJob


def write_card(folder: Path, template: Path, job: TrainJob, manifest: Manifest, steps: int) -> None:
    """Fill a variant's card template: what the model was trained from, on what and how."""
    facts = {
        "base_model": f"base_model: {job.hub_name}\n" if job.hub_name else "",
        "start": job.hub_name or Path(job.params.model).name,
        "policy": manifest.policy,
        "batch_size": manifest.batch_size,
        "steps": steps,
        "pairs": steps * manifest.batch_size,
        "manifest": fingerprint(manifest.model_dump()),
        "seed": job.seed,
        "parameters": yaml.safe_dump(
            {"common": job.common.model_dump(), job.variant: job.params.model_dump(exclude={"model"})}, sort_keys=True
        ).rstrip(),
    }
    (folder / "README.md").write_text(Template(template.read_text(encoding="utf-8")).substitute(facts), "utf-8")
