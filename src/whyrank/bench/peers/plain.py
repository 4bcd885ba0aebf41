"""whyrank as it is where no C compiler was found: what the compiled kernel brings is the difference."""

from __future__ import annotations

from ..contestant import Ability
from ..ours import Ours


class WithoutKernel(Ours):
    """One whyrank store that is searched by numpy alone; writing is the same and competes once."""

    name = "whyrank without kernel"
    offers: frozenset[Ability] = frozenset({"keyword", "nearest", "search"})
    kernel = None
