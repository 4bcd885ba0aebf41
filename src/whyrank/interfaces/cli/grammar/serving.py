"""Serving others: agents and programs that ask for themselves, and people who look."""

from __future__ import annotations

import argparse

from .parts import Family, one_of, verb, whole_number

CLIENTS = ("claude-code", "claude-desktop", "cursor", "openclaw", "vscode")
HOST = "127.0.0.1"
MCP_PORT = 8642
HTTP_PORT = 8643


def add_verbs(family: Family) -> None:
    """Add the verbs of this family."""
    _mcp(verb(family, "mcp", "serve agents by the Model Context Protocol", _MCP))
    _serve(verb(family, "serve", "serve programs over HTTP, and people by a web page", _SERVE))


_MCP = """Give an agent five tools: memory_search, memory_get, memory_add, memory_forget, memory_why. Without options it
speaks over standard input and output, as clients that start their servers want it; with --http it listens, on this
machine alone unless told otherwise, and asks for a token. Whose memories an agent sees is fixed here, not by the agent.

  whyrank mcp --print-config claude-code     what to tell a client; it then starts the server itself
  whyrank mcp --scope user:42                global memories and those of user 42; facts go to user 42
  whyrank mcp --read-only                    searching alone
  whyrank mcp --http --token-file token.txt  for several clients at once
  whyrank mcp --http --tenants tenants.toml  for several people, each with a token and a store of their own

It needs: pip install 'whyrank[mcp]'"""


def _mcp(parser: argparse.ArgumentParser) -> None:
    _whose(parser, "agent", "tool")
    parser.add_argument("--http", action="store_true", help="listen for HTTP instead of speaking over standard input")
    _where(parser, MCP_PORT)
    parser.set_defaults(host=None, port=None, usual_place=(HOST, MCP_PORT))  # unsaid, and so not to be refused
    parser.add_argument(
        "--tenants", metavar="FILE", help="serve several, each from a store of its own: a TOML table for each (--http)"
    )
    parser.add_argument(
        "--print-config", type=one_of("client", CLIENTS), metavar="CLIENT", help=f"one of {', '.join(CLIENTS)}"
    )


_SERVE = """Serve the store over HTTP: JSON for programs (/v1/search, /v1/why, /v1/memories …; /openapi.json says all of
it) and a page for people, whose address is printed. It listens on this machine alone unless told otherwise, and asks
for a token, which is new each time unless you give one. Whose memories are seen is fixed here.

  whyrank serve --open                       and look
  whyrank serve --token-file token.txt       the same token every time
  whyrank serve --workers 2                  for many at once
  whyrank serve --tenants tenants.toml       for several people, each with a token and a store of their own

It needs: pip install 'whyrank[serve]'"""


def _serve(parser: argparse.ArgumentParser) -> None:
    _whose(parser, "caller", "route")
    _where(parser, HTTP_PORT)
    parser.add_argument("--no-token", action="store_true", help="ask for no token; on this machine alone")
    parser.add_argument("--workers", type=whole_number, default=1, metavar="N", help="how many processes answer (1)")
    parser.add_argument("--log-json", action="store_true", help="write the log as lines of JSON")
    parser.add_argument(
        "--open", action="store_true", help="open the page in a browser, with the token off its command line"
    )
    parser.add_argument(
        "--tenants", metavar="FILE", help="serve several, each from a store of its own: a TOML table for each"
    )


def _whose(parser: argparse.ArgumentParser, caller: str, offer: str) -> None:
    parser.add_argument(
        "--scope",
        action="append",
        metavar="S",
        help="whose memories besides the global ones (user:42); facts go to the first",
    )
    parser.add_argument("--multi-scope", action="store_true", help=f"let the {caller} choose the scope of every call")
    parser.add_argument("--read-only", action="store_true", help=f"offer no {offer} that stores or forgets")


def _where(parser: argparse.ArgumentParser, port: int) -> None:
    parser.add_argument("--host", default=HOST, metavar="H", help=f"where to listen ({HOST})")
    parser.add_argument("--port", type=whole_number, default=port, metavar="N", help=f"the port, 0 for any ({port})")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="another name clients may ask for it by"
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="holds the token to ask for (else WHYRANK_TOKEN, else a new one)"
    )
