"""The planted bugs still fit the source they are planted in; `make mutants` plants them."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_its_file(mutant: Mutant) -> None:
    source = (ROOT / "src/whyrank" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1
    assert all((ROOT / tests).exists() for tests in mutant.tests.split())
