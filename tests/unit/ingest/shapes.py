"""Generated files of more than a hundred shapes, each of any size: made to be slow to read, or to break readers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count

Write = Callable[[int], str]

NOTE = "notes/2031-02-03-boats.md"
LOG = "logs/chat.jsonl"
PLAIN = "notes/boats.txt"
SKILL = "skills/tide-table/SKILL.md"


def shapes() -> dict[str, tuple[str, Write]]:
    """Return how to write a file of about so many characters, by the name of its shape, with the path it is read at."""
    found = {f"front matter of {name}": (NOTE, front(write)) for name, write in FRONT.items()}
    found |= {name: (NOTE, write) for name, write in MARKDOWN.items()}
    found |= {f"log of {name}": (LOG, write) for name, write in LOGS.items()}
    found |= {f"plain {name}": (PLAIN, write) for name, write in TEXTS.items()}
    return found | {f"skill of {name}": (SKILL, write) for name, write in SKILLS.items()}


def repeated(unit: str) -> Write:
    """Write one text again and again."""
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def numbered(line: str) -> Write:
    """Write lines with their numbers, each another one."""
    return lambda size: "\n".join(taken((line.format(n=number) for number in count()), size))


def taken(lines: Iterator[str], size: int) -> Iterator[str]:
    """Yield as many lines as make a size."""
    for line in lines:
        size -= len(line) + 1
        yield line
        if size <= 0:
            return


def front(write: Write) -> Write:
    """Put what is written between fences, with a body behind it."""
    return lambda size: f"---\n{write(size)}\n---\n\nThe boats are red.\n"


def after(opening: str, unit: str) -> Write:
    """Write a text once, and another behind it again and again."""
    return lambda size: opening + repeated(unit)(size)


def nested(open_sign: str, inside: str, close_sign: str) -> Write:
    """Write signs around signs around a word."""
    return lambda size: open_sign * (size // 2) + inside + close_sign * (size // 2)


def staircase(line: str, indent: str = " ") -> Write:
    """Write lines each indented further than the one before."""

    def write(size: int) -> str:
        lines, width = list[str](), 0
        while size > 0:
            lines.append(indent * width + line)
            size -= len(lines[-1]) + 1
            width += 1
        return "\n".join(lines)

    return write


def halves(first: Callable[[int], str], second: Callable[[int], str]) -> Write:
    """Write two shapes, each half of the size."""
    return lambda size: f"{first(size // 2)}\n\n{second(size // 2)}"


def tiers(levels: int) -> str:
    """Write anchors of which each merges nine of the one before: nine times as many entries a level."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}" for level in range(1, levels)]
    return "\n".join(lines)


