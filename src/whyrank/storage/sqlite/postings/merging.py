"""Pages of several segments merged into those of one: compiled or in numpy, to the same byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernel import COMPILED, Kernel
from ..sealed import BrokenSeal, seal
from .inversion import Inverted, merged, only
from .pages import PAGE_BYTES, pages, postings_of, read


class Source(NamedTuple):
    """Pages of a segment, by ascending key, and the number it counts from."""

    first: int
    pages: tuple[bytes, ...]


def merged_pages(
    sources: Sequence[Source],
    first: int,
    low: int,
    below: int | None,
    gone: NDArray[np.bool_],
    kernel: Kernel | None = COMPILED,
) -> list[tuple[int, bytes]]:
    """Merge the keys from `low` to below another, if one is given, into pages that count from `first`.

    What is gone is left out: flags by number, counted from `first`; nobody is where there are no flags.
    """
    try:
        if kernel is None:
            return [*_merged(sources, first, low, below, gone)]
        for page in chain.from_iterable(source.pages for source in sources):
            read(page, kernel)  # its seal
        made = kernel.merged_pages(tuple(sources), first, low, below, gone, PAGE_BYTES)
    except (ValueError, IndexError) as error:  # sealed, and not what it says
        raise BrokenSeal from error
    return [(key, seal(body)) for key, body in made]


def _merged(
    sources: Sequence[Source], first: int, low: int, below: int | None, gone: NDArray[np.bool_]
) -> Iterator[tuple[int, bytes]]:
    parts = [_between(postings_of(read(page), source.first), low, below) for source in sources for page in source.pages]
    if not parts:
        return iter(())
    postings = merged(parts)
    if len(gone):
        postings = only(postings, ~gone[postings.numbers - first])
    return pages(postings, first)


def _between(postings: Inverted, low: int, below: int | None) -> Inverted:
    inside = (postings.keys >= low) & (True if below is None else postings.keys < below)
    return postings if inside.all() else only(postings, inside)
