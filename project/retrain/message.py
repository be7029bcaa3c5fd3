"""The message of a run: that it is alive and in which stage, then what came of it, in a file and to a webhook."""

import json
import os
import platform
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.runtime import scratch
from project.programs import git

CODES = {"promoted": 0, "failed": 1, "nothing new": 3, "rejected": 4}
"""Exit codes; 2 is that of a wrong command line."""
RUNNING = "running"
BEAT = 60.0
"""Seconds after which a run says again that it is alive."""
_TIMEOUT = 20


class Outcome(NamedTuple):
    """How a retraining ended."""

    kind: Literal["promoted", "failed", "nothing new", "rejected"]
    text: str
    commit: str = ""
    """What was published, if anything was."""

    @property
    def code(self) -> int:
        """The exit code."""
        return CODES[self.kind]


class Message:
    """``.scratch/retrain/message.json``: within the block ``running``, every minute again, until ``tell`` ends it.

    So a killed run leaves its own message, not that of the night before: that it runs, with the time when it last did.
    """

    def __init__(self) -> None:
        self.stage = "beginning"
        self._commit = ""
        self._began = time.time()
        self._file = scratch("retrain") / "message.json"
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __enter__(self) -> "Message":
        with suppress(OSError, ValueError):  # the first run has none, and a power failure may leave it empty
            before = json.loads(self._file.read_bytes())
            if before["outcome"] == RUNNING:
                print(f"retrain: the run before was killed: {before['text']}", flush=True)
        self.in_stage(self.stage)
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def at(self, step: str) -> None:
        """Say what is done now."""
        print(f"retrain: {step}", flush=True)
        self.in_stage(step)

    def in_stage(self, stage: str) -> None:
        """Note the stage that has begun, and the commit that it works on."""
        self.stage = stage
        with suppress(InputError):  # there is no repository, or no commit; preflight says so
            self._commit = git("rev-parse", "HEAD")
        self._write(RUNNING)

    def tell(self, outcome: Outcome) -> None:
        """Write what came of it, and post the same to ``BATCHWRIGHT_WEBHOOK`` if that is set.

        The key ``text`` is what chat programs show. A webhook that does not answer changes nothing.
        """
        self._ended.set()
        message = self._write(outcome.kind, outcome.text, outcome.commit, outcome.code)
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

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            self._write(RUNNING)

    def _write(self, outcome: str, text: str = "", commit: str = "", code: int | None = None) -> dict[str, Any]:
        with self._lock:
            if outcome == RUNNING and self._ended.is_set():
                return {}
            now = time.time()
            where = {"project": Path.cwd().name, "host": platform.node(), "commit": commit or self._commit}
            when = {"began": _utc(self._began), "time": _utc(now), "seconds": round(now - self._began)}
            about = (
                f"{where['project']} on {where['host']}, {when['began']}, {_duration(round(now - self._began))}, "
                f"commit {where['commit'][:10] or 'none'}, at: {self.stage}"
            )
            message = {
                "outcome": outcome,
                "exit_code": code,
                "stage": self.stage,
                **where,
                **when,
                "text": f"{outcome}: {text}\n{about}" if text else f"{outcome}: {about}",
            }
            write_json(self._file, message, durable=outcome != RUNNING)
            return message


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
