"""Bad input of every kind: a clear message, an exit status by kind, never a traceback, and nothing lost."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import whyrank
from whyrank import replay
from whyrank.errors import ConfigError
from whyrank.interfaces.errors import FAILURES, PARTLY_READ

from .conftest import STORE, Run, RunPowerless, still_answers

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT = {failure.code: failure.exit_status for _, failure in FAILURES}
TRACE = "Traceback"

# -- queries -------------------------------------------------------------------------------------------------

TYPABLE = {
    "empty": "",
    "blank": " \t\n ",
    "100 kB of words": "green tea " * 10_000,
    "100 kB without a space": "a" * 100_000,
    "quote": '"',
    "open phrase": '"green tea',
    "empty phrase": '""',
    "star": "*",
    "prefix": "te*",
    "NOT": "NOT",
    "only operators": "AND OR NOT",
    "NEAR": "NEAR(tea boat, 2)",
    "field": "tokens:tea",
    "c++": "c++",
    "apostrophe": "don't",
    "hyphen": "api-key",
    "emoji": "🍵👩‍👩‍👧",
    "right to left": "תה ירוק",
    "direction override": "\u202etea\u2066",
    "SQL": "'; DROP TABLE memories; --",
    "parentheses": "(" * 200,
    "closed parentheses": "(" * 200 + "tea" + ")" * 200,
    "very many words": " ".join(f"w{number}" for number in range(15_000)),
    "control characters": "\x1b[2Jtea\x07",
    "back-slashes": "\\" * 100,
    "format signs": "%s %(tea)d {0} {tea}",
    "stacked accents": "t" + "\u0301" * 5_000,
    "no letters": "?!…—·",
    "not characters": "\uffff\ufffe",
    "Chinese": "绿茶" * 3_000,
}
UNTYPABLE = {"NUL": "green\0tea", "lone surrogates": "green \ud800\udfff tea", "only NUL": "\0" * 100}
HOSTILE = TYPABLE | UNTYPABLE


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_query_gives_finite_scores(name: str, engine: whyrank.Engine) -> None:
    answer = engine.search(HOSTILE[name], limit=50)
    assert answer.verdict in ("found", "weak", "nothing")
    for hit in (*answer.hits, *answer.dropped):
        assert math.isfinite(hit.score)
        assert hit.key == replay(hit.trail)


@pytest.mark.parametrize("recipe", sorted(whyrank.RECIPES))
@pytest.mark.parametrize("name", ["quote", "only operators", "very many words", "lone surrogates", "no letters"])
def test_no_recipe_fails_on_a_hostile_query(name: str, recipe: str, engine: whyrank.Engine) -> None:
    answer = engine.search(HOSTILE[name], recipe=recipe)
    assert answer.recipe == recipe
    assert all(math.isfinite(hit.score) for hit in answer)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_query_loses_nothing(name: str, engine: whyrank.Engine) -> None:
    engine.search(HOSTILE[name])
    assert engine.status().memories == 7
    assert _path(engine.search("green tea")) == "notes/tea.md"


@pytest.mark.parametrize("name", TYPABLE)
def test_a_hostile_query_is_answered_on_the_command_line(name: str, call: Run) -> None:
    done = call("search", "--json", "--explain", "--embedding", "none", "--", TYPABLE[name])
    assert (done.status, done.err) == (0, "")
    assert done.data["query"] == TYPABLE[name]


@pytest.mark.parametrize("name", TYPABLE)
def test_a_hostile_query_is_answered_as_text(name: str, call: Run) -> None:
    done = call("search", "--explain", "--embedding", "none", "--", TYPABLE[name])
    assert done.status == 0
    assert TRACE not in done.said
    assert not {"\x1b", "\x07", "\u202e", "\u2066"} & set(done.said)


@pytest.mark.parametrize("name", ["empty", "100 kB of words", "only operators", "SQL", "right to left"])
def test_the_real_command_takes_a_hostile_query(name: str, run: Run) -> None:
    done = run("search", "--json", "--", TYPABLE[name])
    assert (done.status, done.err) == (0, "")
    assert done.data["query"] == TYPABLE[name]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("c++", "notes/servers.md"),
        ("api-key", "notes/servers.md"),
        ("don't expose", "notes/servers.md"),
        ('"second ring"', "notes/boat.md"),
        ('green "tea', "notes/tea.md"),
        ("NOT tea", "notes/tea.md"),
        ("tea AND OR NOT", "notes/tea.md"),
        ("te'; DROP TABLE memories; -- oarlock", "notes/boat.md"),
        ("((((oarlock))))", "notes/boat.md"),
        ("oarlock\0", "notes/boat.md"),
        ("\ud800 oarlock", "notes/boat.md"),
        ("\u202eoarlock", "notes/boat.md"),
        ("OARLOCK 🚣", "notes/boat.md"),
    ],
)
def test_what_is_odd_in_a_query_does_not_hide_its_words(query: str, path: str, engine: whyrank.Engine) -> None:
    assert _path(engine.search(query)) == path


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("empty", "no-terms"),
        ("no letters", "no-terms"),
        ("100 kB of words", "query-cut"),
        ("very many words", "terms-cut"),
        ("NUL", "query-cleaned"),
        ("lone surrogates", "query-cleaned"),
    ],
)
def test_what_was_not_honoured_of_a_query_is_a_notice(name: str, code: str, engine: whyrank.Engine) -> None:
    assert code in {notice.code for notice in engine.search(HOSTILE[name]).notices}


def test_an_empty_query_finds_nothing(call: Run) -> None:
    answer = call("search", "", "--json").data
    assert (answer["verdict"], answer["hits"]) == ("nothing", [])


@pytest.mark.parametrize("text", ["", " \n ", "a NUL \0 inside", "a lone \ud800 surrogate"])
def test_a_fact_that_cannot_be_kept_whole_is_refused(text: str, engine: whyrank.Engine) -> None:
    with pytest.raises(ConfigError) as refused:
        engine.add(text)
    assert refused.value.hint
    assert engine.status().memories == 7


def _path(answer: whyrank.Results) -> str:
    source = answer[0].memory.source
    assert source is not None
    return source.path


# -- limits --------------------------------------------------------------------------------------------------


def test_a_limit_of_0_gives_no_hits(call: Run) -> None:
    done = call("search", "green tea", "--limit", "0", "--json")
    assert (done.status, done.data["hits"]) == (0, [])


def test_a_huge_limit_gives_all_there_is(call: Run) -> None:
    huge = call("search", "tea for the boat", "--limit", str(10**9), "--json").data
    assert huge["hits"] == call("search", "tea for the boat", "--limit", "1000", "--json").data["hits"]
    assert len(huge["hits"]) == 7


def test_a_huge_limit_is_cut_with_a_notice(call: Run) -> None:
    done = call("search", "green tea", "--limit", str(10**9))
    assert (done.status, done.err) == (0, "notice: limit 1000000000 was cut to 1000\n")


def test_a_list_with_a_huge_limit_lists_all(call: Run) -> None:
    done = call("list", "--limit", str(10**9), "--json")
    assert (done.status, len(done.data["memories"])) == (0, 7)


def test_an_offset_beyond_the_end_gives_no_hits(call: Run) -> None:
    done = call("search", "green tea", "--offset", str(10**9), "--json")
    assert (done.status, done.data["hits"]) == (0, [])


# -- arguments -----------------------------------------------------------------------------------------------


class Refused(NamedTuple):
    """Something nobody should type, what it is called, and what the complaint must tell."""

    arguments: list[str]
    code: str
    complaint: str
    advice: str


ARGUMENTS = [
    Refused(["search", "tea", "--limit", "-1"], "config", "limit is -1", "give 0 or more"),
    Refused(
        ["search", "tea", "--limit", "many"], "config", "--limit: 'many' is not a whole number", "whyrank search --help"
    ),
    Refused(["search", "tea", "--offset", "-1"], "config", "offset is -1", "give 0 or more"),
    Refused(["list", "--limit", "-1"], "config", "limit is -1", "give 0 or more"),
    Refused(["search", "tea", "--recipe", "soup"], "config", "no recipe 'soup'", "default, rrf"),
    Refused(["search", "tea", "--scope", "planet"], "config", "'planet' is not a scope", "write global, user:NAME"),
    Refused(["search", "tea", "--scope", "user:"], "config", "'user:' is not a scope", "write global, user:NAME"),
    Refused(["ingest", "notes", "--scope", ""], "config", "'' is not a scope", "write global, user:NAME"),
    Refused(["search", "tea", "--kind", "song"], "config", "no kind 'song'", "chunk, fact"),
    Refused(["search", "tea", "--since", "soon"], "config", "since is 'soon'", "2026-03-14"),
    Refused(["search", "tea", "--before", "2026-02-30"], "config", "before is '2026-02-30'", "2026-03-14"),
    Refused(["list", "--as-of", "9" * 400], "config", "not a date", "2026-03-14"),
    Refused(
        ["search", "tea", "--embedding", "oracle"],
        "config",
        "embedding = 'oracle'",
        "the embedders are wordllama, minilm",
    ),
    Refused(["search"], "config", "required: query", "whyrank search --help"),
    Refused(["search", "tea", "--colour"], "config", "--colour", "--help"),
    Refused(["serch", "tea"], "config", "'serch'", "search"),
    Refused(["show", "m_nowhere"], "not-found", "no memory 'm_nowhere'", "whyrank list"),
    Refused(["show", ""], "not-found", "no memory ''", "whyrank list"),
    Refused(["why", "tea", "m_nowhere"], "not-found", "no memory 'm_nowhere'", "whyrank list"),
    Refused(["ingest", "no/such/folder"], "ingest", "no/such/folder does not exist", "check the path"),
    Refused(["ingest", "notes", "nowhere.md"], "ingest", "nowhere.md does not exist", "check the path"),
    Refused(["config", "limt"], "config", "no setting 'limt'", "did you mean 'limit'?"),
    Refused(["config", "foo.bar"], "config", "no setting 'foo.bar'", "`whyrank config` lists the settings"),
    Refused(["config", "--default"], "config", "--default is for one setting", "whyrank config KEY --default"),
    Refused(["config", "limit", "9", "--default"], "config", "takes no value", "whyrank config KEY --default"),
    Refused(["config", "limit", "1001"], "config", "from 1 to 1000", "how many results"),
    Refused(["config", "store", "/elsewhere.db"], "config", "leads out of the workspace", "--store"),
    Refused(["add", "bad \udcff byte"], "config", "the text contains bytes that are not UTF-8", "iconv"),
    Refused(["recipes", "soup"], "config", "no recipe 'soup'", "default, rrf"),
    Refused(["eval", "no/such/set"], "bad-dataset", "no/such/set is not a folder", "queries.jsonl"),
    Refused(["eval", "notes"], "bad-dataset", "neither corpus.jsonl nor files/", "needs one of them"),
    Refused(["eval", "notes", "--recipe", "soup"], "config", "no recipe 'soup'", "default, rrf"),
]
refused_arguments = pytest.mark.parametrize("case", ARGUMENTS, ids=lambda case: " ".join(case.arguments)[:40])


@refused_arguments
def test_a_bad_argument_ends_with_the_status_of_its_kind(case: Refused, call: Run) -> None:
    assert call(*case.arguments).status == EXIT[case.code]


@refused_arguments
def test_a_bad_argument_is_named_with_what_to_do_next(case: Refused, call: Run) -> None:
    done = call(*case.arguments)
    assert done.out == ""
    assert done.err.startswith("whyrank: ")
    assert case.complaint in done.err
    assert case.advice in done.err
    assert TRACE not in done.err


@refused_arguments
def test_a_bad_argument_is_an_error_object_in_json(case: Refused, call: Run) -> None:
    done = call(*case.arguments, "--json")
    assert (done.status, done.err) == (EXIT[case.code], "")
    assert done.data["error"].keys() == {"code", "message", "hint"}
    assert done.data["error"]["code"] == case.code
    assert case.complaint in done.data["error"]["message"]


@refused_arguments
def test_a_bad_argument_loses_nothing(case: Refused, call: Run) -> None:
    call(*case.arguments)
    assert still_answers(call)


@pytest.mark.parametrize("case", [case for case in ARGUMENTS if case.code != "config"] + ARGUMENTS[:1], ids=str)
def test_the_real_command_ends_with_the_same_status(case: Refused, run: Run) -> None:
    done = run(*case.arguments)
    assert (done.status, done.out) == (EXIT[case.code], "")
    assert len(done.err.splitlines()) == 2


def test_a_folder_that_does_not_exist_leaves_the_others_unread(call: Run, workspace: Path) -> None:
    (workspace / "more").mkdir()
    (workspace / "more" / "stove.md").write_text("# Stove\n", encoding="utf-8")
    call("ingest", "more", "nowhere")
    assert call("status", "--json").data["memories"] == 7


# -- files ---------------------------------------------------------------------------------------------------


class Strange(NamedTuple):
    """A file that is not read, how it is made, and what is said about it."""

    make: Callable[[Path], object]
    reason: str
    failed: bool


def _loop(file: Path) -> None:
    other = file.with_name("other-end.md")
    other.symlink_to(file)
    file.symlink_to(other)


def _link_out(file: Path) -> None:
    secret = file.parent.parent / "secret.md"
    secret.write_text("# Outside\n\nThe vault opens with walrus.\n", encoding="utf-8")
    file.symlink_to(secret)


STRANGE = {
    "a dangling link": Strange(lambda file: file.symlink_to("nowhere.md"), "No such file", failed=True),
    "a loop of links": Strange(_loop, "cannot be read", failed=True),
    "a link out of the root": Strange(_link_out, "a link that leads out of the folder", failed=False),
    "a pipe": Strange(lambda file: os.mkfifo(file), "not a regular file", failed=False),
    "a folder with a file's name": Strange(lambda file: file.symlink_to("."), "a link to a folder", failed=False),
    "a binary": Strange(lambda file: file.write_bytes(b"\x7fELF\x00\x01" * 100), "a binary file", failed=False),
    "a huge file": Strange(
        lambda file: file.write_text("walrus " * 1_000), "7,000 bytes, over the limit", failed=False
    ),
}
CAP = {"WHYRANK_INGEST_MAX_BYTES": "5000"}
strange_files = pytest.mark.parametrize("name", STRANGE)


@pytest.fixture
def odd(workspace: Path) -> Path:
    """Return a folder with one good file in it."""
    folder = workspace / "odd"
    folder.mkdir()
    (folder / "good.md").write_text("# Kettle\n\nDescale the kettle with vinegar.\n", encoding="utf-8")
    return folder


@strange_files
def test_a_file_that_is_not_read_is_reported_with_its_reason(name: str, call: Run, odd: Path) -> None:
    STRANGE[name].make(odd / "strange.md")
    done = call("ingest", "odd", "--embedding", "none", **CAP)
    verb = "could not read" if STRANGE[name].failed else "skipped"
    assert f"{verb} {odd / 'strange.md'}: " in done.err
    assert STRANGE[name].reason in done.err
    assert TRACE not in done.said


@strange_files
def test_only_a_file_that_should_have_been_readable_is_a_failure(name: str, call: Run, odd: Path) -> None:
    STRANGE[name].make(odd / "strange.md")
    done = call("ingest", "odd", "--embedding", "none", **CAP)
    assert done.status == (PARTLY_READ.exit_status if STRANGE[name].failed else 0)


@strange_files
def test_a_file_that_is_not_read_stands_in_the_json_report(name: str, call: Run, odd: Path) -> None:
    STRANGE[name].make(odd / "strange.md")
    skipped = call("ingest", "odd", "--embedding", "none", "--json", **CAP).data["skipped"]
    entry = next(entry for entry in skipped if entry["path"] == str(odd / "strange.md"))
    assert STRANGE[name].reason in entry["reason"]
    assert entry["failed"] is STRANGE[name].failed


@strange_files
def test_its_neighbours_are_read_all_the_same(name: str, call: Run, odd: Path) -> None:
    STRANGE[name].make(odd / "strange.md")
    call("ingest", "odd", "--embedding", "none", **CAP)
    found = call("search", "vinegar kettle", "--embedding", "none", "--json").data["hits"]
    assert found[0]["path"] == "odd/good.md"
    assert still_answers(call)


@strange_files
def test_nothing_of_a_file_that_is_not_read_is_stored(name: str, call: Run, odd: Path) -> None:
    STRANGE[name].make(odd / "strange.md")
    call("ingest", "odd", "--embedding", "none", **CAP)
    stored = call("list", "--json", "--path", "odd/*").data["memories"]
    assert [memory["path"] for memory in stored] == ["odd/good.md"]
    assert call("search", "walrus", "--recipe", "keyword", "--json").data["hits"] == []


def test_the_real_command_does_not_hang_on_a_pipe(run: Run, odd: Path) -> None:
    os.mkfifo(odd / "pipe.md")
    done = run("ingest", "odd", "odd/pipe.md", "--embedding", "none")
    assert done.status == 14  # it was asked for by name
    assert "pipe.md: not a regular file" in done.err


def test_a_link_to_a_folder_is_not_followed(call: Run, odd: Path) -> None:
    (odd / "again").symlink_to(".")
    done = call("ingest", "odd", "--embedding", "none")
    assert done.status == 0
    assert "a link to a folder; links are not followed" in done.err
    assert "files: 1 new" in done.out


@pytest.mark.parametrize("name", ["a dangling link", "a loop of links"])
def test_nothing_readable_at_all_is_an_error(name: str, call: Run, odd: Path) -> None:
    STRANGE[name].make(odd / "strange.md")
    done = call("ingest", "odd/strange.md", "--json")
    assert (done.status, done.data["error"]["code"]) == (EXIT["ingest"], "ingest")
    assert done.data["error"]["hint"] == "check the path and its permissions"


def test_invalid_utf_8_is_replaced_with_a_remark(call: Run, odd: Path) -> None:
    (odd / "latin.md").write_bytes("# Café\n\nCrème brûlée on Thursdays.\n".encode("latin-1"))
    done = call("ingest", "odd", "--embedding", "none")
    assert (done.status, done.err) == (0, "odd/latin.md: bytes that are not UTF-8 were replaced\n")


def test_the_valid_words_of_a_broken_file_are_found(call: Run, odd: Path) -> None:
    (odd / "latin.md").write_bytes("# Café\n\nCrème brûlée on Thursdays.\n".encode("latin-1"))
    call("ingest", "odd", "--embedding", "none")
    found = call("search", "Thursdays", "--embedding", "none", "--json").data["hits"]
    assert found[0]["path"] == "odd/latin.md"
    assert found[0]["text"] == "# Caf\ufffd\n\nCr\ufffdme br\ufffdl\ufffde on Thursdays."


def test_broken_front_matter_is_a_remark_and_the_text_is_kept(call: Run, odd: Path) -> None:
    (odd / "front.md").write_text("---\ntags: [open\n---\n\nThe marmalade is on the top shelf.\n", encoding="utf-8")
    done = call("ingest", "odd", "--embedding", "none")
    assert done.status == 0
    assert "odd/front.md: front matter could not be read" in done.err
    found = call("search", "marmalade", "--embedding", "none", "--json").data["hits"]
    assert found[0]["path"] == "odd/front.md"


def test_a_name_of_a_file_stays_on_its_line_whatever_stands_in_it(odd: Path, call: Run) -> None:
    front = "---\ndate: 2025-02-30\n---\n"
    (odd / "two\nlines\x1b[2J\u202e.md").write_text(f"{front}The marmalade is on the top shelf.\n", encoding="utf-8")
    (odd / "bi\rnary.md").write_bytes(b"\0\1")
    shown = "odd/two\\nlines\\x1b[2J\\u202e.md"
    without = ("--embedding", "none")

    dry, done = call("ingest", "odd", "--dry-run", *without), call("ingest", "odd", *without)
    assert f"  new      {shown}\n" in dry.out
    assert f"{shown}: front matter, line 2: date = '2025-02-30': is not a date\n" in done.err
    assert "odd/bi\\rnary.md: a binary file\n" in done.err

    listed = call("list", "--path", "odd/two*", *without).out
    identity = listed.split()[0]
    assert f"{identity}  {shown}:4-4  " in listed
    assert f"{shown}:4-4 · " in call("search", "marmalade", *without).out
    assert call("why", "marmalade", identity, *without).out.startswith(f"{identity}  {shown}:4-4\n")
    assert (
        f"{identity}  {shown}:4-4: " in call("why", "marmalade kettle", identity, "--over", "odd/good.md", *without).out
    )
    assert f"\npath: {shown}\n" in call("show", identity, *without).out
    assert f" → {shown}:4  " in call("pin", "marmalade", identity, *without).out
    assert call("search", "marmalade", "--json", *without).data["hits"][0]["path"] == "odd/two\nlines\x1b[2J\u202e.md"


def test_lines_of_a_log_that_are_no_turns_are_counted(call: Run, odd: Path) -> None:
    (odd / "log.jsonl").write_text('{"text": "The bell rang twice."}\nnot json\n[1]\n{"text": 5}\n', encoding="utf-8")
    done = call("ingest", "odd", "--embedding", "none")
    assert (done.status, done.err) == (0, "odd/log.jsonl: 3 lines are not turns, the first is line 2\n")


@pytest.mark.parametrize("content", ["", "\n\n\n", "---\n---\n", "\ufeff", "---", "#", "```"])
def test_a_file_with_nothing_in_it_is_no_error(content: str, call: Run, odd: Path) -> None:
    (odd / "hollow.md").write_text(content, encoding="utf-8")
    done = call("ingest", "odd", "--embedding", "none")
    assert done.status == 0
    assert "files: 2 new" in done.out


def test_a_file_without_permission_is_reported(run_powerless: RunPowerless, odd: Path) -> None:
    (odd / "locked.md").write_text("# Locked\n", encoding="utf-8")
    (odd / "locked.md").chmod(0)
    done = run_powerless("ingest", "odd", "--embedding", "none")
    assert done.status == PARTLY_READ.exit_status
    assert f"could not read {odd / 'locked.md'}: cannot be read: Permission denied" in done.err


def test_a_file_that_lost_its_permission_keeps_what_was_read(
    run_powerless: RunPowerless, call: Run, workspace: Path
) -> None:
    tea = workspace / "notes" / "tea.md"
    tea.write_text("# Coffee\n", encoding="utf-8")
    tea.chmod(0)
    assert run_powerless("ingest", "notes", "--embedding", "none").status == PARTLY_READ.exit_status
    assert still_answers(call)


def test_a_folder_that_is_ignored_and_may_not_be_entered_stops_no_ingest(
    run_powerless: RunPowerless, odd: Path
) -> None:
    locked = odd / "locked"
    locked.mkdir()
    (locked / "plan.md").write_text("# Plan\n", encoding="utf-8")
    assert "plan.md" in run_powerless("ingest", "odd", "--embedding", "none", "--json").out
    (odd / ".gitignore").write_text("locked/\n", encoding="utf-8")
    locked.chmod(0)
    done = run_powerless("ingest", "odd", "--embedding", "none", "--json")
    locked.chmod(0o700)
    assert done.data["files"]["deleted"] == 1, done.err


# -- stores --------------------------------------------------------------------------------------------------


def _text(store: Path) -> None:
    store.write_text("Dear diary, this is no database.\n" * 200, encoding="utf-8")


def _foreign(store: Path) -> None:
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("CREATE TABLE bees (name TEXT)")
        database.execute("INSERT INTO bees VALUES ('Maja')")


def _newer(store: Path) -> None:
    shutil.copy(STORE, store)
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("PRAGMA user_version = 99")


def _damaged(store: Path) -> None:
    content = bytearray(STORE.read_bytes())
    quarter = len(content) // 4
    content[quarter : 3 * quarter] = b"\xa5" * (2 * quarter)
    store.write_bytes(content)


def _cut_off(store: Path) -> None:
    store.write_bytes(STORE.read_bytes()[:6_000])


class BadStore(NamedTuple):
    """A store that cannot be used, and what must be said of it."""

    make: Callable[[Path], object]
    code: str
    complaint: str
    advice: str


BAD_STORES = {
    "a text file": BadStore(_text, "store-damaged", "is not a whyrank store", "name another file with --store"),
    "a foreign database": BadStore(_foreign, "store-damaged", "but not a whyrank store", "name another file"),
    "a newer schema": BadStore(_newer, "schema-too-new", "has schema 99", "upgrade whyrank"),
    "a damaged store": BadStore(_damaged, "store-damaged", "or is damaged", "look for a copy"),
    "half a store": BadStore(_cut_off, "store-damaged", "or is damaged", "look for a copy"),
    "a folder": BadStore(Path.mkdir, "store", "is a folder", "name a file for the store"),
    "a loop of links": BadStore(lambda store: store.symlink_to(store), "store", "unable to open", "permissions"),
}
bad_stores = pytest.mark.parametrize("name", BAD_STORES)
untouchable = pytest.mark.parametrize("name", ["a text file", "a foreign database", "a newer schema"])
verbs_with_a_store = pytest.mark.parametrize(
    "arguments", [["search", "tea"], ["ingest", "notes"]], ids=["search", "ingest"]
)


@pytest.fixture
def bad_store(workspace: Path) -> Path:
    """Return where a bad store is to be made."""
    return workspace / "bad.db"


@bad_stores
@verbs_with_a_store
def test_a_bad_store_ends_with_the_status_of_its_kind(
    name: str, arguments: list[str], call: Run, bad_store: Path
) -> None:
    BAD_STORES[name].make(bad_store)
    done = call(*arguments, "--embedding", "none", "--store", "bad.db")
    assert (done.status, done.out) == (EXIT[BAD_STORES[name].code], "")


@bad_stores
def test_a_bad_store_is_named_with_what_to_do_next(name: str, call: Run, bad_store: Path) -> None:
    BAD_STORES[name].make(bad_store)
    err = call("search", "tea", "--embedding", "none", "--store", "bad.db").err
    assert err.startswith(f"whyrank: {bad_store} ")
    assert BAD_STORES[name].complaint in err
    assert BAD_STORES[name].advice in err
    assert TRACE not in err


@bad_stores
def test_a_bad_store_is_an_error_object_in_json(name: str, call: Run, bad_store: Path) -> None:
    BAD_STORES[name].make(bad_store)
    error = call("search", "tea", "--embedding", "none", "--store", "bad.db", "--json").data["error"]
    assert error["code"] == BAD_STORES[name].code
    assert str(bad_store) in error["message"]
    assert BAD_STORES[name].advice in error["hint"]


@pytest.mark.parametrize("name", ["a text file", "a foreign database", "a newer schema", "half a store", "a folder"])
@pytest.mark.parametrize("door", [["serve"], ["mcp", "--http"]], ids=["serve", "mcp"])
def test_no_server_starts_on_a_bad_store(name: str, door: list[str], run: Run, bad_store: Path) -> None:
    BAD_STORES[name].make(bad_store)
    done = run(*door, "--port", "0", "--store", "bad.db")
    assert (done.status, done.out) == (EXIT[BAD_STORES[name].code], "")
    assert done.err.startswith(f"whyrank: {bad_store} ")
    assert BAD_STORES[name].advice in done.err
    assert not list(bad_store.parent.glob("bad.db-*"))


@bad_stores
def test_a_bad_store_does_no_harm_to_a_good_one(name: str, call: Run, bad_store: Path) -> None:
    BAD_STORES[name].make(bad_store)
    call("ingest", "notes", "--embedding", "none", "--store", "bad.db")
    assert still_answers(call)


@untouchable
@verbs_with_a_store
def test_what_is_not_ours_is_left_untouched(name: str, arguments: list[str], call: Run, bad_store: Path) -> None:
    BAD_STORES[name].make(bad_store)
    before = bad_store.read_bytes()
    call(*arguments, "--embedding", "none", "--store", "bad.db")
    assert bad_store.read_bytes() == before


@untouchable
def test_nothing_is_left_beside_what_is_not_ours(name: str, call: Run, bad_store: Path) -> None:
    BAD_STORES[name].make(bad_store)
    call("ingest", "notes", "--embedding", "none", "--store", "bad.db")
    assert sorted(bad_store.parent.glob("bad.db*")) == [bad_store]


@bad_stores
def test_the_real_command_refuses_a_bad_store_without_a_traceback(name: str, run: Run, bad_store: Path) -> None:
    BAD_STORES[name].make(bad_store)
    done = run("search", "tea", "--store", "bad.db")
    assert (done.status, done.out) == (EXIT[BAD_STORES[name].code], "")
    assert len(done.err.splitlines()) == 2


@pytest.mark.parametrize("name", ["a damaged store", "half a store"])
def test_a_damaged_store_can_be_made_anew_as_advised(name: str, call: Run, workspace: Path, bad_store: Path) -> None:
    BAD_STORES[name].make(bad_store)
    bad_store.replace(workspace / STORE)
    assert call("search", "tea", "--embedding", "none").status == EXIT["store-damaged"]
    (workspace / STORE).unlink()
    call("ingest", "notes", "--embedding", "none")
    assert still_answers(call)


def test_a_store_below_a_file_is_refused(call: Run) -> None:
    done = call("search", "tea", "--store", "notes/tea.md/memory.db", "--json")
    assert (done.status, done.data["error"]["code"]) == (EXIT["store"], "store")
    assert "--store" in done.data["error"]["hint"]


def test_a_read_only_store_answers(run_powerless: RunPowerless, workspace: Path) -> None:
    (workspace / STORE).chmod(0o400)
    (workspace / STORE).parent.chmod(0o500)
    done = run_powerless("search", "green tea", "--embedding", "none", "--json")
    (workspace / STORE).parent.chmod(0o700)
    assert (done.status, done.data["hits"][0]["path"]) == (0, "notes/tea.md")


def test_a_read_only_store_refuses_an_ingest(run_powerless: RunPowerless, workspace: Path) -> None:
    (workspace / "notes" / "stove.md").write_text("# Stove\n", encoding="utf-8")
    (workspace / STORE).chmod(0o400)
    done = run_powerless("ingest", "notes", "--embedding", "none")
    assert done.status == EXIT["store"]
    assert "cannot be written to" in done.err
    assert "check the permissions" in done.err


def test_a_store_that_may_not_be_read_is_refused(run_powerless: RunPowerless, workspace: Path) -> None:
    (workspace / STORE).chmod(0)
    done = run_powerless("search", "tea", "--embedding", "none")
    assert (done.status, done.out) == (EXIT["store"], "")
    assert "check the permissions" in done.err


def test_a_store_in_a_folder_that_may_not_be_written_is_refused(run_powerless: RunPowerless, workspace: Path) -> None:
    (workspace / "shut").mkdir(mode=0o500)
    done = run_powerless("ingest", "notes", "--embedding", "none", "--store", "shut/new.db")
    assert (done.status, done.out) == (EXIT["store"], "")
    assert "cannot be created" in done.err
    assert "check the permissions" in done.err


# -- settings ------------------------------------------------------------------------------------------------

BAD_SETTINGS = {
    "broken": ("limit = = 3", "cannot be read: Invalid value (at line 1", "fix the file"),
    "not UTF-8": ("language = 'caf\udce9'", "cannot be read", "fix the file"),
    "unknown": ("limt = 3", "there is no setting 'limt'", "did you mean 'limit'?"),
    "unknown table": ("[chnk]\ntokens = 100", "there is no setting 'chnk.tokens'", "did you mean 'chunk.tokens'?"),
    "unlike anything": ("zzz = 1", "there is no setting 'zzz'", "`whyrank config` lists the settings"),
    "out of range": ("limit = 5000", "must be from 1 to 1000", "how many results a search returns"),
    "wrong type": ("limit = true", "must be a whole number", "how many results a search returns"),
    "no number": ("[ranking]\nrecency_weight = nan", "must be from 0 to 1", "how much age may lower a score"),
    "unknown embedder": (
        "embedding = 'oracle'",
        "there is no embedder 'oracle'",
        "the embedders are wordllama, minilm",
    ),
    "store outside": ("store = '../../other.db'", "leads out of the workspace", "--store"),
}
bad_settings = pytest.mark.parametrize("name", BAD_SETTINGS)


def _write_settings(file: Path, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(BAD_SETTINGS[name][0].encode("utf-8", "surrogateescape"))


@bad_settings
def test_a_bad_settings_file_is_named_with_what_to_do_next(name: str, call: Run, workspace: Path) -> None:
    _write_settings(workspace / "whyrank.toml", name)
    done = call("search", "tea")
    _, complaint, advice = BAD_SETTINGS[name]
    assert (done.status, done.out) == (EXIT["config"], "")
    assert str(workspace / "whyrank.toml") in done.err
    assert complaint in done.err
    assert advice in done.err
    assert TRACE not in done.err


@bad_settings
def test_a_bad_settings_file_is_an_error_object_in_json(name: str, call: Run, workspace: Path) -> None:
    _write_settings(workspace / "whyrank.toml", name)
    done = call("search", "tea", "--json")
    assert (done.status, done.data["error"]["code"]) == (EXIT["config"], "config")
    assert BAD_SETTINGS[name][1] in done.data["error"]["message"]


@bad_settings
def test_a_bad_settings_file_loses_nothing(name: str, call: Run, workspace: Path) -> None:
    _write_settings(workspace / "whyrank.toml", name)
    call("ingest", "notes")
    (workspace / "whyrank.toml").unlink()
    assert still_answers(call)


@pytest.mark.parametrize("name", ["broken", "unknown", "out of range"])
def test_a_bad_user_file_is_named_too(name: str, call: Run, tmp_path: Path) -> None:
    file = tmp_path / "config" / "whyrank" / "config.toml"
    _write_settings(file, name)
    done = call("search", "tea")
    assert done.status == EXIT["config"]
    assert str(file) in done.err


@pytest.mark.parametrize("name", ["broken", "unknown"])
def test_writing_a_setting_does_not_overwrite_a_bad_file(name: str, call: Run, workspace: Path) -> None:
    file = workspace / "whyrank.toml"
    _write_settings(file, name)
    before = file.read_bytes()
    assert call("config", "limit", "3").status == EXIT["config"]
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("variable", "value"),
    [("WHYRANK_LIMIT", "many"), ("WHYRANK_EMBEDDING", "oracle"), ("WHYRANK_INGEST_MAX_BYTES", "0")],
)
def test_a_bad_environment_variable_is_named(variable: str, value: str, call: Run) -> None:
    done = call("search", "tea", **{variable: value})
    assert (done.status, done.out) == (EXIT["config"], "")
    assert f"environment ({variable})" in done.err


def test_the_real_command_refuses_a_broken_settings_file(run: Run, workspace: Path) -> None:
    _write_settings(workspace / "whyrank.toml", "broken")
    done = run("search", "tea")
    assert (done.status, done.out) == (EXIT["config"], "")
    assert len(done.err.splitlines()) == 2
