"""The command ``python -m stages.ingest``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.ingest.stage",
        "Turns the sources in params.yaml into unique pairs: data/pairs, one Parquet file per domain, and "
        "data/rejects.parquet.",
        "python -m stages.ingest",
    )
