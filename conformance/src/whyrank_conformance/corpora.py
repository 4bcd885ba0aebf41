"""Everyday notes that no question is about, made from a seed, and the few words in which notes are planted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from .adapter import Note
from .meanings import Planted

if TYPE_CHECKING:
    from collections.abc import Mapping

_WHO = ("Alma", "Bertil", "Chiara", "Dmitri", "Esra", "Fergus", "Gudrun", "Hideo", "Ines", "Jonas", "Kofi", "Leila")
_DID = ("painted", "watered", "borrowed", "repaired", "photographed", "measured", "wrapped", "sold", "hid", "polished")
_WHAT = ("bicycle", "orchid", "ladder", "violin", "kettle", "blanket", "mirror", "carpet", "accordion", "hammock")
_WHERE = ("balcony", "attic", "courtyard", "garage", "staircase", "greenhouse", "basement", "veranda")
_WHEN = ("on Monday", "in spring", "before breakfast", "during the storm", "after work", "at dusk", "last winter")

# Of the everyday notes in other tongues no word stands in a question.
IN_OTHER_TONGUES = (
    "Вчера мы купили новые шторы для спальни",
    "Бабушка связала тёплый шарф",
    "На балконе сохнут полотенца",
    "我们昨天买了新的窗帘",
    "奶奶织了一条暖和的围巾",
    "阳台上晾着毛巾",
    "昨日新しいカーテンを買いました",
    "祖母が暖かいマフラーを編んだ",
    "어제 새 커튼을 샀다",
    "할머니가 목도리를 떴다",
    "Η γιαγιά έπλεξε ένα κασκόλ",
    "Gestern kauften wir neue Vorhänge",
)


def planted(
    id: str, text: str, likeness: Mapping[str, float] | None = None, *, length: float = 1.0, **fields: str
) -> Planted:
    """Return a note that lies this near to the questions of these topics."""
    return Planted(Note(id, text, **fields), likeness or {}, length)


def everyday(
    count: int, seed: int, likeness: Mapping[str, float] | None = None, *, length: float = 1.0, scope: str = ""
) -> list[Planted]:
    """Return so many notes of everyday life, all different, none of which shares a content word with a question."""
    dice = random.Random(seed)
    notes = []
    for number in range(count):
        who, did, what = dice.choice(_WHO), dice.choice(_DID), dice.choice(_WHAT)
        text = f"{who} {did} the {what} in the {dice.choice(_WHERE)} {dice.choice(_WHEN)}, entry {number}"
        notes.append(planted(f"everyday-{number}", text, likeness, length=length, scope=scope))
    return notes
