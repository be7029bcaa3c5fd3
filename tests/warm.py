"""A Python that has imported large libraries already: each command runs in a fork of it, which saves it seconds.

``python`` and ``dvc`` of the folder that ``started`` yields hand their arguments, folder, environment and streams to
it, and end as the fork ends. Nothing of this project is imported before the fork. What happens in a new process only,
such as another hash seed or variables that libraries read while they are imported, needs a real one.
"""

import ast
import atexit
import gc
import importlib
import logging
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LIBRARIES = ("apache_beam", "datasets", "dvc.cli", "dvc.repo", "faiss", "ray.train", "sentence_transformers", "sklearn")
PROGRAM = """#!/bin/sh
exec {python} -IS {client} "$0" "$@"
"""
CLIENT = """
import os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({address!r})
    message = repr((sys.argv[1:], os.getcwd(), dict(os.environ)))
    socket.send_fds(server, [message.encode()], [0, 1, 2])
    status = int(server.recv(9) or 1)
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@contextmanager
def started() -> Iterator[Path]:
    """Start such a Python, and yield a folder with programs that use it; it ends with the block."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (
        tempfile.TemporaryDirectory(prefix="warm-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
    ):
        address, client, programs = (Path(folder, name) for name in ("address", "client.py", "bin"))
        client.write_text(CLIENT.format(address=str(address)))
        programs.mkdir()
        for name in ("dvc", "python"):
            (programs / name).write_text(PROGRAM.format(python=sys.executable, client=client))
            (programs / name).chmod(0o755)
        server.bind(str(address))
        server.listen()
        process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=server,
            stdout=subprocess.PIPE,  # like most that commands get, it has no positions
            stderr=subprocess.STDOUT,
            env=environment,
        )
        try:
            yield programs
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """Import, and become what is asked for in a fork."""
    del sys.path[0]  # this folder
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()  # else every fork would copy all that was imported
    clients: dict[int, socket.socket] = {}
    signal.signal(signal.SIGCHLD, lambda *_: tell_ends(clients))
    with socket.socket(fileno=0) as server:
        while True:
            client, _ = server.accept()
            message, streams, *_ = socket.recv_fds(client, 1 << 20, 3)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # a command may end before it is noted
            command = os.fork()
            if not command:
                break
            clients[command] = client
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            for stream in streams:
                os.close(stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    for other in (client, *clients.values()):
        other.close()
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    arguments, folder, environment = ast.literal_eval(message.decode())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os._exit(status(arguments))  # to free all that was imported would take as long as most commands


def tell_ends(clients: dict[int, socket.socket]) -> None:
    """Tell those that wait for commands that have ended how they ended."""
    while clients:
        command, state = os.waitpid(-1, os.WNOHANG)
        if not command:
            return
        with clients.pop(command) as client, suppress(OSError):  # who asked may be gone
            client.send(b"%d" % os.waitstatus_to_exitcode(state))


def status(line: list[str]) -> int:
    """Run a command, and return what the process should end with."""
    try:
        run(*line)
        code: object = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def run(program: str, *arguments: str) -> None:
    """Do what the program does with these arguments."""
    sys.argv = [program, *arguments]
    logging.getLogger().handlers.clear()  # those of libraries that the program itself would not import
    if Path(program).name == "dvc":
        sys.exit(importlib.import_module("dvc.cli").main())
    how, *rest = arguments
    sys.path[:0] = [str(Path.cwd()), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if how == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(rest[0], {"__name__": "__main__"})
    else:
        sys.path[0] = str(Path(how).parent.resolve())
        sys.argv = list(arguments)
        runpy.run_path(how, run_name="__main__")


if __name__ == "__main__":
    main()
