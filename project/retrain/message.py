"""What came of it, for people and programs: a file, and a webhook."""

import json
import os
import sys
import urllib.request
from typing import Literal, NamedTuple

from batchwright.core.files import write_json
from batchwright.core.runtime import scratch

CODES = {"promoted": 0, "failed": 1, "nothing new": 3, "rejected": 4}
"""Exit codes; 2 is that of a wrong command line."""
_TIMEOUT = 20


class Outcome(NamedTuple):
    """How a retraining ended."""

    kind: Literal["promoted", "failed", "nothing new", "rejected"]
    text: str

    @property
    def code(self) -> int:
        """The exit code."""
        return CODES[self.kind]


def tell(outcome: Outcome) -> None:
    """Write ``.scratch/retrain/message.json``, and post the same to ``BATCHWRIGHT_WEBHOOK`` if that is set.

    The key ``text`` is what chat programs show. A webhook that does not answer changes nothing.
    """
    message = {"outcome": outcome.kind, "exit_code": outcome.code, "text": f"{outcome.kind}: {outcome.text}"}
    write_json(scratch("retrain") / "message.json", message)
    if not (url := os.environ.get("BATCHWRIGHT_WEBHOOK")):
        return
    try:
        if not url.startswith(("http://", "https://")):
            raise ValueError("expected a URL that begins with http:// or https://")
        request = urllib.request.Request(url, json.dumps(message).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT):
            pass
    except (OSError, ValueError) as error:
        print(f"warning: BATCHWRIGHT_WEBHOOK: the message could not be sent: {error}", file=sys.stderr)
