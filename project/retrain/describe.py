"""What the gate found, as text."""

from collections.abc import Sequence

from project.retrain.gate import ALL, Verdict

_MOST_LINES = 60


def describe(verdicts: Sequence[Verdict]) -> str:
    """Return a line for each comparison, what failed first."""
    lines = [_line(verdict) for verdict in sorted(verdicts, key=lambda verdict: not verdict.failed)]
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], *([f"and {more} more"] if more > 0 else [])])


def _line(verdict: Verdict) -> str:
    if not verdict.model:
        return f"domain {verdict.domain}: FAILED: {verdict.failed}"
    parts = [part for part in (verdict.collection, verdict.domain) if part != ALL]
    where = " ".join([verdict.model, "on", *(parts or ["all collections"])])
    failed = f" FAILED: {verdict.failed}" if verdict.failed else ""
    return f"{where}: nDCG@10 {verdict.new:.4f}{_change(verdict)}, {verdict.queries:,} queries{failed}"


def _change(verdict: Verdict) -> str:
    if verdict.change is None:
        return ", not deployed before"
    error = f" ± {verdict.change.error:.4f}" if verdict.queries > 1 else ""
    return f", {verdict.change.mean:+.4f}{error} over what is deployed"
