"""Looking after a store: its settings, its model, its confidence."""

from __future__ import annotations

import argparse

from .parts import Family, one_of, verb


def add_verbs(family: Family) -> None:
    """Add the verbs of this family."""
    _calibrate(verb(family, "calibrate", "fit confidence to this store", _CALIBRATE))
    verb(family, "status", "what the store holds", "Count memories, files, scopes and vectors.")
    _config(verb(family, "config", "show or change settings", _CONFIG))
    _model(verb(family, "model", "list, fetch and change embedding models", _MODEL))
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
_MODEL = """List the embedding models, fetch one, change to one, go back, or drop one. Changing fetches the model if
need be (once per machine, checked against its pinned hash) and embeds what the store holds, while the model before it
answers; then all who have the store open change at once, and the setting `embedding` is written into whyrank.toml of
the workspace. Stopped, it goes on where it was when called again. Vectors of the model before stay, so that going back
costs nothing.

  whyrank model list                    what there is, what is ready, what is in use, which spaces the store holds
  whyrank model use minilm              change to all-MiniLM-L6-v2 (needs: pip install onnxruntime)
  whyrank model use minilm --dry-run    say what that would take
  whyrank model use minilm --check      compare both first; stay with the old one if pinned answers would be lost
  whyrank model use minilm --background leave it to a process of its own
  whyrank model rollback                back to the one before
  whyrank model drop minilm             delete its vectors (by the name of a model, or of a space)
  whyrank model fetch minilm            only fetch, for a machine that will be offline

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
    actions = ("list", "use", "fetch", "rollback", "drop")
    shown, read = f"{{{','.join(actions)}}}", one_of("action", actions)
    parser.add_argument("action", nargs="?", type=read, metavar=shown, default="list", help="what to do (list)")
    parser.add_argument("name", nargs="?", help="the model")
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
