"""Plant bugs and see the tests die: a law that no bug can break proves nothing. Run by `make mutants`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LAWS = "tests/properties/test_ranking_laws.py"
SEARCH_LAWS = "tests/properties/test_search_laws.py"
COUNTERFACTUALS = "tests/unit/ranking/test_counterfactuals.py tests/properties/test_counterfactual_laws.py"
BROWSER = "tests/e2e/browser/test_ranking_in_the_browser.py"
EXPLANATIONS = "tests/properties/test_explanation_laws.py"
CONTRACT = "tests/contract"
MATCHING = "tests/properties/test_matching_laws.py"
WALK = "tests/unit/ingest/test_walk.py"
HOSTILE = "tests/unit/ingest/test_hostile.py"
DAMAGE = "tests/unit/storage/test_mutations.py"
POWER = "tests/reliability/test_power.py"
EXTRACTION = "tests/unit/ingest/test_answers.py tests/unit/ingest/test_extractor.py tests/unit/ingest/test_globs.py"
OTHER_SYSTEMS = "tests/unit/ranking/test_other_systems.py"
PURGE = "tests/unit/storage/test_purge.py"


class Mutant(NamedTuple):
    """One planted bug: in which file, what is replaced by what, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = (
    Mutant(
        "a full disk keeps its ballast",
        "storage/sqlite/backend.py",
        "if not (frees and self._ballast.release()):",
        "if True:",
        "tests/soak/test_full_disk.py",
    ),
    Mutant(
        "copies of moved cells survive a purge",
        "storage/sqlite/purge.py",
        "_write(file, begin, bytes(size))",
        "pass",
        PURGE,
    ),
    Mutant(
        "words of purged memories stay listed",
        "storage/sqlite/postings/segments.py",
        "terms.scrub(connection, segment, _held_by(connection, segment))",
        "pass",
        PURGE,
    ),
    Mutant(
        "a file that became a link is followed",
        "ingest/walk.py",
        "return os.open(last, flags | _NO_LINK, dir_fd=descriptor)",
        "return os.open(last, flags, dir_fd=descriptor)",
        WALK,
    ),
    Mutant(
        "a folder that became a link is followed",
        "ingest/walk.py",
        "inner = os.open(folder, _FOLDER | _NO_LINK, dir_fd=descriptor)",
        "inner = os.open(folder, _FOLDER, dir_fd=descriptor)",
        WALK,
    ),
    Mutant(
        "what was opened is not compared",
        "ingest/walk.py",
        "there, opened = os.lstat(_resolved(root, path)), os.fstat(descriptor)",
        "there = opened = os.fstat(descriptor)",
        WALK,
    ),
    Mutant(
        "front matter of any length",
        "ingest/frontmatter.py",
        "    if size > MOST_CHARACTERS:",
        "    if size < 0:",
        HOSTILE,
    ),
    Mutant(
        "aliases without an end",
        "ingest/frontmatter.py",
        "            if self._aliases > MOST_ALIASES:",
        "            if self._aliases < 0:",
        HOSTILE,
    ),
    Mutant(
        "marks of one letter sorted by insertion",
        "analysis/normalize.py",
        "        text = _MANY_MARKS.sub(",
        "        _MANY_MARKS.sub(",
        "tests/unit/ingest/test_growth.py",
    ),
    Mutant(
        "a long heading above every chunk",
        "ingest/markdown.py",
        "title=block.title[:MOST_OF_A_HEADING])",
        "title=block.title)",
        HOSTILE,
    ),
    Mutant(
        "relevance from zero in the browser",
        "interfaces/http/page/ranking/normalisers.js",
        "const half = high / 2 - low / 2;",
        "const half = high / 2;",
        BROWSER,
    ),
    Mutant(
        "diversity before the grouping of files in the browser",
        "interfaces/http/page/ranking/recipe.js",
        'const LATE = ["group", "mmr"];',
        'const LATE = ["mmr", "group"];',
        BROWSER,
    ),
    Mutant(
        "a cap that stays where the boost weight goes in the browser",
        "interfaces/http/page/ranking/recipe.js",
        "cap: strength",
        "cap: 15",
        BROWSER,
    ),
    Mutant(
        "other wordings on top of the question",
        "ranking/fusion.py",
        "weight=(vote.weight or 0.0) * share)",
        "weight=vote.weight)",
        "tests/unit/search/test_expansion.py",
    ),
    Mutant(
        "a share for wordings that found nothing",
        "search/expansion.py",
        "if family_of(name) == family and name in found]",
        "if family_of(name) == family]",
        "tests/unit/search/test_expansion.py",
    ),
    Mutant(
        "a made-up answer as evidence",
        "storage/retrieval.py",
        "None if any(probe.label == _HYDE for probe in request.probes) else request.vector",
        "request.vector",
        "tests/unit/search/test_expansion.py",
    ),
    Mutant(
        "the key in an error",
        "providers/http.py",
        "self.endpoint.key.hidden_in(text) if self.endpoint.key else text",
        "text",
        "tests/unit/transport",
    ),
    Mutant(
        "a key for any host",
        "engine/open.py",
        "if url == OPENAI_URL and OPENAI_KEY_VARIABLE",
        "if OPENAI_KEY_VARIABLE",
        "tests/e2e/test_providers.py",
    ),
    Mutant(
        "an origin without its port",
        "interfaces/auth.py",
        "return _name(place) == name and _port(place, scheme) == _port(host, scheme)",
        "return _name(place) == name",
        "tests/unit/interfaces/test_auth.py tests/e2e/test_web_matrix.py",
    ),
    Mutant(
        "a damaged call answered under no id",
        "interfaces/mcp/transports.py",
        "return None if isinstance(read, str) and _SURROGATE.search(read) else read",
        "return None",
        "tests/unit/interfaces/mcp/test_messages.py",
    ),
    Mutant(
        "the tenant that was used last is closed first",
        "interfaces/engine_pool.py",
        "self._open.move_to_end(pooled)",
        "self._open.move_to_end(pooled, last=False)",
        "tests/unit/interfaces/test_engine_pool.py",
    ),
    Mutant(
        "an untrusted memory injected",
        "engine/recall.py",
        "if memory.trust not in self._trusts:",
        "if memory.trust is None:",
        "tests/unit/test_recall.py",
    ),
    Mutant(
        "memories injected whatever the verdict",
        "engine/recall.py",
        'if found.verdict == "nothing":',
        'if found.verdict == "":',
        "tests/unit/test_recall.py",
    ),
    Mutant(
        "a memory injected twice in a session",
        "engine/recall.py",
        "elif (memory.id, _digest(memory.text)) in shown:",
        "elif memory.id in shown:",
        "tests/unit/test_recall.py",
    ),
    Mutant(
        "a session of one caller seen by another",
        "engine/recall_log.py",
        "elif entry.scopes == tuple(scopes):",
        "else:",
        "tests/unit/test_recall.py",
    ),
    Mutant(
        "a hook that fails its host",
        "interfaces/cli/main.py",
        'return OK if given[:1] == ["hook"] else status',
        "return status",
        "tests/e2e/test_recall.py",
    ),
    Mutant(
        "tags that a model reads and nobody sees",
        "analysis/sanitize.py",
        "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff",
        "\\U0001d173-\\U0001d17a",
        "tests/unit/interfaces/test_characters.py tests/unit/interfaces/test_quoting.py",
    ),
    Mutant(
        "a password in the error of a setting",
        "config/settings.py",
        "return masked_url(str(raw))",
        "return str(raw)",
        "tests/e2e/test_no_secret.py",
    ),
    Mutant("sign flipped", "storage/sqlite/fts5.py", "SELECT -bm25(words)", "SELECT bm25(words)", "tests/regressions"),
    Mutant(
        "unlisted counted as zero",
        "ranking/fusion.py",
        "signal = context.signals.get(vote.signal) or as_signal(run)",
        "signal = as_signal(run, ids)",
        LAWS,
    ),
    Mutant(
        "a score made up for what a foreign list does not hold",
        "ranking/fusion.py",
        "signal = context.signals.get(vote.signal) or as_signal(run)",
        "signal = context.signals.get(vote.signal) or as_signal(run, ids)",
        "tests/unit/ranking/test_foreign.py",
    ),
    Mutant(
        "the cap of words shared out",
        "ranking/recipes.py",
        'absent="kept"',
        'absent="shared"',
        OTHER_SYSTEMS,
    ),
    Mutant(
        "silent votes forgotten where weights are kept",
        "ranking/fusion.py",
        "return self.whole * (spoken / every) if every else self.whole",
        "return self.whole",
        OTHER_SYSTEMS,
    ),
    Mutant(
        "a cosine that does not save its row",
        "ranking/stages.py",
        "vector.raw >= self.min_score:",
        "vector.raw > 1:",
        OTHER_SYSTEMS,
    ),
    Mutant(
        "the only note with a word dropped",
        "ranking/stages.py",
        "if len(holders[word]) == 1",
        "if not holders[word]",
        "tests/unit/ranking/test_stages.py",
    ),
    Mutant(
        "one of two words enough",
        "ranking/boosts.py",
        "if not lacking or (match",
        "if len(lacking) < len(asked) or (match",
        OTHER_SYSTEMS,
    ),
    Mutant(
        "a refusal looked for",
        "search/expansion.py",
        "return _REFUSAL.match(",
        "return _REFUSAL.fullmatch(",
        "tests/unit/search/test_expansion.py",
    ),
    Mutant(
        "filter after the cut",
        "storage/sqlite/fts5.py",
        'f"WHERE words MATCH ? AND {where.sql} ORDER BY',
        'f"WHERE words MATCH ? AND (1 OR {where.sql}) ORDER BY',
        CONTRACT,
    ),
    Mutant(
        "threshold on the fused score",
        "ranking/stages.py",
        "if name_tier(hit.tier) or self.passes(cosine, coverage):",
        "if hit.score >= 0.35:",
        "tests/regressions tests/unit/ranking",
    ),
    Mutant(
        "calibration looks over the wall",
        "storage/store.py",
        'ids = self._read(f"SELECT m.id FROM memories AS m WHERE {clause.sql}", clause.parameters)',
        'ids = self._read("SELECT m.id FROM memories AS m")',
        CONTRACT,
    ),
    Mutant(
        "an expression filters the keyword run alone",
        "storage/sqlite/vectors/index.py",
        "allowed = view.allowed(shelves, where)",
        "allowed = [view.masks.allowed(view.connection, shelf, where) for shelf in shelves]",
        CONTRACT,
    ),
    Mutant(
        "codes are taken for the vectors themselves",
        "storage/sqlite/vectors/index.py",
        "wanted, codes.reach, codes.step",
        "wanted, 0.0, 0.0",
        "tests/properties/test_code_laws.py",
    ),
    Mutant(
        "fresh words are not looked through",
        "storage/sqlite/postings/reader.py",
        "known = {token for text in self.stored.fresh for token in text.tokens if token.startswith(start)}",
        "known: set[str] = set()",
        MATCHING,
    ),
    Mutant(
        "a merge forgets the first words",
        "storage/sqlite/postings/terms.py",
        "    start = max(key, 0)\n",
        "    start = max(key, 0) + 1\n",
        "tests/unit/storage/test_terms.py",
    ),
    Mutant(
        "a beginning ends with its stem",
        "analysis/query.py",
        "yield beginning + ending[held:]",
        "yield beginning",
        "tests/unit/analysis/test_endings.py",
    ),
    Mutant(
        "confidence falls with evidence",
        "search/confidence.py",
        "CONFIDENCE_AT_WEAK + share * (",
        "CONFIDENCE_AT_WEAK - share * (",
        SEARCH_LAWS,
    ),
    Mutant(
        "coverage counts alike for one word and for ten",
        "search/confidence.py",
        "words / (words + WORDS_AT_HALF)",
        "words / (words + WORDS_AT_HALF * words)",
        "tests/unit/search/test_confidence.py",
    ),
    Mutant(
        "the only word asked for may be nothing",
        "search/confidence.py",
        "least if coverage else 0.0\n",
        "0.0\n",
        SEARCH_LAWS,
    ),
    Mutant(
        "unstable tie",
        "types/results.py",
        "order.sort(key=ties.__getitem__)",
        "pass",
        LAWS,
    ),
    Mutant(
        "lost candidate",
        "ranking/fusion.py",
        "ids, ballot = candidate_ids(runs), self.ballot(runs)",
        "ids, ballot = candidate_ids(runs[-1:]), self.ballot(runs)",
        LAWS,
    ),
    Mutant(
        "dropped hit forgotten",
        "types/results.py",
        "hits=kept, dropped=before.joined(dropped), notices=ranking.notices)",
        "hits=kept, notices=ranking.notices)",
        LAWS,
    ),
    Mutant(
        "NaN from an empty reach",
        "ranking/fusion.py",
        "if reach > 0 else abs(scores) * 0.0",
        "if reach > 0 else abs(scores) * float('nan')",
        LAWS,
    ),
    Mutant(
        "foreign scope in the statistics",
        "storage/sqlite/fts5.py",
        "words.rowid WHERE words MATCH ? AND {wall.sql}",
        "words.rowid WHERE words MATCH ? AND (1 OR {wall.sql})",
        f"{CONTRACT} {SEARCH_LAWS}",
    ),
    Mutant(
        "score changed behind the trail",
        "ranking/stages.py",
        'return (Step("recency", "scale", factor, told),)',
        'return (Step("recency", "note", factor, told),)',
        "tests/unit/ranking",
    ),
    Mutant(
        "explanation that does not add up",
        "types/trail.py",
        "        value += part.value\n    return value",
        "        value += part.value\n    return value * 1.0000001",
        LAWS,
    ),
    Mutant(
        "terms with one name overwrite each other in JSON",
        "interfaces/serialize.py",
        '"terms": [term._asdict() for term in part.terms],',
        '"terms": [*{term.term: term._asdict() for term in part.terms}.values()],',
        EXPLANATIONS,
    ),
    Mutant(
        "terms with one name overwrite each other on the page",
        "interfaces/http/page/ranking/fusion.js",
        "  return terms;",
        "  return [...new Map(terms.map((term) => [term.term, term])).values()];",
        BROWSER,
    ),
    Mutant(
        "terms rounded in the candidates of the page",
        "interfaces/serialize_candidates.py",
        "added[-1] += keys.setdefault(TermKey(*key), len(keys)), value",
        "added[-1] += keys.setdefault(TermKey(*key), len(keys)), round(value, 3)",
        "tests/e2e/test_explained_sums.py",
    ),
    Mutant(
        "a raw score without its terms where a run alone decides",
        "ranking/fusion.py",
        "return Signal(run.name, {**listed.values, **scores}, terms=scored.terms)",
        "return listed",
        EXPLANATIONS,
    ),
    Mutant(
        "normaliser upside down",
        "ranking/fusion.py",
        "return _units(scores / (",
        "return 1 / (1 + scores / (",
        LAWS,
    ),
    Mutant(
        "repeats raise coverage",
        "storage/sqlite/postings/scorer.py",
        "once = once / np.array([[self.terms[i].often] for i in words])",
        "once = once * 1.0",
        f"{CONTRACT}/test_repeats.py",
    ),
    Mutant(
        "a filter makes an entity unknown",
        "storage/query_resolution.py",
        "where = Where(query.where.scopes, include_superseded=True, now=query.where.now)",
        "where = query.where",
        "tests/unit/search/test_mentions.py",
    ),
    Mutant(
        "small batches measured by their best",
        "ranking/fusion.py",
        "self.cap if len(scores) < self.least else max(best, TINY)",
        "max(best, TINY)",
        OTHER_SYSTEMS,
    ),
    Mutant(
        "strength lost where a signal is missing",
        "ranking/fusion.py",
        "return share_out(own, self.ballot.whole)",
        "return share_out(own)",
        "tests/unit/ranking/test_fusion.py",
    ),
    Mutant(
        "pool follows the limit",
        "storage/retrieval.py",
        "store.nearest, vector, request.space, where, pool)",
        "store.nearest, vector, request.space, where, resolution.query.limit)",
        "tests/regressions",
    ),
    Mutant(
        "empty run keeps its weight",
        "ranking/fusion.py",
        "answered = [vote for vote in votes if vote.signal in found]",
        "answered = votes",
        LAWS,
    ),
    Mutant(
        "scope guard asleep",
        "ranking/stages.py",
        "inside = tuple(hit for hit in ranking.hits if hit.memory.scope in scopes)",
        "inside = ranking.hits",
        LAWS,
    ),
    Mutant(
        "superseded memories answer",
        "storage/sqlite/filters.py",
        'parts.append(Clause("m.superseded_by IS NULL", ()))',
        "pass",
        CONTRACT,
    ),
    Mutant(
        "tokens unquoted",
        "storage/sqlite/fts5.py",
        "return '\"' + term.replace('\"', '\"\"') + '\"'",
        "return term",
        f"{CONTRACT} tests/regressions",
    ),
    Mutant(
        "names by bonus and not by tier",
        "ranking/stages.py",
        'return Step(stage, "lift", tier,',
        'return Step(stage, "add", 0.1,',
        "tests/regressions",
    ),
    Mutant(
        "a change that is too small",
        "ranking/counterfactuals.py",
        "        if flips(middle):\n            outer = middle",
        "        if not flips(middle):\n            outer = middle",
        COUNTERFACTUALS,
    ),
    Mutant(
        "a change that is larger than it must be",
        "ranking/counterfactuals.py",
        "_NARROW = 0.996",
        "_NARROW = 0.5",
        COUNTERFACTUALS,
    ),
    Mutant(
        "diversity that looks at the page",
        "ranking/diversity.py",
        "missing = {*range(len(hits))} if wanted is None",
        "missing = {*range(min(len(hits), context.query.limit))} if wanted is None",
        f"{LAWS} tests/regressions/test_17_limit_changes_the_first.py",
    ),
    Mutant(
        "a code that anybody covers",
        "storage/query_resolution.py",
        "1.0 if key in holders else",
        "1.0 if covered else",
        "tests/unit/search/test_codes.py",
    ),
    Mutant(
        "words of one text alone left out of its length",
        "ranking/diversity.py",
        "self.lengths = np.array([len(words) for words in texts], np.int64)",
        "self.lengths = bits.sum(axis=1, dtype=np.int64)",
        "tests/unit/ranking/test_likeness.py",
    ),
    Mutant(
        "reranked window not lifted",
        "ranking/stages.py",
        'Step("rerank", "lift", WINDOW_LIFT,',
        'Step("rerank", "note", WINDOW_LIFT,',
        "tests/unit/ranking/test_reranking.py",
    ),
    Mutant(
        "vectors of a foreign scope handed out",
        "storage/sqlite/index_reader.py",
        "space, places.ids, places.keys, scopes)",
        "space, places.ids, places.keys, scopes | {type(min(scopes))('user', '2')})",
        CONTRACT,
    ),
    Mutant(
        "a file accepted without its hash",
        "providers/onnx/description.py",
        "or sha256_of(path) == self.sha256",
        "or True",
        "tests/unit/embedding/onnx/test_fetch.py",
    ),
    Mutant(
        "the last part stands for a long text",
        "providers/onnx/embedder.py",
        "sums[piece.text] += len(piece.ids) * vector",
        "sums[piece.text] = vector",
        "tests/unit/embedding/onnx/test_minilm.py",
    ),
    Mutant(
        "the prompt of texts before a question",
        "providers/onnx/embedder.py",
        "self._embed([text], self.description.prompts.query)",
        "self._embed([text], self.description.prompts.passage)",
        "tests/unit/embedding/onnx/test_embedder.py",
    ),
    Mutant(
        "files of another first use believed",
        "providers/onnx/install.py",
        "        if not pinned.is_at(folder / pinned.name):",
        "        if False:",
        "tests/unit/embedding/onnx/test_any_model.py",
    ),
    Mutant(
        "texts of a batch scaled together",
        "providers/onnx/embedder.py",
        "_TOKENS_PER_BATCH if self.description.is_exact_in_batches else 1",
        "_TOKENS_PER_BATCH",
        "tests/unit/embedding/onnx/test_minilm.py",
    ),
    Mutant(
        "the setting written before the store is filled",
        "interfaces/cli/models.py",
        '    if config.has_store and name != "none":',
        '    settings.save(config, "embedding", name)\n    if config.has_store and name != "none":',
        "tests/e2e/test_models.py",
    ),
    Mutant(
        "a switch before the space is filled",
        "engine/models.py",
        "        before = self._begin(space)\n",
        "        before = self._begin(space)\n        self._serving.change(lambda roles: roles.switched(space))\n",
        "tests/unit/test_spaces.py",
    ),
    Mutant(
        "the settings decide which space answers",
        "engine/spaces.py",
        "embedder = self._configured if roles.serving is None else self.made(roles.serving)",
        "embedder = self._configured",
        "tests/unit/test_spaces.py",
    ),
    Mutant(
        "one refused text stops all",
        "ingest/embedding.py",
        "return error.status not in REFUSALS_OF_EVERYBODY",
        "return False",
        "tests/unit/ingest/test_filling.py",
    ),
    Mutant(
        "a provider that failed is asked with every text",
        "ingest/embedding.py",
        "return failure if failure is not None and failure.next_try > self.clock() else None",
        "return None",
        "tests/unit/ingest/test_filling.py",
    ),
    Mutant(
        "pins lost by the new model do not matter",
        "engine/models.py",
        "if agreement is not None and agreement.lost and not force:",
        "if False:",
        "tests/unit/test_spaces.py",
    ),
    Mutant(
        "questions judge what they chose",
        "evaluation/tuning.py",
        "[trial for trial in heard if trial.question.answer not in answers]",
        "[trial for trial in heard if trial.question.answer in answers]",
        "tests/unit/evaluation",
    ),
    Mutant(
        "terms speak for a weight",
        "evaluation/tuning.py",
        'frozenset(HIDDEN_KINDS),\n    "name_bonus"',
        'frozenset(KINDS),\n    "name_bonus"',
        "tests/unit/evaluation",
    ),
    Mutant(
        "words of a question left in the memory",
        "evaluation/tuning.py",
        "        memory = hide(memory, words)",
        "        hide(memory, words)",
        "tests/unit/test_rehearsal.py",
    ),
    Mutant(
        "pins seen across scopes",
        "evaluation/pins.py",
        'return {*self.scopes} <= {*scopes, "global"}',
        "return True",
        "tests/unit/evaluation",
    ),
    Mutant(
        "any chunk of the store succeeds a pinned one",
        "evaluation/pins.py",
        "if not pin.path or source.path != pin.path:",
        "if not pin.path:",
        "tests/unit/evaluation",
    ),
    Mutant(
        "evidence believed unseen",
        "ingest/extraction/prompts.py",
        "if wanted not in quoted:",
        "if not wanted:",
        EXTRACTION,
    ),
    Mutant(
        "as many facts as a model likes",
        "ingest/extraction/prompts.py",
        "if len(facts) < room:",
        "if True:",
        EXTRACTION,
    ),
    Mutant(
        "another port is the same fact",
        "ingest/extraction/ledger.py",
        "if cosine >= self.same_cosine and numbers_in(known.text) == numbers_in(memory.text):",
        "if cosine >= self.same_cosine:",
        EXTRACTION,
    ),
    Mutant(
        "a correction overwritten by the old wording",
        "ingest/extraction/ledger.py",
        "if former is not None and same_text(former.text) != same_text(memory.text):",
        "if former is None and same_text(memory.text) == '':",
        EXTRACTION,
    ),
    Mutant(
        "a failed chunk never asked about again",
        "ingest/extraction/ledger.py",
        'return self.outcome == "done" and now < self.at + LIFETIME_S',
        "return now < self.at + LIFETIME_S",
        EXTRACTION,
    ),
    Mutant(
        "a dry run that stores",
        "ingest/extraction/extractor.py",
        "        if report.dry_run:\n            return\n",
        "",
        EXTRACTION,
    ),
    Mutant(
        "folders that are links followed out of the workspace",
        "ingest/walk.py",
        "if path.resolve(strict=True).is_relative_to(workspace):",
        "if path.resolve(strict=True):",
        EXTRACTION,
    ),
    Mutant(
        "a memory's lines not marked",
        "analysis/sanitize.py",
        'f"{QUOTE}{visible(line)}" for line in',
        "visible(line) for line in",
        "tests/unit/interfaces/test_quoting.py",
    ),
    Mutant(
        "lines of a memory cut at line feeds alone",
        "analysis/sanitize.py",
        "one.text.splitlines() or",
        'one.text.split("\\n") or',
        "tests/unit/interfaces/test_quoting.py",
    ),
    Mutant(
        "any token lets in",
        "interfaces/auth.py",
        'if kind.lower() != "bearer" or not hmac',
        'if kind.lower() != "bearer" and not hmac',
        "tests/unit/interfaces/test_auth.py",
    ),
    Mutant(
        "agents forget what is everybody's",
        "interfaces/engine_pool.py",
        "if memory.scope not in own:",
        "if not own:",
        "tests/unit/interfaces/mcp/test_tool_calls.py",
    ),
    Mutant(
        "a scope chosen by the model",
        "interfaces/mcp/server.py",
        "extra = (SCOPE,) if access.is_multi_scope else ()",
        "extra = (SCOPE,)",
        "tests/unit/interfaces/mcp/test_tools.py",
    ),
    Mutant(
        "links lead out of the workspace",
        "interfaces/http/handlers.py",
        "path.is_relative_to(workspace) and path.resolve().is_relative_to(root)",
        "path.is_relative_to(workspace)",
        "tests/unit/interfaces/http/test_ingesting.py",
    ),
    Mutant(
        "unknown fields are passed over",
        "interfaces/http/routes.py",
        "        if name not in known:\n            raise",
        "        if name in ():\n            raise",
        "tests/unit/interfaces/http/test_fields.py",
    ),
    Mutant(
        "a question makes a store",
        "interfaces/engine_pool.py",
        "if self._engine is None and self._is_there:",
        "if self._engine is None:",
        "tests/unit/interfaces/test_engine_pool.py",
    ),
    Mutant(
        "a copy that stands under its name before it is whole",
        "storage/sqlite/copies.py",
        "    with staged(target) as place:\n        copy_into(source, place, tick)",
        "    copy_into(source, target, tick)",
        "tests/soak/test_upgrades.py",
    ),
    Mutant(
        "a restored store with the generation it had",
        "storage/sqlite/backups.py",
        "generation = 1 + (max(generations) if min(generations) >= 0 else max(generations) + _UNKNOWN_JUMP)",
        "generation = max(1, generations[0])",
        "tests/unit/storage/test_backups.py",
    ),
    Mutant(
        "a backup nobody has looked at",
        "storage/sqlite/backups.py",
        'found = [finding.message for finding in check_database(database, tick) if finding.code != "aside"]',
        "found: list[str] = []",
        "tests/unit/storage/test_backups.py",
    ),
    Mutant(
        "an import that forgets what memories were",
        "engine/export.py",
        "history=[former for _, one in taken for former in one.formers],",
        "history=[],",
        "tests/unit/test_imports.py",
    ),
    Mutant(
        "a deep look that believes the postings",
        "storage/sqlite/reanalysis.py",
        'self.wrong["postings"] += not self._is_as_inverted(scope, segment)',
        "self._is_as_inverted(scope, segment)",
        "tests/unit/storage/test_reanalysis.py",
    ),
    Mutant(
        "a page of postings that nobody misses",
        "storage/sqlite/postings/format.py",
        "    return found if listed is None or listed[0] is None else _with_checksums(found, listed[0])",
        "    return found",
        DAMAGE,
    ),
    Mutant(
        "records that are believed whatever the memories say",
        "storage/sqlite/doc_values.py",
        "if not is_older and not _agree(connection, scope, columns):",
        "if False:",
        DAMAGE,
    ),
    Mutant(
        "a text that is shown whatever its hash",
        "storage/sqlite/rows.py",
        "            is_altered = content_hash(embedded_text(memory)) != embedded",
        "            is_altered = False",
        DAMAGE,
    ),
    Mutant(
        "a vector of another length",
        "storage/sqlite/vectors/checksums.py",
        "    is_sized = len(blob) == size if size is not None else",
        "    is_sized =",
        DAMAGE,
    ),
    Mutant(
        "caches grow without bound",
        "analysis/normalize.py",
        "while self.nbytes > self.max_bytes and len(self._values) > 1:",
        "while False:",
        "tests/unit/test_caches.py",
    ),
    Mutant(
        "places of another scope are handed out",
        "storage/sqlite/index_reader.py",
        "if not visible.issuperset([scope for (scope, _), _ in found]):",
        "if False:",
        CONTRACT,
    ),
    Mutant(
        "runs are begun after the deadline",
        "storage/retrieval.py",
        "if not deadline.has_passed:",
        "if True:",
        "tests/unit/search/test_deadline.py",
    ),
    Mutant("nothing is synced", "storage/sqlite/database.py", '"synchronous=FULL"', '"synchronous=OFF"', POWER),
    Mutant(
        "synced when the log is copied alone",
        "storage/sqlite/database.py",
        '"synchronous=FULL"',
        '"synchronous=NORMAL"',
        POWER,
    ),
    Mutant(
        "a file is emptied before it is written anew",
        "ingest/pipeline.py",
        "        if desk is None:\n",
        "        if desk is None:\n            self.store.write(Changes(replace_files=changes.replace_files))\n",
        "tests/reliability/test_ingests.py",
    ),
    Mutant(
        "an id of somebody else is suggested",
        "engine/memories.py",
        "seen = visible_scopes(scope, self._store)",
        "seen = self._store.scopes()",
        "tests/reliability/test_walls.py",
    ),
    Mutant(
        "a key of one scope counts in all",
        "engine/facts.py",
        "known = self._store.written(owner, key)",
        "all_scopes = map(Scope.parse, self._store.status('').scopes)\n"
        "            known = next(filter(None, (self._store.written(one, key) for one in all_scopes)), None)",
        "tests/reliability/test_walls.py",
    ),
    Mutant(
        "writers do not wait for each other",
        "storage/sqlite/database.py",
        "LOCK_SECONDS = 30.0",
        "LOCK_SECONDS = 0.0",
        "tests/reliability/test_load.py",
    ),
    Mutant(
        "a file that was replaced is written on",
        "storage/sqlite/database.py",
        "return self._identity in (None, identity_of(self.path))",
        "return True",
        "tests/reliability/test_replaced_files.py",
    ),
    Mutant(
        "connections live through a fork",
        "storage/sqlite/database.py",
        "cls.suspended = tuple(_databases())",
        "cls.suspended = ()",
        "tests/reliability/test_forks.py",
    ),
)


def survives(mutant: Mutant) -> bool:
    """Plant one bug in a copy of the source and tell whether the tests stay green."""
    with tempfile.TemporaryDirectory(prefix="whyrank-mutant-") as place:
        copy = Path(place) / "src"
        shutil.copytree(ROOT / "src", copy)
        file = copy / "whyrank" / mutant.file
        source = file.read_text(encoding="utf-8")
        if source.count(mutant.old) != 1:
            sys.exit(f"{mutant.name}: the text to replace is not once in {mutant.file}; mend tests/mutants.py")
        file.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
        # Folders of its own: an error while those of another run are removed is no test that failed.
        options = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={place}/tests"]
        command = [sys.executable, "-m", "pytest", *options, *mutant.tests.split()]
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"{mutant.name}: pytest did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.returncode == 0


def main() -> None:
    """Plant every mutant; fail if one survives."""
    alive = []
    for mutant in MUTANTS:
        lives = survives(mutant)
        print(f"{'SURVIVED' if lives else 'killed  '}  {mutant.name}", flush=True)
        if lives:
            alive.append(mutant.name)
    print(f"{len(MUTANTS) - len(alive)} of {len(MUTANTS)} mutants killed")
    sys.exit(bool(alive))


if __name__ == "__main__":
    main()
