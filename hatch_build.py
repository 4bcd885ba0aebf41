"""Build the compiled kernel with the package where a C compiler is found; without one the package is pure Python."""

from __future__ import annotations

import compileall
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

_MODULE = "whyrank._kernel"
# No product may be fused with a sum: the numbers must be those of numpy, to the last bit.
_FLAGS = [] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-fvisibility=hidden"]


class KernelHook(BuildHookInterface[Any]):
    """Compiles `kernel/` into the package, by the stable interface of Python: for this version and later ones."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the compiled module into the wheel, if it can be made."""
        if version == "editable":
            # pip byte-compiles what it copies, not what it links to; where Python may write no byte code, every command
            # would compile the package again.
            compileall.compile_dir(Path(self.root) / "src" / "whyrank", quiet=2)
        built = _built(Path(self.root))
        if built is None:
            self.app.display_warning("no C compiler could build the kernel: whyrank works without it, and slower")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        # Built by 3.13 or newer, older interpreters refuse its `#` formats: it serves its own version and later.
        build_data["tag"] = f"cp{sys.version_info.major}{sys.version_info.minor}-abi3-{platform}"
        build_data["artifacts"].append(f"/{built.relative_to(self.root).as_posix()}")


def _built(root: Path) -> Path | None:
    sources = sorted(str(path.relative_to(root)) for path in (root / "kernel").glob("*.c"))
    extension = Extension(_MODULE, sources, py_limited_api=True, extra_compile_args=_FLAGS)
    distribution = Distribution({"name": "whyrank", "ext_modules": [extension], "package_dir": {"": "src"}})
    command = build_ext(distribution)
    command.inplace = True
    command.force = True
    command.build_temp = str(root / "build" / "kernel")
    command.ensure_finalized()
    try:
        command.run()
    except (BaseError, CCompilerError):
        return None
    return root / command.get_ext_fullpath(_MODULE)
