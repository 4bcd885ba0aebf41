"""Fields that files carry: front matter for all of a file, markers for a section."""

from __future__ import annotations

import pytest

from whyrank.analysis.dates import parse_date
from whyrank.ingest.documents import ChunkSize, Read, memories_in
from whyrank.types.memory import GLOBAL

DAY = 86_400.0
WRITTEN = 100 * DAY


def read(text: str) -> Read:
    return memories_in(text, "a.md", GLOBAL, WRITTEN, ChunkSize())


def test_front_matter_speaks_of_every_chunk() -> None:
    fields = "importance: 4\ncategory: rule\ndecay: stable\nentities: [Suzy]\ntags: a, b\nvalid-from: 2026-01-01\n"
    [memory] = read(f"---\n{fields}trust: untrusted\n---\n# Tea\n\nGreen.\n").memories
    assert (memory.importance, memory.category, memory.decay, memory.trust) == (4, "rule", "stable", "untrusted")
    assert (memory.entities, memory.tags, memory.valid_from) == (("Suzy",), ("a", "b"), parse_date("2026-01-01"))
    assert (memory.expires, memory.expires_given) == (WRITTEN + 90 * DAY, False)


def test_a_marker_speaks_of_its_section_alone_and_is_no_text() -> None:
    text = (
        "---\ntags: [file]\nimportance: 2\n---\n# Tea\n\nGreen.\n\n## Pot\n\n"
        "<!-- whyrank: importance=5 tags=a,b expires=2026-12-01 -->\nOne litre. <!-- whyrank: entity='Blue Pot' -->\n\n"
        "## Tin\n\nBehind the flour.\n"
    )
    done = read(text)
    tea, pot, tin = done.memories
    assert [memory.importance for memory in done.memories] == [2, 5, 2]
    assert (pot.tags, pot.entities) == (("file", "a", "b"), ("Blue Pot",))
    assert (pot.expires, pot.expires_given) == (parse_date("2026-12-01"), True)
    assert (pot.text, pot.headings) == ("## Pot\n\n\nOne litre.", ("Tea", "Pot"))
    assert (tea.source and tea.source.end_line, tin.source and tin.source.start_line) == (7, 14)
    assert (tea.tags, tin.tags, tin.expires) == (("file",), ("file",), None)
    assert done.remarks == ()


def test_a_marker_may_stand_in_its_heading() -> None:
    [memory] = read("# Tea <!-- whyrank: importance=5 -->\n\nGreen.\n").memories
    assert (memory.name, memory.importance, memory.text) == ("Tea", 5, "# Tea\n\nGreen.")


@pytest.mark.parametrize(
    "text",
    [
        "```\n{}\n```\n",
        "1. Write:\n\n   ```html\n   {}\n   ```\n",
        "- Write:\n\n      {}\n",
        "> ~~~\n> {}\n> ~~~\n",
        "Hide it with `{}` below.",
        "# Hide with ``{} `` or `it`",
        "Not \\{}",
    ],
)
def test_a_marker_in_code_is_code(text: str) -> None:
    written = text.format("<!-- whyrank: importance=5 -->")
    [memory] = read(f"---\ntitle: Tea\n---\n{written}").memories
    assert (memory.importance, memory.text) == (None, written.strip("\n"))


def test_a_marker_beside_code_is_none() -> None:
    [memory] = read("`Tea` <!-- whyrank: tags=`a` --> `pot`, and \\`<!-- whyrank: importance=5 -->.").memories
    assert (memory.importance, memory.tags, memory.text) == (5, ("`a`",), "`Tea` `pot`, and \\`.")


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("---\nimportance: 9\n---\nTea.", "front matter, line 2: importance = '9': must be a whole number from 1 to 5"),
        ("---\nexpires: someday\n---\nTea.", "front matter, line 2: expires = 'someday': is not a date"),
        ("---\nimportence: 3\n---\nTea.", "front matter, line 2: there is no 'importence'; did you mean 'importance'?"),
        (
            "---\n# whose\ntrust: owner\n---\nTea.",
            "front matter, line 3: trust = 'owner': must be one of ingested, untrusted",
        ),
        ("---\ntitle: Tea\ndate: 2025-02-30\n---\nTea.", "front matter, line 3: date = '2025-02-30': is not a date"),
        ("---\nscope: user:1\n---\nTea.", "front matter, line 2: scope is not read from files; stored as global"),
        (
            "---\n<<: {scope: [user:1]}\n---\nTea.",
            "front matter, line 2: scope is not read from files; stored as global",
        ),
        ("---\nvalid_from: 2026-02-02\nvalid_until: 2026-01-01\n---\nTea.", "valid_from is not before valid_until"),
        ("Tea. <!-- whyrank: mood=blue -->", "line 1: there is no 'mood'"),
        ("Tea. <!-- whyrank: decay=slow -->", "line 1: decay = 'slow': must be one of permanent"),
        ("Tea. <!-- whyrank: important -->", "line 1: 'important' in a marker is not key=value"),
        ("Tea. <!-- whyrank: tags='a -->", "line 1: a marker cannot be read"),
        ("Tea. <!-- whyrank: tags=a\n-->", "line 1: a marker must end on its line"),
        ("Tea. <!-- whyrank: scope=user:1 -->", "line 1: there is no 'scope'"),
    ],
)
def test_what_makes_no_sense_is_remarked_and_the_text_is_kept(text: str, remark: str) -> None:
    done = read(text)
    assert any(remark in said for said in done.remarks), done.remarks
    assert done.memories[0].text.startswith("Tea.")
    assert done.memories[0].scope == GLOBAL


def test_a_day_that_there_is_not_costs_no_other_field() -> None:
    [memory] = read("---\ntitle: Pot\ndate: 2025-02-30\ndue: 2025-02-31\ntags: [a]\n---\nTea.").memories
    assert (memory.name, memory.tags, memory.date) == ("Pot", ("a",), WRITTEN)


@pytest.mark.parametrize("scope", ["global", "", "[]"])
def test_nothing_is_said_of_a_scope_that_is_the_one_of_the_ingest_or_none(scope: str) -> None:
    assert read(f"---\nscope: {scope}\n---\nTea.").remarks == ()


def test_keys_of_other_programs_are_no_slips() -> None:
    assert read("---\nlayout: post\nauthor: Suzy\ncreated: yesterday\n---\nTea.").remarks == ()
