"""The stages of ``dvc.yaml``, one folder each: ``python -m stages.NAME`` reads artifacts and writes artifacts."""
