"""Evaluation sets on disk: a corpus or files, queries, and judgements."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis.normalize import clean
from ..errors import BadDataset
from ..types.memory import GLOBAL, Document, Scope

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_COLUMNS = 3  # of a judgement: query, document, gain
_SHOWN_CHARACTERS = 80
_EACH_LINE = "each line is an object with id and text"


class Question(NamedTuple):
    """A query of a set: its kind may be empty, its scope global."""

    id: str
    text: str
    kind: str
    scope: Scope


@dataclass(frozen=True)
class EvaluationSet:
    """Documents (or a folder of files), queries, and relevance judgements."""

    name: str
    language: str
    documents: tuple[Document, ...]
    files: Path | None
    questions: tuple[Question, ...]
    judgements: Mapping[str, Mapping[str, int]]
    unjudged: int = 0  # queries that were left out because nothing answers them
    paths: tuple[str, ...] = ()  # below `files`, those that are taken; none: all of them


def load_set(folder: Path) -> EvaluationSet:
    """Read a set; an invalid one raises BadDataset with the reason."""
    if not _is_folder(folder):
        raise BadDataset(
            f"{folder} is not a folder", "give a folder with corpus.jsonl or files/, queries.jsonl, qrels.tsv"
        )
    about = _about(folder / "set.json")
    files = folder / "files"
    corpus = folder / "corpus.jsonl"
    if not corpus.is_file() and not files.is_dir():
        raise BadDataset(f"{folder} has neither corpus.jsonl nor files/", "a set needs one of them")
    documents: tuple[Document, ...] = ()
    if corpus.is_file():
        documents = tuple(_documents(corpus))
        if not documents:
            raise BadDataset(f"{corpus} is empty", "give one document per line")
        _check_once(corpus, [document.id for document in documents], "document")
    asked = [
        Question(str(row["id"]), str(row["text"]), str(row.get("kind") or ""), _scope(row.get("scope")))
        for row in _rows(folder / "queries.jsonl")
    ]
    _check_once(folder / "queries.jsonl", [question.id for question in asked], "query")
    judgements = _judgements(folder / "qrels.tsv", {question.id for question in asked})
    questions = tuple(question for question in asked if question.id in judgements)
    if not questions:
        raise BadDataset(f"no query of {folder} has a relevant document", "check queries.jsonl and qrels.tsv")
    return EvaluationSet(
        name=str(about.get("name") or folder.resolve().name),
        language=str(about.get("lang") or "en"),
        documents=documents,
        files=None if documents else files,
        questions=questions,
        judgements=judgements,
        unjudged=len(asked) - len(questions),
    )


def load_kinds(name: str) -> EvaluationSet:
    """Read a set by its folder, or as FOLDER:KIND,KIND for its queries of some kinds alone."""
    folder, kinds = split_kinds(name)
    dataset, wanted = load_set(folder), kinds.split(",")
    if not kinds:
        return dataset
    known = sorted({question.kind for question in dataset.questions})
    if missing := [kind for kind in wanted if kind not in known]:
        there = f"its kinds are {', '.join(filter(None, known))}" if any(known) else "its questions have no kind"
        raise BadDataset(f"{folder} has no question of the kind {missing[0]!r}", there)
    questions = tuple(question for question in dataset.questions if question.kind in wanted)
    judgements = {question.id: dataset.judgements[question.id] for question in questions}
    return replace(dataset, name=f"{dataset.name}:{kinds}", questions=questions, judgements=judgements)


def split_kinds(name: str) -> tuple[Path, str]:
    """Return the folder and the kinds of FOLDER:KIND,KIND; no kinds if the name is that of a folder."""
    folder, colon, kinds = name.rpartition(":")
    return (Path(folder), kinds) if colon and not _is_folder(Path(name)) else (Path(name), "")


def digest(dataset: EvaluationSet) -> str:
    """Return the hash of the documents of a set, which identifies results on the same documents."""
    told = hashlib.sha256()
    for one in dataset.documents:
        said = (one.id, one.title, one.text, str(one.scope), one.slug, one.owner, one.date, one.session, one.speaker)
        told.update("\0".join((*said, "")).encode("utf-8", "surrogatepass"))
    if dataset.files is not None:
        taken = (dataset.files / path for path in dataset.paths) if dataset.paths else dataset.files.rglob("*")
        for file in sorted(file for file in taken if file.is_file()):
            place = file.relative_to(dataset.files).as_posix()
            told.update(f"{place}\0{file.stat().st_size}\0".encode("utf-8", "surrogateescape"))
            told.update(file.read_bytes())
    return told.hexdigest()[:16]


def _is_folder(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except (OSError, ValueError):
        return False


def _check_once(file: Path, ids: Sequence[str], what: str) -> None:
    for most, count in Counter(ids).most_common(1):
        if count > 1:
            raise BadDataset(f"{file} contains the id {most!r} {count} times", f"give every {what} an id of its own")


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadDataset(
            f"{file} is missing", "a set needs queries.jsonl, qrels.tsv, and corpus.jsonl or files/"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"{file} cannot be read: {error}", "it must be UTF-8 text") from error


def _about(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        about = json.loads(_text_of(file))
    except ValueError as error:
        raise BadDataset(f"{file}: {error}", "set.json must be a JSON object") from error
    return about if isinstance(about, dict) else {}


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_text_of(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            said = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else "too deep"
            raise BadDataset(f"{file}:{number} is not JSON: {said}", _EACH_LINE) from error
        if isinstance(row, dict) and "id" not in row and "_id" in row:  # as the sets of BEIR have it
            row["id"] = row["_id"]
        if (wrong := _slip(row)) is not None:
            raise BadDataset(f"{file}:{number} {wrong}", _EACH_LINE)
        yield row


def _slip(row: object) -> str | None:
    """Return the defect of a row as text, or None."""
    if not isinstance(row, dict):
        return "is not an object"
    lacking = [name for name in ("id", "text") if name not in row]
    if lacking:
        return f"has no {' and no '.join(lacking)}"
    meta = row.get("meta") or {}
    return None if isinstance(meta, dict) else f"has a meta that is not an object: {str(meta)[:_SHOWN_CHARACTERS]!r}"


def _documents(file: Path) -> Iterator[Document]:
    for row in _rows(file):
        meta = row.get("meta") or {}
        yield Document(
            id=clean(str(row["id"])).text,
            text=str(row["text"]),
            title=clean(str(row.get("title") or "")).text,
            scope=_scope(meta.get("scope")),
            slug=str(meta.get("slug") or ""),
            owner=str(meta.get("owner") or ""),
            date=str(meta.get("date") or ""),
            session=str(meta.get("session") or ""),
            speaker=str(meta.get("speaker") or ""),
        )


def _scope(name: object) -> Scope:
    return Scope("user", str(name)) if name else GLOBAL


def _judgements(file: Path, questions: Collection[str]) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for number, line in enumerate(_text_of(file).removeprefix("\ufeff").split("\n"), 1):
        columns = line.split("\t")
        is_triple = len(columns) == _COLUMNS
        is_judgement = is_triple and _is_whole(columns[-1])
        # A header has no gain in the last column, and its first is no query.
        is_header = number == 1 and is_triple and not is_judgement and columns[0] not in questions
        if not line.strip() or is_header:
            continue
        if not is_judgement:
            raise BadDataset(
                f"{file}:{number}: {line[:_SHOWN_CHARACTERS]!r} is not a judgement",
                "each line is a query, a document and a gain, a whole number, with tabs between them",
            )
        question, document, gain = columns
        judged.setdefault(question, {})[document] = int(gain)
    return {question: gains for question, gains in judged.items() if any(gain > 0 for gain in gains.values())}


def _is_whole(number: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", number.strip()) is not None
