"""Messages as a terminal may show them: safe, short, and with a suggestion for an unknown name."""

import difflib
from collections.abc import Iterable

from batchwright.core.runtime import scratch_root

MOST = 500


def safe(text: str) -> str:
    """Return a text that cannot control a terminal: characters that are not printable are escaped, but line ends."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def short(text: str, program: str) -> str:
    """Return a text as ``safe`` has it, cut to ``MOST`` characters; all of a longer one goes to a scratch file."""
    text = safe(text)
    if len(text) <= MOST:
        return text
    file = scratch_root() / "messages" / f"{program.replace('/', '-')[:40]}.txt"
    rest = f"... (all of it is in {file})"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    except OSError:  # such as a full disk: the beginning must do
        rest = "..."
    return _cut(text, MOST - len(rest)) + rest


def _cut(text: str, length: int) -> str:
    """Cut between lines, or between words, if that leaves most of the text."""
    start = text[: max(length, 0)]
    for end in ("\n", " "):
        if (place := start.rfind(end)) > length // 2:
            return start[: place + 1]
    return start


def shown(text: str, most: int = 60) -> str:
    """Return a text in quotation marks, on one line, cut to ``most`` characters."""
    line = safe(text[:most].replace("\n", "\\n"))
    return f"'{line}{'…' if len(text) > most else ''}'"


def nearest(unknown: str, known: Iterable[str]) -> str | None:
    """The known name closest to ``unknown``, or None if none is close."""
    return next(iter(difflib.get_close_matches(unknown, list(known), n=1, cutoff=0.5)), None)


def hint(unknown: str, known: Iterable[str]) -> str:
    """The end of an error message: the closest known name, otherwise all known names; empty if there are none."""
    names = list(known)
    if close := nearest(unknown, names):
        return f"; did you mean '{close}'?"
    return f"; known: {', '.join(names)}" if names else ""