FRONT: dict[str, Write] = {
    "colons": repeated(":"),
    "colons with spaces": repeated(": "),
    "quotes": repeated('"'),
    "apostrophes": repeated("'"),
    "an open quotation": after('title: "', "word "),
    "sexagesimals": lambda size: "n: " + repeated("59:")(size) + "59",
    "many sexagesimals": numbered("n{n}: 59:59:59:59:59:59:59"),
    "keys": numbered("key{n}: {n}"),
    "keys alike ours": numbered("tag{n}s: {n}"),
    "one key again and again": repeated("title: boats\n"),
    "broken keys": lambda size: repeated("title: a: b\n")(size),
    "broken lists": lambda size: "x: [\n" + numbered("k{n}: [a, b")(size),
    "lists in lists": nested("[", "x", "]"),
    "open lists": repeated("["),
    "open tables": repeated("{a: "),
    "list signs": repeated("- "),
    "question marks": repeated("? "),
    "a staircase of keys": staircase("a:"),
    "a staircase of lists": staircase("- a", "  "),
    "aliases": lambda size: "a: &a b\n" + numbered("k{n}: *a")(size),
    "anchors": numbered("k{n}: &a{n} b"),
    "merge keys": lambda size: "a: &a {b: 1}\n" + numbered("k{n}: {{<<: *a}}")(size),
    "merge keys of merge keys": lambda size: tiers(max(2, size // 100)),
    "digits": lambda size: "n: " + repeated("7")(size),
    "underscores in a number": lambda size: "n: 1" + repeated("_")(size),
    "hexadecimal digits": lambda size: "n: 0x" + repeated("f")(size),
    "a block": lambda size: "text: |\n" + repeated("  words of a line\n")(size),
    "a folded block": lambda size: "text: >\n" + repeated("  words\n\n")(size),
    "tags of YAML": repeated("!!str "),
    "percent signs": repeated("%"),
    "tabs": repeated("\t"),
    "comments": repeated("# words\n"),
    "escapes": lambda size: 'title: "' + repeated("\\x41")(size) + '"',
    "a long list of tags": lambda size: "tags: [" + ", ".join(taken((f"t{n}" for n in count()), size)) + "]",
    "tags with commas": lambda size: "tags: " + repeated("tea, ")(size),
    "a long title": lambda size: "title: " + repeated("word ")(size),
    "a date of digits": lambda size: "date: '" + repeated("2031-")(size) + "'",
}

MARKDOWN: dict[str, Write] = {
    "words": repeated("The boats are red and small. "),
    "one letter": repeated("a"),
    "capitals": repeated("A"),
    "humps": repeated("aB"),
    "digits": repeated("1"),
    "numbers with colons": repeated("12:"),
    "numbers with dots": repeated("1.2."),
    "dashes": repeated("-"),
    "dashes and letters": repeated("a-"),
    "underscores": repeated("_"),
    "stars": repeated("*"),
    "backticks": repeated("`"),
    "backticks of many lengths": lambda size: " ".join(taken(("`" * n + "x" for n in count(1)), size)),
    "quotation marks": repeated(">"),
    "quotation marks with spaces": repeated("> "),
    "lines of deeper quotation": staircase("> a", ">"),
    "list signs": repeated("- "),
    "lists in lists": staircase("- a", "  "),
    "numbered lists in lists": staircase("1. a", "   "),
    "list items": repeated("- a\n"),
    "list items with open lines": repeated("- a\nb\n"),
    "list items and rules": repeated("- a\n***\n"),
    "items of two kinds": repeated("- a\n+ b\n"),
    "indented items": repeated("    - a\n"),
    "opening brackets": repeated("["),
    "brackets": nested("[", "x", "]"),
    "links": repeated("[a](b "),
    "images": repeated("![a]("),
    "definitions": numbered("[a{n}]: http://b.example/{n}"),
    "open definitions": repeated("[a\n"),
    "definitions with titles": repeated('[a]: b\n"\n'),
    "definitions with open titles": repeated("[a]: b 'c\n"),
    "tags": repeated("<a>"),
    "opening angles": repeated("<"),
    "open comments": repeated("<!--"),
    "open comments on lines": repeated("<!-- a\n\n"),
    "instructions": repeated("<?"),
    "open sections": repeated("<![CDATA["),
    "entities": repeated("&amp;"),
    "ampersands": repeated("&"),
    "backslashes": repeated("\\"),
    "tildes": repeated("~"),
    "open fences": repeated("```\n\n````\n"),
    "fences of many lengths": lambda size: "\n".join(taken(("`" * n for n in count(3)), size)),
    "open fences of two kinds": lambda size: "\n".join(taken(("`~"[n % 2] * 3 + f"{n}" for n in count()), size)),
    "code": repeated("    code\n"),
    "code and blank lines": repeated("    code\n\n\n"),
    "tables": repeated("|a|b|\n|-|-|\n|c|d|\n"),
    "a long table": after("|a|b|\n|-|-|\n", "|c|d|\n"),
    "bars": repeated("|"),
    "a wide table": lambda size: "|a" * (size // 4) + "|\n" + "|-" * (size // 4) + "|\n",
    "open tables": repeated("a|b\n-|-\n"),
    "paragraphs that may be tables": repeated("a|b\n"),
    "headings": numbered("# Boat {n}"),
    "deep headings": lambda size: "\n".join(taken((f"{'#' * (n % 6 + 1)} b{n}" for n in count()), size)),
    "hashes": repeated("#"),
    "a long heading": lambda size: "# " + repeated("word ")(size),
    "a long heading above a text": halves(after("# ", "word "), repeated("The boats are red.\n\n")),
    "closed headings": lambda size: "# a " + repeated("#")(size) + " b",
    "spaces in a heading": lambda size: "# a" + repeated(" ")(size) + "b",
    "underlines": repeated("a\n=\n"),
    "lines under a paragraph": repeated("a\n-\n"),
    "blank lines": repeated("\n"),
    "blank lines before a word": lambda size: "a\n" + repeated("\n")(size) + "b",
    "spaces": repeated(" "),
    "tabs": repeated("\t"),
    "lines of spaces": repeated(" \n"),
    "a staircase": staircase("a"),
    "markers": numbered("<!-- whyrank: importance=5 tags=t{n} -->"),
    "markers on one line": repeated("<!-- whyrank: tags=a -->"),
    "open markers": repeated("<!-- whyrank: "),
    "open markers and words": after("<!-- whyrank: tags=a -->\n", "<!-- a "),
    "markers below headings": repeated("# a\n\n<!-- whyrank: tags=a -->\n\nboats\n\n"),
    "markers above a text": halves(numbered("<!-- whyrank: tags=t{n} -->"), repeated("The boats are red.\n\n")),
    "bad markers": numbered("<!-- whyrank: bad{n} -->"),
    "markers with backticks": after("<!-- whyrank: tags=a -->\n", "`"),
    "markers with spaced backticks": lambda size: (
        "<!-- whyrank: tags=a -->\n" + " ".join(taken(("`" * n for n in count(1)), size))
    ),
    "markers and spaces": lambda size: "<!-- whyrank: tags=a -->\n" + repeated(" ")(size) + "x",
    "comments of spaces": after("<!-- whyrank: tags=a -->\nx<!--", " "),
    "quoted markers": lambda size: f"<!-- whyrank: tags='{repeated('a ')(size)} -->",
    "combining marks": repeated("e\u0301\u0323"),
    "combining marks on one letter": after("e", "\u0301\u0323"),
    "Chinese": repeated("漢字文章。"),
    "Chinese without a stop": repeated("漢"),
    "Thai": repeated("ภาษาไทย"),
    "Hangul": repeated("\u1112\u1161\u11ab"),
    "ligatures": repeated("\ufdfa"),
    "emoji": repeated("👩\u200d🚀"),
    "Arabic": repeated("سفينة "),
    "Greek symbols": repeated("αβ-"),
    "apostrophes": repeated("a'"),
    "addresses": repeated("a@b."),
    "paths": repeated("/a"),
    "escaped slashes": repeated("a\\"),
    "plus signs": repeated("c++"),
    "dates": repeated("29.12.2023 "),
    "days before days": repeated("the day before yesterday "),
    "months": repeated("May 5 "),
    "different words": numbered("w{n}"),
    "control characters": repeated("\x01\x02"),
    "separators of lines": repeated("a\u2028"),
    "form feeds": repeated("a\f"),
    "returns": repeated("a\r"),
    "zeros": repeated("a\x00"),
}

LOGS: dict[str, Write] = {
    "turns": numbered('{{"text": "boat {n}", "speaker": "Greta", "ts": {n}}}'),
    "one turn": lambda size: json.dumps({"text": repeated("word ")(size)}),
    "one word": lambda size: json.dumps({"text": repeated("a")(size)}),
    "one word of signs": lambda size: json.dumps({"text": repeated("a-")(size)}),
    "brackets": repeated("["),
    "bad lines": repeated("{\n"),
    "parts": lambda size: json.dumps({"content": [{"text": "a"}] * (size // 13)}),
    "equal turns": repeated('{"text": "yes"}\n'),
    "digits": lambda size: '{"text": "a", "ts": ' + repeated("1")(size) + "}",
    "a long date": lambda size: json.dumps({"text": "a", "date": repeated("1 ")(size)}),
    "a long speaker": lambda size: json.dumps({"text": "a", "speaker": repeated("word ")(size)}),
    "escapes": lambda size: '{"text": "' + repeated("\\u0041")(size // 6 * 6) + '"}',
    "keys": lambda size: json.dumps({f"k{n}": n for n in range(size // 12)} | {"text": "a"}),
    "days before days": lambda size: json.dumps({"text": repeated("the day before yesterday ")(size), "ts": 1}),
    "months": lambda size: json.dumps({"text": repeated("May 5 ")(size), "ts": 1}),
    "dates with dots": lambda size: json.dumps({"text": repeated("1.")(size), "ts": 1}),
    "numbers": lambda size: json.dumps({"text": repeated("9 ")(size), "ts": 1}),
    "two days away and words": lambda size: json.dumps(
        {"text": repeated("the day before yesterday ")(size // 2) + repeated("word ")(size // 2), "ts": 1}
    ),
    "combining marks": lambda size: json.dumps({"text": "e" + repeated("\u0301\u0323")(size)}, ensure_ascii=False),
    "Chinese": lambda size: json.dumps({"text": repeated("漢")(size)}, ensure_ascii=False),
    "apostrophes": lambda size: json.dumps({"text": repeated("a'")(size)}),
    "capitals": lambda size: json.dumps({"text": repeated("A")(size)}),
    "humps": lambda size: json.dumps({"text": repeated("aBs")(size)}),
    "Greek symbols": lambda size: json.dumps({"text": repeated("αβ-")(size)}, ensure_ascii=False),
    "accented capitals": lambda size: json.dumps({"text": repeated("ÄÖs")(size)}, ensure_ascii=False),
}

TEXTS: dict[str, Write] = {
    "words": repeated("The boats are red. "),
    "lines": repeated("boats\n"),
    "blank lines": repeated("\n"),
    "paragraphs": numbered("boat {n}\n"),
    "one line without spaces": repeated("x"),
    "lines of spaces": repeated("   \n"),
}

SKILLS: dict[str, Write] = {
    "a long description": lambda size: f"---\nname: t\ndescription: {repeated('word ')(size)}\n---\n",
    "a long description and a body": lambda size: (
        f"---\nname: t\ndescription: {repeated('word ')(size // 2)}\n---\n\n{repeated('boats')(size // 2)}"
    ),
    "aliases": lambda size: (
        "---\nname: t\naliases: [" + ", ".join(taken((f"t{n}" for n in count()), size)) + "]\n---\nx"
    ),
    "aliases above a text": halves(
        lambda size: "---\naliases: [" + ", ".join(taken((f"t{n}" for n in count()), size)) + "]\n---",
        repeated("The boats are red.\n\n"),
    ),
}
