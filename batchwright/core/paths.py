"""Paths of the artifacts, relative to the project folder."""

from pathlib import Path

PIPELINE = Path("dvc.yaml")
DATA = Path("data")
PAIRS = DATA / "pairs"
REJECTS = DATA / "rejects.parquet"
VECTORS = DATA / "vectors"
NEGATIVES = DATA / "negatives"
CLUSTERS = DATA / "clusters"
SHARDS = DATA / "shards"
MODELS = Path("models")
START_MODELS = MODELS / "start"
SCORES = DATA / "scores"
RESULTS = Path("results")
EXPERIMENTS = Path("experiments")
REPORT = Path("report/index.html")
