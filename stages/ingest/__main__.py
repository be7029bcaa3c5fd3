"""The command ``python -m stages.ingest``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.ingest",
        "Turns the sources in params.yaml into unique pairs: data/pairs, a Parquet file per domain, and "
        "data/rejects.parquet.",
        "python -m stages.ingest",
    )
