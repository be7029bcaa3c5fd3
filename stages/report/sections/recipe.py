"""The recipe: which epochs of each domain are hard, and why."""

from batchwright.core.paths import RESULTS
from stages.report.records import Record, read_record
from stages.report.section import Section, show_long_table
from stages.report.table import Table

FILE = RESULTS / "pack" / "contextual.json"


class Domain(Record):
    """A domain in ``results/pack/contextual.json``; ``because`` is empty if its share was given."""

    cluster_share: list[float] = []
    because: str = ""


class Packed(Record):
    """What ``results/pack/contextual.json`` says of domains."""

    domains: dict[str, Domain] = {}


def section() -> Section | None:
    """Return a table of the decisions, if ``pack`` made any."""
    decided = {}
    if FILE.exists():
        domains = read_record(Packed, FILE, made_by="pack").domains
        decided = {name: domain for name, domain in domains.items() if domain.because}
    if not decided:
        return None
    rows = [
        [name, " ".join("hard" if share else "random" for share in domain.cluster_share), domain.because]
        for name, domain in sorted(decided.items())
    ]
    table = Table(header=["Domain", "Epochs", "Because"], rows=rows, words=frozenset({0, 1, 2}))
    return Section(
        id="recipe",
        title="Recipe",
        intro="Where hard batches pay, the second half of the epochs is hard. pack.cluster_share overrides this.",
        parts=[show_long_table(table, "Decisions by domain")],
    )
