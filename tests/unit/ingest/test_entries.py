"""What a new fact is known by, read in one go, is what each of its fingerprints is by itself."""

from __future__ import annotations

import pytest

from whyrank.analysis.document import content_hash, fingerprints, id_for
from whyrank.analysis.normalize import same_text, text_key
from whyrank.types.memory import GLOBAL, Scope


@pytest.mark.parametrize("scope", [GLOBAL, Scope("global"), Scope("user", "42")])
@pytest.mark.parametrize("text", ["plain words", "Robin  drinks\tTea", "Größe İ ﬁ", "a\x1cb", "nbsp\xa0here"])
def test_fingerprints_are_those_of_the_functions_they_stand_for(text: str, scope: Scope) -> None:
    assert fingerprints(scope, text) == (id_for(scope, "", same_text(text)), text_key(text), content_hash(text))


def test_an_id_stays_what_it_was_in_stores_of_earlier_versions() -> None:
    assert id_for(GLOBAL, "", "robin drinks tea") == "m_past4cqlu6lzcoeb"
    assert id_for(Scope("user", "42"), "notes/tea.md", "Tea", 3) == "m_iwnme2s55e4awzuc"
