"""The stages of ``dvc.yaml``, one package each. ``python -m stages.NAME`` reads artifacts and writes artifacts."""
