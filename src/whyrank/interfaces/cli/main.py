"""Command line: parsing, dispatch to a verb, and errors as one line and an exit status."""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ... import __version__
from ...errors import ConfigError, MissingExtra, WhyrankError
from ...types.memory import CATEGORIES, LIFETIMES, ORDERS, REFRESHED, TRUSTS
from ..errors import CANNOT_WRITE, INTERRUPTED, OK, as_data, failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OF_ARGUMENT = re.compile(r"^argument (?=[^:]+: )")  # argparse's prefix before the name of an argument


def whole_number(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    read = number(text)
    if not 0 <= read <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return read


def one_of(what: str, names: Sequence[str]) -> Callable[[str], str]:
    """Return a parser of one of a few names; others are refused with a suggestion."""

    def read(text: str) -> str:
        if text in names:
            return text
        close = get_close_matches(text, names, n=1)
        others = f"give {', '.join(names[:-1])} or {names[-1]}"
        raise ConfigError(f"there is no {what} {text!r}", f"did you mean {close[0]!r}?" if close else others)

    return read


class Parser(argparse.ArgumentParser):
    """Argument parser that reports errors like the rest of whyrank."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError instead of printing the usage and exiting."""
        dash = "; put -- before a text that begins with -" if "required" in message else ""
        raise ConfigError(_OF_ARGUMENT.sub("", message), f"`{self.prog} --help` shows the usage{dash}")


class Verbs(argparse.HelpFormatter):
    """Help formatter with a column wide enough for the longest verb: argparse ignores their indentation."""

    def add_argument(self, action: argparse.Action) -> None:
        """Add an argument, and measure its choices with their indentation."""
        super().add_argument(action)
        if action.dest == "verb":
            longest = max(map(len, action.choices or ()))
            self._action_max_length = max(self._action_max_length, longest + 2 * self._indent_increment)


class Once(argparse.Action):
    """Option that may be given once: if the last of two scopes won silently, users would expect both."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store the value, unless there is one already."""
        if getattr(namespace, self.dest, self.default) != self.default:
            parser.error(f"{option} is given twice; it takes one value here")
        setattr(namespace, self.dest, values)


def common_options() -> Parser:
    """Return the options of every verb."""
    common = Parser(add_help=False)
    common.add_argument(
        "--store",
        metavar="PATH",
        help="the store: a file or postgresql://… (default: WHYRANK_STORE, else .whyrank/memory.db)",
    )
    elsewhere = "default: WHYRANK_WORKSPACE, else OPENCLAW_WORKSPACE, else this folder"
    common.add_argument("--workspace", metavar="DIR", help=f"the workspace ({elsewhere})")
    common.add_argument(
        "--embedding",
        metavar="NAME",
        help="the embedder: wordllama, minilm, granite … (`whyrank model list`), or none",
    )
    common.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return common


class Option(NamedTuple):
    """One argument or option of a verb, as `add_argument` takes it."""

    names: tuple[str, ...]
    settings: dict[str, Any]


class Verb(NamedTuple):
    """One verb: its name, module and function, short help, and options."""

    name: str
    module: str
    function: str
    about: str
    options: tuple[Option, ...] = ()
    exclusive: tuple[Option, ...] = ()  # options of which one can be given
    defaults: dict[str, Any] = {}  # noqa: RUF012 (never changed)


def _option(*names: str, **settings: Any) -> Option:
    return Option(names, settings)


def _flag(name: str, help: str) -> Option:
    return Option((name,), {"action": "store_true", "help": help})


def _text(name: str, metavar: str, help: str, **more: Any) -> Option:
    return Option((name,), {"metavar": metavar, "help": help, **more})


def _number(name: str, help: str, **more: Any) -> Option:
    return Option((name,), {"type": whole_number, "metavar": "N", "help": help, **more})


def _sizes(text: str) -> list[int]:
    return list(dict.fromkeys(_positive(size) for size in text.split(",")))


def _seconds(text: str) -> float:
    seconds = number(text)
    if not 0.1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.1 and 86400 seconds")
    return seconds


def _positive(text: str) -> int:
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is less than 1")
    return number


def _choice(what: str, names: Sequence[str]) -> dict[str, Any]:
    return {"type": one_of(what, names), "metavar": f"{{{','.join(names)}}}"}


BESIDE_THE_STORE = ""  # value of `--keep` without a file
CLIENTS = ("claude-code", "claude-desktop", "cursor", "openclaw", "vscode")
HOOKED = ("claude-code", "codex", "cursor", "gemini", "openclaw")
HOST = "127.0.0.1"
MCP_PORT = 8642
HTTP_PORT = 8643
_MODEL_ACTIONS = ("list", "use", "add", "fetch", "rollback", "drop", "rerank")

_SCOPES = _text("--scope", "S", "whose memories besides the global ones", action="append")
_SEEN = _text("--scope", "S", "a scope besides global (user:42); may be repeated", action="append")
_FILTERS = (
    _SEEN,
    _text("--kind", "K", "chunk or fact"),
    _text("--tag", "T", "only with this tag; may be repeated", action="append", default=[]),
    _text("--category", "C", "only of this category"),
    _text("--decay", "CLASS", "only of this decay class"),
    _number("--min-importance", "only of this importance or more (3 if not set)", metavar="1-5"),
    _text("--path", "GLOB", "only from files whose path matches; ./, ../ and / start from here"),
    _text("--language", "L", "only in this language (en, de, …)"),
    _text("--where", "JSON", 'only with such metadata: {"status": "open", "priority": {"$gte": 2}}'),
    _text("--since", "D", "only from this date on (2026-03-14)"),
    _text("--before", "D", "only from before this date"),
    _text("--as-of", "T", "answer as of that time"),
    _flag("--include-superseded", "also memories that were replaced"),
)
_EXPAND = _flag("--expand", "let a language model expand the query first")
_ADVANCED = _flag("--advanced", "AND, OR, NOT, (…), word*, field:word; see `search`")
_EXPLAIN = _flag("--explain", "show how every score was computed, and what was dropped")
_DRY_RUN = _flag("--dry-run", "show what would happen, change nothing")
_EVERYBODY = _flag("--every-scope", "the memories of every scope")
_PIN_SCOPES = (
    _text("--scope", "S", "pins of this scope besides global", action="append"),
    _flag("--all-scopes", "the pins of all scopes"),
)
_FIELDS = (
    _text("--name", "NAME", "what it is called"),
    _text("--category", "C", f"one of {', '.join(CATEGORIES)}"),
    _text("--tag", "T", "a tag; may be repeated", action="append"),
    _text("--entity", "E", "a person or thing it is about; may be repeated", action="append"),
    _text("--importance", "1-5", "its importance"),
    _text("--decay", "CLASS", f"how long it is kept: one of {', '.join(LIFETIMES)}"),
    _text("--date", "D", "when it happened (2026-03-14)"),
    _text("--valid-from", "D", "from when on it is valid"),
    _text("--valid-until", "D", "until when it is valid"),
    _text("--expires", "D", "from when on it is no longer found"),
    _text("--trust", "T", f"who vouches for it: one of {', '.join(TRUSTS)}"),
    _text("--metadata", "JSON", 'anything else, as an object: {"status": "open"}'),
    _text("--subject", "S", "whom or what it says something about, as a key"),
    _text("--attribute", "A", "what it says of the subject, as a key"),
    _text("--supersedes", "ID-OR-TEXT", "the memory it replaces"),
)


def _paging(what: str) -> tuple[Option, ...]:
    return _number("--limit", f"how many {what}"), _number("--offset", f"skip the first {what}", default=0)


def _owner(help: str) -> Option:
    return _text("--scope", "S", f"{help} (global)", action=Once, default="global")


def _whose(caller: str, offer: str) -> tuple[Option, ...]:
    whose = "a scope besides global (user:42); facts go to the first"
    return (
        _text("--scope", "S", whose, action="append"),
        _flag("--multi-scope", f"let the {caller} choose the scope of every call"),
        _flag("--read-only", f"offer no {offer} that stores or forgets"),
    )


def _where(port: int, *, has_defaults: bool) -> tuple[Option, ...]:
    return (
        _text("--host", "H", f"the host to listen on ({HOST})", default=HOST if has_defaults else None),
        _number("--port", f"the port, 0 for any ({port})", default=port if has_defaults else None),
        _text("--allow-host", "NAME", "another host name that clients may use", action="append", default=[]),
        _text("--token-file", "FILE", "a file with the token (default: WHYRANK_TOKEN, else a new one)"),
    )


_SEARCH = (
    Verb("ingest", "search", "ingest", "index files and folders", (
        _text("paths", "PATH", "files and folders", nargs="+"), _DRY_RUN, _owner("whose memories these are"),
    )),
    Verb("search", "search", "search", "find memories", (
        _option("query", nargs="+", help="the question, a name, or words"), _ADVANCED, *_paging("results"), *_FILTERS,
        _text("--recipe", "R", "how results are ranked; `whyrank recipes` lists them"),
        _flag("--strict", "no results at all unless the verdict is `found`"),
        _text("--min-confidence", "C", "only results of this confidence or more, from 0 to 1", type=share), _EXPLAIN,
        _number("--max-tokens", "stop before the texts exceed about N tokens"),
        _number("--timeout-ms", "answer with what was found so far after N milliseconds"), _EXPAND,
    )),
    Verb("why", "search", "why", "explain a rank, or an absence", (
        _option("query", nargs="?", help="the question that was asked"),
        _text("id", "ID-OR-PATH", "the memory in question, or its file", nargs="?"),
        _text("--recall", "ID", "explain a recall, by its id in `whyrank recall --log`"),
        _text("--over", "ID-OR-PATH", "another memory: show what would swap the two"),
        _number("--limit", "how many results were requested"), _ADVANCED, *_FILTERS,
        _text("--recipe", "R", "how results are ranked"), _EXPAND,
    )),
    Verb("show", "memories", "show", "print one memory with all its fields", (_option("id", help="the memory's "
    "id"), _SCOPES)),
    Verb("list", "search", "list_memories", "list memories", (
        *_paging("memories"), *_FILTERS, _flag("--superseded", "only memories that were replaced"),
        _flag("--expired", "only what has expired or is no longer valid"),
        _option("--sort", **_choice("order", ORDERS), default="place", help="the order: by what, the most first "
        "(place)"),
    )),
    Verb("rank", "search", "rank", "fuse and explain other engines' lists", (
        _text("files", "FILE", "a list, or NAME=FILE; - for standard input", nargs="+"),
        _text("--recipe", "R", "how lists are fused; `whyrank recipes` (rrf)", default="rrf"),
        _text("--k", "N", "of reciprocal rank fusion: 1/(k + rank) (60)", type=number),
        _text("--weight", "NAME=N", "the weight of a list", action="append", default=[]),
        _number("--limit", "how many results (10)", default=10),
        _flag("--lower-is-better", "the lowest score of every list is the best"),
        _text("--lower-is-better-in", "NAME", "of this list; may be repeated", action="append", default=[]),
        _text("--superseded", "ID-OR-TEXT", "drop this memory: it was replaced", action="append", default=[]),
        _text("--texts", "FILE", "texts by id, as JSON; in hybrid-mem the same text counts once"), _EXPLAIN,
    )),
)  # fmt: skip
_FILES = (
    Verb("ingest-files", "memories", "ingest_files", "extract facts from files by a language model", (
        _text("--paths", "GLOBS", "patterns of files below the workspace, with commas (setting ingest.paths)"),
        _owner("whose facts they are"),
    ), exclusive=(
        _flag("--dry-run", "ask the model, store nothing, show what would be stored"),
        _flag("--plan", "ask nothing, store nothing, estimate the requests"),
        _flag("--left-out", "print what earlier runs did not store, and why"),
    )),
)  # fmt: skip
_FACTS = (
    Verb("add", "memories", "add", "store a fact", (
        _text("text", "TEXT", "the fact; - reads one from every line of standard input", nargs="+"),
        _owner("whose memory it is"), *_FIELDS,
        _text("--key", "KEY", "a key for this write: repeating it writes nothing"),
    )),
    Verb("update", "memories", "update", "change a fact", (
        _text("id", "ID", "the fact"), _text("--text", "T", "its new text; - reads it from standard input"),
        *_FIELDS, _SEEN,
    )),
    Verb("forget", "memories", "forget", "remove memories, or a whole scope", (
        _text("id", "ID", "what to remove", nargs="*"), _SEEN,
        _text("--whole-scope", "S", "remove everything in this scope", action=Once),
        _flag("--purge", "overwrite every byte of it in the file"),
        _flag("--yes", "do not ask before a whole scope is removed"),
    )),
    Verb("recalled", "memories", "recalled", "record that memories were useful", (
        _text("id", "ID", "what was useful", nargs="+"), _SEEN,
    )),
    Verb("prune", "memories", "prune", "remove what has expired", (
        _SEEN, _EVERYBODY, _flag("--dry-run", "show what would be removed, change nothing"),
    )),
    Verb("export", "memories", "export", "write a scope as lines of JSON", (
        _text("--scope", "S", "whose memories (global)", action=Once), _EVERYBODY,
        _text("--out", "FILE", "write into this file"),
    )),
    Verb("import", "migration", "import_memories", "import memories of another store or system", (
        _text("format", "FORMAT", "what wrote them: whyrank, openclaw, clawhub, openvault, hybrid-mem, mcp-memory,"
              " mem0, claude, chatgpt or jsonl"),
        _text("path", "PATH", "the file or folder"), _DRY_RUN,
        _text("--scope", "S", "whose memories those are that name no owner (global)", action=Once),
    )),
)  # fmt: skip
_AGENTS = (
    Verb("recall", "recall", "recall", "what an agent should be reminded of now, or nothing", (
        _text("text", "TEXT", "the turn of the conversation; - reads it from standard input", nargs="*"), _SEEN,
        _number("--max-tokens", "the most tokens to inject, frame included (recall.max_tokens)"),
        _text("--session", "ID", "give nothing twice in this session", default=""),
        _flag("--log", "print what was given when, or why nothing was"),
        _number("--limit", "how many recalls of the log (20)"),
    )),
    Verb("hook", "hook", "hook", "the same for the hook of a host, which it never breaks", (
        _text("host", "HOST", f"one of {', '.join(HOOKED)}", type=one_of("host", HOOKED)), _SEEN,
        _number("--max-tokens", "the most tokens to inject, frame included (recall.max_tokens)"),
    )),
)  # fmt: skip
_MAINTENANCE = (
    Verb("calibrate", "evaluate", "calibrate", "measure confidence thresholds for this store", (
        _SCOPES, _flag("--every-scope", "global memories, and each scope with them"),
    )),
    Verb("status", "search", "status", "what the store holds"),
    Verb("config", "search", "config", "show or change settings", (
        _option("key", nargs="?", help="a setting"), _option("value", nargs="?", help="its new value"),
        _flag("--default", "take the setting out of the file it is written into"),
    )),
    Verb("model", "models", "model", "list, fetch and change embedding models and rerankers", (
        _option("action", nargs="?", **_choice("action", _MODEL_ACTIONS), default="list", help="what to do (list)"),
        _option("name", nargs="?", help="the model: a name, hf:ORG/MODEL, or a folder such as ./my-model"),
        _text("--pooling", "P", "cls, mean, max or lasttoken, where the model does not say"),
        _text("--prompt", "P", "as embedder.prompt: bge, query-passage … or a pair of texts"), _DRY_RUN,
        _flag("--check", "compare with the present model, and keep it if pins are lost"),
        _flag("--force", "change even if pinned answers are lost"),
        _flag("--background", "run it in a background process"),
    )),
    Verb("embed", "models", "embed", "embed the memories that wait for a vector"),
    Verb("reindex", "memories", "reindex", "index again what an earlier whyrank indexed"),
    Verb("worker", "models", "worker", "embed, prune, merge and reindex what nobody should wait for", (
        _flag("--once", "do what is due, and end"),
        _option("--poll", type=_seconds, metavar="SECONDS", default=10.0, help="how long to sleep at most (10)"),
        _option("--lease", type=_seconds, metavar="SECONDS", default=300.0,
                help="after how long others take over the texts of a worker that died (300)"),
    )),
    Verb("doctor", "memories", "doctor", "check a store, and repair it", (
        _flag("--repair", "repair what can be rebuilt"),
        _flag("--deep", "rebuild all derived data, and compare"),
        _flag("--give-up", "forget memories that were set aside as unreadable"),
    )),
    Verb("backup", "memories", "backup", "copy the whole store into one file", (
        _text("file", "FILE", "where to write it; an earlier backup there is replaced"),
    )),
    Verb("restore", "memories", "restore", "replace the content of the store by a backup", (
        _text("file", "FILE", "a backup, or another store"),
        _flag("--no-keep", "keep no copy of what the store holds now"),
        _flag("--yes", "do not ask before memories are replaced"),
    )),
    Verb("copy", "memories", "copy", "copy a store into another, also between SQLite and PostgreSQL", (
        _text("source", "SRC", "a store: a file, or postgresql://USER@HOST/DATABASE?schema=NAME"),
        _text("destination", "DST", "the other store; it is created if it is not there"),
        _text("--scope", "S", "only this scope; may be repeated", action="append"),
        _flag("--merge", "into a store that holds other memories, which stay"),
    )),
    Verb("recipes", "search", "recipes", "show how results are ranked", (
        _option("name", nargs="?", help="print this recipe only"),
    )),
)  # fmt: skip
_EVALUATION = (
    Verb("eval", "evaluate", "evaluate_sets", "measure on an evaluation set", (
        _text("sets", "SET", "folders of evaluation sets; SET:KIND for questions of a kind", nargs="*"),
        _text("--recipe", "R", "a recipe to measure; may be repeated", action="append"),
        _text("--add", "NAME", "a second model beside the embedder, as `whyrank model add` adds it"),
        _text("--abstention", "OTHER", "measure the verdict; OTHER: sets whose questions cannot be answered",
              nargs="*"),
        _text("--small", "N,N", "measure stores of this many files, drawn at random: 11,45,130", type=_sizes),
        _text("--draws", "N", "how many stores of each size (10)", type=_positive),
        _number("--seed", "the seed of --small (1)"),
        _text("--plot", "FILE", "draw the curves of --abstention (.png or .svg; one set only)"),
        _text("--run-out", "FILE", "write a TREC run of the first recipe (one set only)"),
        _text("--html", "FILE", "write a page that opens without network"),
        _text("--keep", "FILE", "keep the results, with the figures of every query, as JSON; without FILE beside the"
              " store, for the page", nargs="?", const=BESIDE_THE_STORE),
        _text("--against", "FILE", "compare with kept results, query by query"),
        _text("--from", "FILE", "show kept results; no SET is measured", dest="kept"),
    )),
    Verb("pin", "evaluate", "pin", "record a good answer", (
        _option("query", nargs="?", help="the question"),
        _text("id", "ID-OR-PATH", "the memory that answers it, or its file", nargs="?"),
        _number("--within", "the rank it must reach (5, or the present one)"),
        _flag("--list", "print the pins"), _flag("--remove", "remove the pins of the query, or the pin of the id"),
        _text("--recipe", "R", "how results are ranked when the present rank is looked up"), *_PIN_SCOPES,
    )),
    Verb("check", "evaluate", "check", "check whether pinned answers are still found", (
        _text("--recipe", "R", "how results are ranked (the one in the settings)"), *_PIN_SCOPES,
    )),
    Verb("compare-with", "migration", "compare_with", "compare another system's ranking with the default", (
        _text("system", "SYSTEM", "openclaw, hybrid-mem, clawhub or openvault"),
        _text("--queries", "FILE", "your questions, one per line", required=True),
        _text("--settings", "FILE", "openclaw.json: rank with these settings"),
        _number("--limit", "how many results of each (that of the settings, else 6)"), _SEEN,
    )),
    Verb("tune", "evaluate", "tune", "fit the ranking to these memories", (
        _SCOPES, _text("--recipe", "R", "the recipe to fit (the one in the settings)"),
        _number("--queries", "the most questions of all kinds (600)", default=600),
        _number("--seed", "the seed of questions and folds (1)", default=1),
        _text("--plot", "FILE", "draw the gain of every setting, as SVG"),
        _flag("--apply", "write a better setting into whyrank.toml"),
    )),
)  # fmt: skip
_SERVERS = (
    Verb("mcp", ".mcp.command", "serve", "serve agents by the Model Context Protocol", (
        *_whose("agent", "tool"), _flag("--http", "listen for HTTP instead of speaking over standard input"),
        *_where(MCP_PORT, has_defaults=False),
        _text("--tenants", "FILE", "serve several tenants, each from its own store: a TOML table for each (--http)"),
        _text("--print-config", "CLIENT", f"one of {', '.join(CLIENTS)}", type=one_of("client", CLIENTS)),
    ), defaults={"usual_place": (HOST, MCP_PORT)}),
    Verb("serve", ".http.app", "serve_http", "serve programs over HTTP, and people by a web page", (
        *_whose("caller", "route"), *_where(HTTP_PORT, has_defaults=True),
        _flag("--no-token", "require no token; only on this machine"),
        _number("--workers", "how many processes answer (1)", default=1),
        _flag("--log-json", "write the log as lines of JSON"),
        _flag("--open", "open the page in a browser; the token is not on its command line"),
        _text("--tenants", "FILE", "serve several tenants, each from its own store: a TOML table for each"),
    )),
)  # fmt: skip
# In the order of the help; only the family of the given verb is added to the parser.
FAMILIES: dict[str, tuple[Verb, ...]] = {
    "search": _SEARCH,
    "files": _FILES,
    "facts": _FACTS,
    "agents": _AGENTS,
    "maintenance": _MAINTENANCE,
    "evaluation": _EVALUATION,
    "servers": _SERVERS,
}
VERBS = {verb.name: verb for family in FAMILIES.values() for verb in family}


@cache
def _long_helps() -> dict[str, str]:
    _, *parts = Path(__file__).with_name("help.txt").read_text(encoding="utf-8").split("\n== ")
    named = (part.partition(" ==\n") for part in parts)
    return {name: text.rstrip("\n") for name, _, text in named}


def add_verb(verbs: argparse._SubParsersAction[Parser], common: Parser, verb: Verb) -> None:
    """Add one verb, with a short help for the list and a long one that teaches it."""
    refreshed = ", ".join(name for name in LIFETIMES if name in REFRESHED)
    parser = verbs.add_parser(
        verb.name,
        help=verb.about,
        description=_long_helps()[verb.name].replace("{refreshed}", refreshed),
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option in verb.options:
        parser.add_argument(*option.names, **option.settings)
    if verb.exclusive:
        group = parser.add_mutually_exclusive_group()
        for option in verb.exclusive:
            group.add_argument(*option.names, **option.settings)
    parser.set_defaults(**verb.defaults)


_NEEDED = {"serve": ("starlette", "uvicorn", "prometheus_client")}  # packages of an extra, by verb
# Verbs whose answer holds these notices, and verbs that work without settings.
_WITHOUT_WARNING = frozenset({"search", "rank", "recipes", "config", "hook"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A memory may hold characters the terminal cannot encode: print a replacement instead of failing.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    status = _ended(given)
    return OK if given[:1] == ["hook"] else status  # a host may take a failure of a hook for a refusal of the prompt


def _ended(given: list[str]) -> int:
    status = OK
    try:
        status = _answered(given)
        if sys.stdout is not None:  # else it was closed by whoever started this process
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _leave_output()
        return status  # the reader closed the pipe (`whyrank list | head`)
    except OSError as error:
        _leave_output()
        print(f"whyrank: the output cannot be written: {error.strerror}", file=sys.stderr)
        return CANNOT_WRITE
    return status


def _leave_output() -> None:
    """Redirect the remaining output to the null device, so that the flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _answered(given: list[str]) -> int:
    try:
        return _run(given)
    except WhyrankError as error:
        return _fail(error, as_json="--json" in given)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            raise  # no file name: the error is about the output
        place = f"{error.filename}: {error.strerror}"
        return _fail(WhyrankError(place, "check the path and its permissions"), as_json="--json" in given)


def _run(given: list[str]) -> int:
    asked = parse(given)
    if asked.version:
        print(f"whyrank {__version__}")
        return OK
    if asked.verb is None:
        build().print_help()
        return OK
    if asked.verb not in _WITHOUT_WARNING:
        _warn(asked)
    for package in _NEEDED.get(asked.verb, ()):
        if find_spec(package) is None:
            told = f"`whyrank {asked.verb}` needs {package}, which is not installed"
            raise MissingExtra(told, f"pip install 'whyrank[{asked.verb}]', or '.[{asked.verb}]' in a clone")
    verb = VERBS[asked.verb]
    # Imported when the verb runs, so that no verb waits for another's imports.
    status: int = getattr(import_module(f".{verb.module}", __package__), verb.function)(asked)
    return status


def _warn(asked: argparse.Namespace) -> None:
    """Print notices about retired settings to standard error; standard output is for the verb alone."""
    from .output import complain, settings_of

    for notice in settings_of(asked).notices:
        complain(f"notice: {notice.message}")


def _fail(error: WhyrankError, *, as_json: bool) -> int:
    from .output import complain, say_json

    if as_json:
        say_json(as_data(error))
    else:
        complain(f"whyrank: {error.message}")
        if error.hint:
            complain(f"  {error.hint}")
    return failure_of(error).exit_status


# Verbs of earlier versions, and their replacement.
_MOVED = {
    "bench": "python -m benchmarks, in a clone of the repository",
    "conformance": "python -m whyrank_conformance, after pip install ./conformance in a clone of the repository",
}
_LIKE = 0.7  # similarity below which an unknown option is not a typo of a known one


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; unknown arguments raise an error that points to the help."""
    if given[:1] == ["help"]:
        given = [*given[1:2], "--help"]
    _check_verb(given)
    parser = build(*(family for family, verbs in FAMILIES.items() if given and VERBS.get(given[0]) in verbs))
    _check_options(given, parser)
    asked, rest = parser.parse_known_args(given)
    if rest[:1] == ["--"] and asked.verb in ("search", "add", "recall"):
        words = asked.query if asked.verb == "search" else asked.text
        words += rest[1:]
        rest = []
    if rest:
        meant = "put a new text after --text; " if asked.verb == "update" else ""
        hint = f"{meant}`whyrank {asked.verb} --help` shows the usage"
        raise ConfigError(f"{rest[0]!r} is unknown here", hint)
    return asked


def _check_verb(given: Sequence[str]) -> None:
    first = given[0] if given else "--help"
    if first in (*VERBS, "-h", "--help", "--version"):
        return
    if first in _MOVED:
        raise ConfigError(f"`whyrank {first}` has moved: {_MOVED[first]}")
    if first.startswith("-"):
        raise ConfigError(f"{first} is before the verb", "options go after it: whyrank search QUERY --store PATH")
    close = get_close_matches(first, VERBS, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the verbs are {', '.join(VERBS)}"
    raise ConfigError(f"there is no verb {first!r}", meant)


def _check_options(given: Sequence[str], parser: Parser) -> None:
    """Refuse unknown options with a suggestion; argparse may report a missing argument instead."""
    verbs: Any = next(action.choices for action in parser._actions if action.dest == "verb")
    if not given or given[0] not in verbs:
        return
    known = [option for action in verbs[given[0]]._actions for option in action.option_strings]
    words = itertools.takewhile(lambda word: word != "--", given[1:])
    for word in words:
        option = word.partition("=")[0]
        # A word with a space is a text, even if it begins with dashes.
        if option.startswith("--") and " " not in word and option not in known:
            close = get_close_matches(option[2:], [name.lstrip("-") for name in known], n=1, cutoff=_LIKE)
            meant = f"did you mean --{close[0]}?" if close else f"`whyrank {given[0]} --help` shows the usage"
            raise ConfigError(f"{option} is no option of `whyrank {given[0]}`", meant)


def build(*families: str) -> Parser:
    """Return the parser of some families of verbs, or of the whole command line."""
    parser = Parser(
        prog="whyrank",
        description="Memory search for AI agents that can say why.",
        epilog="Start with: whyrank ingest notes/ && whyrank search 'what did we decide about the server?'",
        formatter_class=Verbs,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    # Set explicitly: argparse would format the usage to find the program name.
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser, prog=parser.prog)
    common = common_options()
    for family in families or FAMILIES:
        for verb in FAMILIES[family]:
            add_verb(verbs, common, verb)
    return parser
