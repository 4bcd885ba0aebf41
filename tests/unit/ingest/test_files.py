"""One file to memories."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from whyrank.analysis.document import embedded_text, entry_for
from whyrank.ingest.documents import ChunkSize, Read, memories_in
from whyrank.types.memory import GLOBAL, Memory, Scope

MTIME = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
FEBRUARY = datetime(2031, 2, 3, tzinfo=UTC).timestamp()
MARCH = datetime(2031, 3, 4, tzinfo=UTC).timestamp()


def read(text: str, path: str = "notes/boats.md", scope: Scope = GLOBAL, size: ChunkSize | None = None) -> Read:
    return memories_in(text, path, scope, MTIME, size or ChunkSize())


def only(text: str, path: str = "notes/boats.md") -> Memory:
    (memory,) = read(text, path).memories
    return memory


def test_a_chunk_knows_its_file_lines_headings_and_trust() -> None:
    memory = only("# Boats\n\nIda is red.\n")

    assert str(memory.source) == "notes/boats.md:1-3"
    assert (memory.kind, memory.headings, memory.trust) == ("chunk", ("Boats",), "ingested")
    assert memory.text == "# Boats\n\nIda is red."


def test_front_matter_names_and_tags_a_file() -> None:
    memory = only(
        "---\ntitle: The  Boats\ntags: sea, red , sea\naliases: [Ships]\nslug: boats\nsummary: All of them\n---\nbody\n"
    )

    assert (memory.name, memory.title, memory.slug, memory.summary) == (
        "The Boats",
        "The Boats",
        "boats",
        "All of them",
    )
    assert (memory.tags, memory.aliases) == (("sea", "red"), ("Ships",))


@pytest.mark.parametrize(
    ("text", "title"),
    [("---\ntitle: Given\n---\n# Heading\n", "Given"), ("# Heading\n\nbody\n", "Heading"), ("body\n", "boats")],
)
def test_a_title_comes_from_front_matter_then_heading_then_file_name(text: str, title: str) -> None:
    assert only(text).title == title


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("---\ntitle: Given\n---\n# Heading\n\nbody\n", "Given"),
        ("# Heading\n\nbody\n", "Heading"),
        ("## Section\n\nbody\n", ""),
        ("body\n\n# Heading\n", ""),
    ],
)
def test_a_name_comes_from_front_matter_or_from_the_heading_a_file_opens_with(text: str, name: str) -> None:
    assert {memory.name for memory in read(text).memories} == {name}


@pytest.mark.parametrize(
    ("text", "path", "embedded"),
    [
        ("They hang in the cellar.\n", "cars/winter-tyres.md", "winter tyres\nThey hang in the cellar."),
        ("## Where\n\nIn the cellar.\n", "winter-tyres.md", "winter tyres\nWhere\n## Where\n\nIn the cellar."),
        ("In the cellar.\n", "winter-tyres.txt", "winter tyres\nIn the cellar."),
        ("Gone.\n", "cars/README.md", "cars\nGone."),
        ("# Tyres\n\nGone.\n", "winter-tyres.md", "Tyres\n# Tyres\n\nGone."),  # a title of its own
        ("Gone.\n", "2026-03-17.md", "Gone."),  # a date is no subject; date words match it
    ],
)
def test_the_name_of_a_file_without_a_title_is_embedded(text: str, path: str, embedded: str) -> None:
    assert embedded_text(only(text, path)) == embedded


def test_every_chunk_of_a_file_without_a_title_is_embedded_and_indexed_with_its_name() -> None:
    body = "\n\n".join(f"boat {number} is at sea" for number in range(40))
    memories = read(body, "harbour-list.md", size=ChunkSize(40, 0)).memories
    assert len(memories) > 1
    for memory in memories:
        assert embedded_text(memory).startswith("harbour list\n")
        assert {"harbour", "list"} <= set(entry_for(memory, "en").tokens)


def test_a_turn_is_not_embedded_with_the_name_of_its_log() -> None:
    turn = only('{"speaker": "Ida", "text": "The boat is red."}\n', "2031-02-03-sea-trial.jsonl")
    assert (turn.title, embedded_text(turn)) == ("2031-02-03 sea trial", "Ida: The boat is red.")


PERSON = """---
tags: [contact, house]
aliases:
  - Annie
