"""Programs that fork with an open engine: each says what was acknowledged, in lines of its standard output.

python -m tests.reliability.forks PROGRAM STORE [OPTION…]
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import whyrank
from whyrank.errors import WhyrankError

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES = 5  # of every process, at each of its stages
CHILDREN = 4


def opened(store: str) -> whyrank.Engine:
    return whyrank.open(store, workspace=Path(store).parent, embedding="none", calibration="manual")


def said(kind: str, text: str) -> None:
    """Print one line in one call, so that lines of several processes stay whole."""
    os.write(1, f"{kind}\t{text}\n".encode())


def write(engine: whyrank.Engine, label: str) -> None:
    """Store some facts; acknowledged or refused, each is said."""
    for number in range(WRITES):
        text = f"Crate {label}n{number}x waits on the quay"
        try:
            engine.add(text)
        except WhyrankError as error:
            said("refused", f"{text}: {error}")
        else:
            said("acknowledged", text)


def forked(work: Callable[[], None]) -> int:
    """Fork a child that works and leaves without any cleaning up of its parent's; return its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        said("error", repr(error))
    finally:
        os._exit(status)


def reaped(children: list[int]) -> None:
    for child in children:
        _, status = os.waitpid(child, 0)
        if status:
            said("error", f"a child ended with {status}")


def parent_ends_first(store: str, whose: str, how: str) -> None:
    """Fork with an open engine; the parent closes it, or ends, while the child still writes."""
    engine = opened(store)
    write(engine, "before")
    gone, still = os.pipe()

    def work() -> None:
        os.close(still)
        own = engine if whose == "inherited" else opened(store)
        write(own, "early")
        os.read(gone, 1)  # until the parent has closed its engine, or is no more
        write(own, "late")
        own.close()

    child = forked(work)
    time.sleep(0.2)  # so that the child has written
    if how == "closes":
        engine.close()
        os.close(still)
        reaped([child])
    elif how == "goes on":
        write(engine, "parent")
        os.close(still)
        reaped([child])
        write(engine, "after")
        engine.close()
    elif how == "is killed":
        os._exit(0)
    # Else it leaves without closing anything, and Python does what it does at its end.


def while_a_thread_writes(store: str) -> None:
    """Fork again and again while a thread writes; parent and children go on without waiting for each other's locks."""
    engine, is_over = opened(store), threading.Event()
    write(engine, "before")

    def keep_writing() -> None:
        number = 0
        while not is_over.is_set():
            text = f"Crate thread{number}x waits on the quay"
            engine.add(text)
            said("acknowledged", text)
            number += 1

    thread = threading.Thread(target=keep_writing)
    thread.start()
    for number in range(CHILDREN):

        def work(number: int = number) -> None:
            with opened(store) as own:
                write(own, f"child{number}")

        began = time.monotonic()
        reaped([forked(work)])
        said("seconds", f"{time.monotonic() - began:.3f}")
    is_over.set()
    thread.join()
    write(engine, "after")
    engine.close()


def _task(given: tuple[str, int]) -> None:
    store, number = given
    with opened(store) as own:
        write(own, f"task{number}")


def pooled(store: str, method: str) -> None:
    """Hand work to a pool of `multiprocessing` while an engine is open, and close that before the pool is done."""
    engine = opened(store)
    write(engine, "before")
    with multiprocessing.get_context(method).Pool(CHILDREN) as pool:
        pending = pool.map_async(_task, [(store, number) for number in range(3 * CHILDREN)], chunksize=1)
        time.sleep(0.1)
        engine.close()
        pending.get(60)
        pool.close()
        pool.join()


def _serve(listening: socket.socket, engine: whyrank.Engine) -> None:
    """Answer connections one after the other: a line is a fact, and is answered when it is stored."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        connection, _ = listening.accept()
        with connection, connection.makefile("rw", encoding="utf-8") as stream:
            for line in stream:
                try:
                    engine.add(line.strip())
                except WhyrankError as error:
                    stream.write(f"refused {error}\n")
                else:
                    stream.write("stored\n")
                stream.flush()


def preforked(store: str, whose: str, how: str) -> None:
    """Serve as prefork servers do: the master opens and warms an engine, forks workers, and may leave before them."""
    engine = opened(store)
    write(engine, "before")
    engine.search("crate")
    listening = socket.create_server(("127.0.0.1", 0))
    workers = [
        forked(lambda: _serve(listening, engine if whose == "inherited" else opened(store))) for _ in range(CHILDREN)
    ]
    said("port", str(listening.getsockname()[1]))
    said("workers", " ".join(map(str, workers)))
    if how == "closes":
        engine.close()
    elif how == "exits":
        os._exit(0)
    sys.stdin.read()  # until the test has asked all it wants
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
        os.waitpid(worker, 0)
    if how == "goes on":
        write(engine, "after")
        engine.close()


PROGRAMS: dict[str, Callable[..., None]] = {
    "parent ends first": parent_ends_first,
    "while a thread writes": while_a_thread_writes,
    "pooled": pooled,
    "preforked": preforked,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
