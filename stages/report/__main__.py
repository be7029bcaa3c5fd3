"""The command ``python -m stages.report``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.report.stage",
        "Puts counts, hardness, curves and results on one page: report/index.html.",
        "python -m stages.report",
    )
