"""Adapters as other people would write them."""

from __future__ import annotations

from whyrank_conformance.sound import Sound


class Stranger(Sound):
    """One that works."""

    name = "stranger"


class Absent(Sound):
    """One whose package nobody has."""

    name = "absent"
    packages = ("no-such-distribution",)
    install = "pip install it"
