"""Measure the tree: entries, modules, lines, layers, import chains and words. Run by `make check`.

    python tools/tree.py [--json]

Exit status 1 if an entry of the package root, an import layer or a chain of imports is above its limit.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import grimp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "whyrank"
KERNEL = ROOT / "kernel"
# Words of the field that end like a gerund or a participle and are nouns there.
FIELD_WORDS = frozenset({"chunking", "embedding", "formatting", "ranking", "reranking", "stemming", "tuning"})
VAGUE = ("What", "Who", "Tell", "Say")  # docstrings that begin so name no subject


class Figure(NamedTuple):
    """One measured number and, where creeping growth must fail a build, its limit."""

    name: str
    value: int
    limit: int | None = None

    @property
    def is_above(self) -> bool:
        """Return whether the limit is exceeded."""
        return self.limit is not None and self.value > self.limit


def measure() -> list[Figure]:
    """Measure everything, the figures with a limit first."""
    files = sorted(PACKAGE.rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    classes = Counter(node.name for tree in trees.values() for node in _public_classes(tree))
    c_files = [*KERNEL.glob("*.c"), *KERNEL.glob("*.h")]
    return [
        Figure("entries in the package root", len({path.relative_to(PACKAGE).parts[0] for path in files}), 18),
        Figure("import layers", len(_layers()), 11),
        Figure("longest chain of imports", _longest_chain(), 15),
        Figure("modules", len(files)),
        Figure("lines of Python", sum(map(_lines, files))),
        Figure("lines of C", sum(map(_lines, c_files))),
        Figure("entry points of the kernel", _entry_points()),
        Figure("modules that name the kernel", sum(map(_names_kernel, trees.values()))),
        Figure("modules named by a gerund or participle", sum(_is_gerund(path.stem) for path in files)),
        Figure("class names that exist twice", sum(count > 1 for count in classes.values())),
        Figure("docstrings without a subject", sum(_vague_docstrings(trees.values()))),
    ]


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def _public_classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def _layers() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers: list[str] = next(one["layers"] for one in contracts if one["type"] == "layers")
    return layers


def _longest_chain() -> int:
    """Return how many modules the longest chain of imports has; imports for type checkers alone do not count."""
    graph = grimp.build_graph("whyrank", exclude_type_checking_imports=True, cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    chains: dict[str, int] = {}
    for module in TopologicalSorter(imported).static_order():  # a circle of imports raises CycleError
        chains[module] = 1 + max((chains[one] for one in imported[module]), default=0)
    return max(chains.values())


def _entry_points() -> int:
    source = (KERNEL / "module.c").read_text(encoding="utf-8")
    return len(re.findall(r"^\s*\{\"\w+\",", source, flags=re.MULTILINE))


def _names_kernel(tree: ast.Module) -> bool:
    """Return whether a module names the compiled kernel; its numpy twin and its users do not."""
    return any(isinstance(node, ast.Constant) and node.value == "whyrank._kernel" for node in ast.walk(tree))


def _is_gerund(stem: str) -> bool:
    return stem.endswith(("ing", "ed")) and stem not in FIELD_WORDS


def _vague_docstrings(trees: Iterable[ast.Module]) -> Iterator[bool]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                yield text is not None and text.split()[0] in VAGUE


def main() -> int:
    """Print the table; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    figures = measure()
    if parser.parse_args().json:
        print(json.dumps({figure.name: figure.value for figure in figures}))
    else:
        for figure in figures:
            limit = "" if figure.limit is None else f"  (at most {figure.limit})"
            print(f"{figure.value:>7,}  {figure.name}{limit}")
    above = [figure.name for figure in figures if figure.is_above]
    if above:
        print(f"above the limit: {', '.join(above)}", file=sys.stderr)
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
