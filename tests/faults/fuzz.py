"""Spoil valid inputs, and read them in processes that may crash: ``python -m tests.faults.fuzz readers SECONDS``.

``models`` instead of ``readers`` spoils folders of models, which takes longer.
A reader may accept a spoiled file, or refuse it with an ``InputError``. Anything else is a fault, and so is more than
1 GiB of memory.
"""

import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from batchwright.core.errors import InputError
from tests.faults.seeds import seeds
from tests.faults.sources import Seed

Make = Callable[[Path], Iterable[Seed]]
"""Writes valid inputs below a folder."""
BATCH, SLOW, ADDRESSES, RESIDENT = 200, 20, 6 << 30, 1 << 20
"""Inputs a process, seconds, bytes and KiB."""
TOKENS = [
    b"\x00",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"[" * 3000,
    b"{" * 3000,
    b"9" * 400,
    b"9" * 6000,
    b"2020-13-45",
    b"1e999",
    b"NaN",
    b'"',
    b"\n",
]
TOKENS += [
    b"\xed\xa0\x80",
    b"\xc3",
    b"\r",
    b"\t",
    b"&a [*a, *a]",
    b"!!python/object:os.system",
    b"\x1b[2J",
    b"0x",
    b"-1",
    b"null",
]


def spoil(content: bytes, rng: random.Random) -> bytes:
    """Return the content with one or a few small changes."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place:place] = rng.choice(TOKENS)
        elif kind == 2:
            del data[place : place + rng.choice([1, 4, 50])]
        elif kind == 3:
            data[place : place + 4] = rng.randrange(2**32).to_bytes(4, "little")
        elif kind == 4:
            other = rng.randrange(len(data) + 1)
            data[place:place] = data[other : other + 40]
        elif len(data) > 8:
            del data[rng.randrange(8, len(data)) :]
    return bytes(data)


def work(make: Make, name: str, seed: int, folder: str, pipe: "multiprocessing.connection.Connection") -> None:
    """Read ``BATCH`` spoiled copies of one input; send each number before it is read, and each fault."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    found = {each: (file, read) for each, file, read in make(Path(folder))}
    file, read = found[name]
    content, before = file.read_bytes(), _resident()
    for number in range(seed, seed + BATCH):
        pipe.send(("begun", number))
        file.write_bytes(spoil(content, random.Random(number)))
        try:
            read(file)
        except InputError:
            pass
        except BaseException:
            pipe.send(("traceback", (number, traceback.format_exc()[-1500:])))
        if (most := _resident() - before) > RESIDENT:
            pipe.send(("too much memory", (number, f"{most / 2**20:.1f} GiB")))
            break
    pipe.send(("done", 0))


def _resident() -> int:
    """The most memory that this process has had, which begins with what the process that forked it has."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def batch(name: str, seed: int, make: Make = seeds) -> Counter[str]:
    """Run one process to its end, or until it hangs; print and count its faults."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=work, args=(make, name, seed, folder, theirs))
        process.start()
        theirs.close()
        at = seed
        while True:
            try:
                if not ours.poll(SLOW):
                    process.kill()
                    counts["hang"] += 1
                    print(f"{name}, {at}: hang", flush=True)
                    break
                kind, value = ours.recv()
            except EOFError:
                process.join()
                counts["crash"] += 1
                print(f"{name}, {at}: {signal.Signals(-(process.exitcode or -1)).name}", flush=True)
                break
            if kind == "begun":
                at, counts["inputs"] = value, counts["inputs"] + 1
            elif kind == "done":
                break
            else:
                counts[kind] += 1
                print(f"{name}, {value[0]}: {kind}\n{value[1]}", flush=True)
        process.join()
    return counts


def main(seconds: float, seed: int = 0, make: Make = seeds) -> Counter[str]:
    """Go through all inputs again and again for ``seconds``."""
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name, _, _ in make(Path(folder))]
    random.Random(seed).shuffle(names)  # a short run may not reach the last ones
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while True:
        for name in names:
            counts += batch(name, seed, make)
            if time.monotonic() > end:
                return counts
        seed += BATCH


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    kind, seconds, *first = sys.argv[1:]
    if kind == "models":
        from tests.faults.models import model_seeds  # needs torch, which the other readers do not
    made = {"readers": seeds, "models": lambda folder: model_seeds(folder)}[kind]
    print(dict(main(float(seconds), *map(int, first), make=made)))
