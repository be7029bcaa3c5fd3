"""Beam's own job service on this machine, as Flink or Spark would be reached."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import start_python


@contextmanager
def portable_runner(port: Path) -> Iterator[str]:
    """Run the service, which writes its number to ``port``, and yield the ``BEAM_OPTIONS`` that send work there."""
    module = "apache_beam.runners.portability.local_job_service_main"
    with start_python("-m", module, "--port_file", str(port), cwd=port.parent) as process:
        try:
            while not (port.exists() and port.read_text()):
                assert process.poll() is None
                time.sleep(0.05)
            endpoint = f"localhost:{port.read_text()}"
            yield f"--runner=PortableRunner --job_endpoint={endpoint} --environment_type=LOOPBACK"
        finally:
            process.kill()
