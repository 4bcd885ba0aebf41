"""Run the tests of the kernel once with AddressSanitizer and UndefinedBehaviorSanitizer. Run by `make sanitize`.

The kernel is built into a copy of the package, so that the one in use stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FLAGS = (
    *("-O1", "-g", "-fno-omit-frame-pointer", "-ffp-contract=off", "-shared", "-fPIC", "-fvisibility=hidden"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
)
TESTS = (
    "tests/unit/test_kernel.py",
    "tests/properties/test_kernel_laws.py",
    "tests/properties/test_kernel_merging_laws.py",
    "tests/properties/test_diversity_laws.py",
    "tests/unit/storage/test_vectors.py",
)


def build(into: Path, compiler: str) -> Path:
    """Copy the package and build its kernel with both sanitizers; return the folder to import from."""
    shutil.copytree(ROOT / "src", into / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    module = into / "src" / "whyrank" / "_kernel.abi3.so"
    sources = sorted(map(str, (ROOT / "kernel").glob("*.c")))
    headers = f"-I{sysconfig.get_path('include')}"
    subprocess.run([compiler, *FLAGS, headers, *sources, "-o", str(module), "-lm"], check=True)
    return into / "src"


def run(tests: tuple[str, ...], source: Path, compiler: str) -> int:
    """Run tests with the kernel that was built; return pytest's exit status, or that of the report."""
    runtime = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)]),
        "LD_PRELOAD": runtime.stdout.strip(),  # has to come before what Python itself has loaded
        "ASAN_OPTIONS": "detect_leaks=0",  # Python frees little of what it holds at its end
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that each object has bounds of its own
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["--hypothesis-profile=sanitize", *tests]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> None:
    """Build and run; fail if a test does, or a sanitizer has found something."""
    compiler = os.environ.get("CC", "gcc")
    with tempfile.TemporaryDirectory(prefix="whyrank-sanitize-") as place:
        sys.exit(run(tuple(sys.argv[1:]) or TESTS, build(Path(place), compiler), compiler))


if __name__ == "__main__":
    main()
