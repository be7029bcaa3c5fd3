"""Times: how long each stage took on this machine."""

from markupsafe import Markup
from matplotlib.axes import Axes

from batchwright.core.times import read_times
from stages.report import charts
from stages.report.section import Section, show_chart, show_long_table, side_by_side
from stages.report.table import Table

DRAWN = 12
"""The longest stages are drawn; the table names all."""


def section() -> Section | None:
    """Return the time of each stage's last run, if the scratch folder has any."""
    times = read_times()
    if not times:
        return None
    total = sum(times.values())
    rows = [[stage, duration(seconds), f"{seconds / (total or 1):.0%}"] for stage, seconds in times.items()]
    rows.append(["All of them", duration(total), "100%"])
    table = Table(header=["Stage", "Time", "Share"], rows=rows)
    return Section(
        id="times",
        title="Times of stages",
        intro="How long each stage took when it last ran to its end on this machine. If it was interrupted, only its "
        "last part counts.",
        parts=[side_by_side(show_chart(_chart(times)), show_long_table(table, "In the order in which they ended"))],
    )


def duration(seconds: float) -> str:
    """Format a time: ``0.4 s``, ``47 s``, ``12:05 min`` or ``3:20 h``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    whole, unit = (seconds, "min") if seconds < 3600 else (seconds / 60, "h")
    return f"{int(whole // 60)}:{int(whole % 60):02d} {unit}"


def _chart(times: dict[str, float]) -> Markup:
    longest = sorted(times.items(), key=lambda item: -item[1])[:DRAWN]

    def draw(axes: Axes) -> None:
        bars = axes.barh(range(len(longest)), [seconds for _, seconds in longest], color=charts.colour("contextual"))
        axes.bar_label(bars, [duration(seconds) for _, seconds in longest], padding=4)
        axes.set_yticks(range(len(longest)), [stage for stage, _ in longest])
        axes.invert_yaxis()
        axes.set(xlabel="seconds", xlim=(0, 1.25 * longest[0][1] or 1))
        axes.grid(visible=False)

    return charts.chart(draw, "Bar chart of the stages that took longest.", (charts.SIZE[0], 0.6 + 0.34 * len(longest)))