role: Plumber
company: "[[Berg & Sons]]"
knows: [[Ulf Timm]]
born: 1980-03-04
active: true
rate: 48.5
empty:
address: {city: Kiel, zip: 24103}
---
"""


def test_a_note_that_holds_only_properties_says_its_values() -> None:
    memory = only(PERSON, "People/Anna Berg.md")

    assert memory.text.split("\n") == [
        "tags: contact, house",
        "aliases: Annie",
        "role: Plumber",
        "company: [[Berg & Sons]]",
        "knows: Ulf Timm",
        "born: 1980-03-04",
        "active: true",
        "rate: 48.5",
        "address city: Kiel",
        "address zip: 24103",
    ]
    assert (memory.title, str(memory.source)) == ("Anna Berg", "People/Anna Berg.md:1-13")
    assert (memory.tags, memory.aliases) == (("contact", "house"), ("Annie",))


def test_properties_below_which_only_headings_stand_are_said_too() -> None:
    memories = read("---\nstatus: leaking\n---\n# Roof\n\n## Log\n").memories

    assert [(memory.text, memory.title) for memory in memories] == [
        ("status: leaking", "Roof"),
        ("# Roof\n\n## Log", "Roof"),
    ]


def test_properties_of_a_note_with_text_are_no_text() -> None:
    assert only("---\nstatus: leaking\n---\nThe roof.\n").text == "The roof."


def test_a_description_stands_first_and_what_the_name_says_is_not_said_twice() -> None:
    memory = only("---\ntitle: Roof\nstatus: leaking\ndescription: What covers the house\n---\n")

    assert (memory.text, memory.name, memory.summary) == (
        "What covers the house\nstatus: leaking",
        "Roof",
        "",
    )


def test_empty_properties_are_no_memory() -> None:
    assert read("---\nstatus:\ntags: []\n---\n") == Read((), ("it contains no text",))


def test_many_properties_are_cut_into_chunks() -> None:
    lines = "\n".join(f"berth{number}: boat {number}" for number in range(40))
    memories = read(f"---\n{lines}\n---\n", size=ChunkSize(40, 0)).memories

    assert len(memories) > 1
    assert "\n".join(memory.text for memory in memories) == lines
    assert {str(memory.source) for memory in memories} == {"notes/boats.md:1-42"}


def test_broken_front_matter_is_remarked_and_the_body_kept() -> None:
    result = read("---\ntitle: [open\n---\nbody\n")

    assert "title: [open" in result.memories[0].text
    assert len(result.remarks) == 1
    assert "front matter" in result.remarks[0]


@pytest.mark.parametrize(
    ("text", "path", "moment"),
    [
        ("---\ndate: 2031-02-03\n---\nbody", "2031-03-04.md", FEBRUARY),
        ("---\ndate: 3 February 2031\n---\nbody", "boats.md", FEBRUARY),
        ("body", "deep/2031-03-04-boats.md", MARCH),
        ("---\ndate: soon\n---\nbody", "2031-03-04.md", MARCH),
        ("body", "boats.md", MTIME),
    ],
)
def test_the_date_comes_from_front_matter_then_file_name_then_mtime(text: str, path: str, moment: float) -> None:
    assert only(text, path).date == moment


@pytest.mark.parametrize(
    ("path", "evergreen"),
    [("MEMORY.md", True), ("memory/habits.md", True), ("memory/2031-02-03.md", False), ("boats.md", False)],
)
def test_long_lived_notes_are_evergreen(path: str, evergreen: bool) -> None:
    assert only("body", path).evergreen is evergreen


def test_a_skill_has_its_name_slug_and_description() -> None:
    memory = only(
        "---\nname: Tide Table\ndescription: Tells the tides\n---\n\nAsk for a harbour.\n", "skills/tide-table/SKILL.md"
    )

    assert (memory.name, memory.slug, memory.summary) == ("Tide Table", "tide-table", "Tells the tides")
    assert memory.text == "Ask for a harbour."


def test_a_skill_without_body_is_found_by_its_description() -> None:
    memory = only("---\nname: Tide Table\ndescription: Tells the tides\n---\n", "skills/tide-table/SKILL.md")

    assert (memory.text, memory.name, memory.summary) == ("Tells the tides", "Tide Table", "")


def test_the_summary_stands_with_the_first_chunk_only() -> None:
    body = "\n\n".join(f"boat {number} is at sea" for number in range(40))

    memories = read(f"---\nsummary: All boats\n---\n{body}\n", size=ChunkSize(40, 0)).memories

    assert len(memories) > 1
    assert [memory.summary for memory in memories] == ["All boats"] + [""] * (len(memories) - 1)


def test_a_text_file_has_no_headings_and_no_front_matter() -> None:
    memory = only("---\ntitle: x\n---\n# Boats\n", "boats.txt")

    assert (memory.name, memory.headings) == ("", ())
    assert memory.text.startswith("---")


def test_the_same_text_at_the_same_place_has_the_same_id() -> None:
    assert only("body").id == only("body").id


def test_other_scopes_paths_and_texts_have_other_ids() -> None:
    (scoped,) = read("body", scope=Scope("user", "1")).memories

    assert len({only("body").id, only("body", "other.md").id, only("other").id, scoped.id}) == 4


def test_equal_chunks_of_one_file_have_ids_of_their_own() -> None:
    part = "same words again " * 9  # 153 characters: 39 tokens, a chunk each
    memories = read(f"{part}\n\n{part}\n\n{part}\n", size=ChunkSize(40, 0)).memories

    assert [memory.text for memory in memories] == [part] * 3
    assert len({memory.id for memory in memories}) == 3


def test_nul_and_lone_surrogates_never_reach_a_memory() -> None:
    assert only("a\x00b \ud800").text == "a\ufffdb \ufffd"


@pytest.mark.parametrize("path", ["boats.md", "boats.txt"])
def test_an_empty_file_holds_no_memories(path: str) -> None:
    assert read("", path) == Read((), ("it contains no text",))


def test_turns_of_a_log_are_memories_in_order() -> None:
    log = '{"speaker": "Greta", "text": "The boat is red."}\n\n{"speaker": "Otto", "text": "And small."}\n'

    memories = read(log, "chat.jsonl").memories

    assert [(m.text, m.speaker, m.position, str(m.source)) for m in memories] == [
        ("Greta: The boat is red.", "Greta", 0, "chat.jsonl:1-1"),
        ("Otto: And small.", "Otto", 1, "chat.jsonl:3-3"),
    ]
    assert all(memory.is_turn for memory in memories)


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "hello"}',
        '{"content": "hello"}',
        '{"message": " hello "}',
        '{"content": [{"type": "text", "text": "hello"}]}',
        '{"content": ["hello"]}',
    ],
)
def test_the_text_of_a_turn_is_found_under_its_usual_names(line: str) -> None:
    assert only(line, "chat.jsonl").text == "hello"


@pytest.mark.parametrize("key", ["speaker", "role", "author", "from", "name"])
def test_the_speaker_of_a_turn_is_found_under_its_usual_names(key: str) -> None:
    assert only(f'{{"text": "hello", "{key}": "Greta"}}', "chat.jsonl").speaker == "Greta"


@pytest.mark.parametrize("key", ["session", "session_id", "conversation", "thread"])
def test_the_session_of_a_turn_is_found_under_its_usual_names(key: str) -> None:
    assert only(f'{{"text": "hello", "{key}": "s7"}}', "chat.jsonl").session == "s7"


def test_a_log_without_sessions_is_one_session() -> None:
    assert only('{"text": "hello"}', "logs/chat.jsonl").session == "logs/chat.jsonl"


@pytest.mark.parametrize(
    ("line", "path", "moment"),
    [
        ('{"text": "x", "date": "2031-02-03"}', "2031-03-04.jsonl", FEBRUARY),
        (f'{{"text": "x", "ts": {FEBRUARY * 1000}}}', "chat.jsonl", FEBRUARY),
        ('{"text": "x", "date": "soon", "timestamp": "2031-02-03T00:00:00Z"}', "chat.jsonl", FEBRUARY),
        ('{"text": "x"}', "2031-03-04.jsonl", MARCH),
        ('{"text": "x", "ts": NaN}', "chat.jsonl", MTIME),
    ],
)
def test_the_date_of_a_turn_comes_from_itself_then_file_name_then_mtime(line: str, path: str, moment: float) -> None:
    assert only(line, path).date == moment


def test_dates_of_turns_that_cannot_be_read_are_counted() -> None:
    lines = [
        '{"text": "one", "timestamp": "yesterday-ish"}',
        '{"text": "two", "timestamp": "soon", "date": "2031-02-03"}',
        '{"text": "three", "timestamp": null, "date": ""}',
        '{"text": "four", "ts": "9th of never"}',
    ]
    result = read("\n".join(lines), "chat.jsonl")

    # The second has a date that can be read, the third none at all.
    assert [memory.date for memory in result.memories] == [MTIME, FEBRUARY, MTIME, MTIME]
    told = "2 lines have dates that cannot be read and got the date of the file; the first is line 1"
    assert result.remarks == (told,)


def test_bad_lines_of_a_log_are_counted_and_the_good_ones_kept() -> None:
    lines = ['{"text": "one"}', "no json", "[1, 2]", '{"text": ""}', '{"other": 1}', '{"text": 5}', '{"text": "two"}']

    result = read("\n".join(lines), "chat.jsonl")

    assert [memory.text for memory in result.memories] == ["one", "two"]
    assert result.remarks == ("5 lines are not turns, the first is line 2",)


def test_a_line_nested_without_end_is_a_bad_line() -> None:
    result = read("[" * 100_000, "chat.jsonl")

    assert result.memories == ()
    assert len(result.remarks) == 1


def test_a_turn_said_twice_is_two_memories() -> None:
    memories = read('{"text": "yes"}\n{"text": "yes"}\n', "chat.jsonl").memories

    assert len({memory.id for memory in memories}) == 2
