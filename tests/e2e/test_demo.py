"""`make demo` shows what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_finds_explains_and_says_when_nothing_is_there() -> None:
    done = subprocess.run([sys.executable, str(DEMO)], capture_output=True, text=True, encoding="utf-8", check=True)
    asked, _, strict = done.stdout.partition("and with --strict")
    assert "Nothing relevant was found. The nearest:" in asked
    assert asked.count("Nothing relevant was found") == 1  # of what can be answered it says no such thing
    shown = strict.split("── Why")[0]
    assert "Nothing relevant was found.\n" in shown
    assert " 1. " not in shown
    assert "it is result 1" in strict
    assert "it is ranked " in strict
    said = re.search(
        r"for (\d+) of 60 questions \(hit@6 (\S+); keywords alone (\S+), vectors alone \S+\)\n$", done.stdout
    )
    assert said is not None
    found, hit, keywords = int(said[1]), float(said[2]), float(said[3])
    assert hit == round(found / 60, 2)
    assert hit >= keywords
