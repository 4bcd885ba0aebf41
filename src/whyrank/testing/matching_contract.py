"""What every store must do with expressions and beginnings, as tests: subclass, say how to open your store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..analysis.advanced import asked_for
from ..analysis.names import probe_for
from ..expressions import Expression, Holds, Not, several, spelled
from ..ports import Changes, Store
from ..search.asking import settled, understood
from ..types import Query, Source, Where
from .store_contract import MINE, NOW, OTHER, USER, StoreContract, fact, ids


class MatchingContract(StoreContract):
    """Everything a store must do, and this besides."""

    def asked(self, store: Store, text: str, **fields: object) -> Query:
        """Return a query in the advanced syntax, settled against a store."""
        query = Query(text, self.where(**fields), syntax="advanced")
        return settled(understood(query, "en"), store, "en").query

    def passing(self, store: Store, text: str, memories: Sequence[str], **fields: object) -> set[str]:
        """Return which of some memories pass a query."""
        return store.passing(memories, self.asked(store, text, **fields).where)

    def test_words_that_begin_alike_are_counted_by_what_the_caller_may_see(self, tmp_path: Path) -> None:
        """A beginning finds terms of the visible scopes, and how many memories hold each."""
        texts = ["deploy the pots", "deploy them again", "deploying depends", "the teapot"]
        store = self.filled(tmp_path, [fact(f"m_{i}", text, scope=USER) for i, text in enumerate(texts)])
        self.put(store, [fact("m_9", "depth of a well", scope=OTHER)])
        # deploying is stemmed to deploy; depth is another's
        assert dict(store.beginning("dep", MINE)) == {"deploy": 3, "depend": 1}
        assert dict(store.beginning("zebra", MINE)) == {}

    def test_a_word_that_is_gone_begins_nothing(self, tmp_path: Path) -> None:
        """Removed and replaced memories take their words along, flushed long ago or not."""
        many = [fact(f"m_{i}", f"alpha{i} text") for i in range(150)]
        store = self.filled(tmp_path, [*many, fact("m_x", "alphabet")])
        store.write(Changes(remove=[f"m_{i}" for i in range(1, 150)]))
        assert dict(store.beginning("alpha", MINE)) == {"alpha0": 1, "alphabet": 1}
        self.put(store, [fact("m_x", "beta")])
        assert dict(store.beginning("alph", MINE)) == {"alpha0": 1}

    def test_words_with_accents_are_known_by_what_is_typed_without(self, tmp_path: Path) -> None:
        """Other spellings are those of the visible scopes, flushed long ago or fresh."""
        many = [fact(f"m_{i}", f"café{i} text") for i in range(150)]
        store = self.filled(tmp_path, [*many, fact("m_x", "a cafe, a Müller", scope=USER)])
        self.put(store, [fact("m_z", "a Núñez", scope=OTHER), fact("m_y", "a cafè", scope=USER)])
        typed = ["cafe", "cafe7", "muller", "mueller", "nunez", "text"]
        assert dict(store.spelled(typed, MINE)) == {
            "cafe": ("cafè",), "cafe7": ("café7",), "muller": ("müller",), "mueller": ("müller",),
        }  # fmt: skip

    def test_a_beginning_is_that_of_words_with_accents_as_well(self, tmp_path: Path) -> None:
        """Whoever types no accents means words with them; whoever types one means it."""
        many = [fact(f"m_{i}", f"café{i} text", scope=USER) for i in range(150)]
        store = self.filled(
            tmp_path, [*many, fact("m_x", "cafeteria, École", scope=USER), fact("m_z", "cafè", scope=OTHER)]
        )
        store.write(Changes(remove=[f"m_{i}" for i in range(1, 150)]))
        self.put(store, [fact("m_y", "cafés", scope=USER)])
        assert dict(store.beginning("cafe", MINE)) == {"cafeteria": 1, "café": 1, "café0": 1}
        assert dict(store.beginning("ecol", MINE)) == {"école": 1}
        assert dict(store.beginning("café", MINE)) == {"café": 1, "café0": 1}
        assert self.passing(store, "cafe*", ["m_0", "m_x", "m_y"]) == {"m_0", "m_x", "m_y"}
        assert self.passing(store, "NOT cafe*", ["m_0", "m_x", "m_y"]) == set()

    def test_a_spelling_that_was_not_asked_for_counts_half_and_is_told(self, tmp_path: Path) -> None:
        """Both spellings are one term: as telling, the one that was asked for twice as often."""
        texts = ["café pot", "cafe pot", "café café", "green tea"]
        store = self.filled(tmp_path, [fact(f"m_{i}", text) for i, text in enumerate(texts)])
        term = spelled("cafe", ["café"], is_known=True)
        assert store.statistics([term], MINE).frequency == {term: 3}
        [signal] = store.score(["m_0", "m_1", "m_2"], [term], None, "", self.where())
        told = {key: [found.label for found in signal.terms[key]] for key in ("m_0", "m_1", "m_2")}
        assert told == {"m_0": ["cafe as café"], "m_1": ["cafe"], "m_2": ["cafe as café"]}
        assert signal.values["m_0"] < signal.values["m_1"]
        # Two halves are as much as one whole, in texts of one length.
        assert signal.values["m_2"] == signal.values["m_1"]
        assert ids(store.keyword([term], self.where(), 3))[-1] == "m_0"

    def test_words_are_found_in_every_script_and_as_identifiers(self, tmp_path: Path) -> None:
        """Beginnings know no alphabet, and signs inside identifiers count."""
        texts = ["развёртывание сервера", "api-key rotation", "日本語の検索", "snake_case_name", "c++ code"]
        store = self.filled(tmp_path, [fact(f"m_{i}", text) for i, text in enumerate(texts)])
        everything = [f"m_{i}" for i in range(len(texts))]
        expected = {
            "развёрт*": {"m_0"},
            "api-k*": {"m_1"},
            "日*": {"m_2"},
            "日本*": {"m_2"},
            "snake_c*": {"m_3"},
            "c+*": {"m_4"},
            "rotat*": {"m_1"},
        }
        assert {text: self.passing(store, text, everything) for text in expected} == expected

    def test_an_expression_is_a_filter_in_every_run(self, tmp_path: Path) -> None:
        """Keyword, vector and name runs, browsing and sampling list only what it is true of."""
        memories = [
            fact("m_1", "green tea", name="Tea Pot"),
            fact("m_2", "green tea with milk", name="Tea Pot"),
            fact("m_3", "coffee with milk", name="Tea Pot"),
            fact("m_4", "oil"),
        ]
        store = self.filled(tmp_path, memories)
        where = self.asked(store, "tea AND NOT milk").where
        vector = self.embedder.query("green tea milk coffee oil")
        assert ids(store.keyword(["tea", "milk", "oil"], where, 10)) == ["m_1"]
        assert ids(store.nearest(vector, self.embedder.fingerprint, where, 10)) == ["m_1"]
        assert ids(store.named(probe_for("Tea Pot"), where, 10)) == ["m_1"]
        assert [memory.id for memory in store.browse(where, 10)] == ["m_1"]
        assert [memory.id for memory in store.sample(where, 10)] == ["m_1"]
        assert store.passing(["m_1", "m_2", "m_9"], where) == {"m_1"}

    def test_an_expression_changes_no_score(self, tmp_path: Path) -> None:
        """Statistics are those of the scope, whatever the filter."""
        texts = ["green tea", "green tea with milk", "milk", "tea tea"]
        store = self.filled(tmp_path, [fact(f"m_{i}", text) for i, text in enumerate(texts)])
        free = store.keyword(["tea", "milk"], self.where(), None)
        kept = store.keyword(["tea", "milk"], self.asked(store, "tea -milk").where, None)
        assert {found.id: found.score for found in kept.candidates} == {
            found.id: found.score for found in free.candidates if found.id in ("m_0", "m_3")
        }

    def test_fields_say_what_a_memory_is(self, tmp_path: Path) -> None:
        """Names and headings by their words, paths by folder or pattern, the others by their value."""
        memories = [
            fact(
                "m_1", "one", kind="chunk", name="Tea Pot", headings=("Häuser am See", "Two"), tags=("Work", "a b"),
                source=Source("notes/tea.md", 1, 2, "h1"),
            ),
            fact(
                "m_2", "two\n\n## Lids of pots", title="Pots", slug="pots-2", aliases=("kettle",), category="decision",
            ),
            fact("m_3", "3\nHandles\n---", speaker="Ann Lee", session="s", source=Source("log.jsonl", 1, 1, "h3")),
        ]  # fmt: skip
        store = self.filled(tmp_path, memories)
        everything = ["m_1", "m_2", "m_3"]
        expected = {
            "name:pot": {"m_1"}, "title:pot*": {"m_1", "m_2"}, 'name:"tea pot"': {"m_1"}, 'name:"pot tea"': set(),
            "name:kettle": {"m_2"}, "heading:lids": {"m_2"}, "heading:handles": {"m_3"}, "heading:3": set(),
            "heading:HÄUSER": {"m_1"}, 'heading:"am see"': {"m_1"}, 'heading:"see two"': set(),
            "path:notes": {"m_1"}, "path:notes/": {"m_1"}, "path:tea.md": {"m_1"}, "path:*.md": {"m_1"},
            "path:not": set(), "path:not*": {"m_1"}, "tag:work": {"m_1"}, 'tag:"a b"': {"m_1"}, "tag:wor": set(),
            "tag:wor*": {"m_1"}, "category:decision": {"m_2"}, "kind:chunk": {"m_1"}, "-kind:chunk": {"m_2", "m_3"},
            "speaker:ann": {"m_3"}, "NOT (tag:work OR speaker:lee)": {"m_2"},
        }  # fmt: skip
        assert {text: self.passing(store, text, everything) for text in expected} == expected

    def test_a_term_for_several_counts_as_one(self, tmp_path: Path) -> None:
        """Its frequency is that of the union, and what a memory holds of it is added up before it is scored."""
        store = self.filled(tmp_path, [fact("m_1", "tea teapot pot"), fact("m_2", "tea tea pot"), fact("m_3", "oil")])
        both = several("tea*", ["tea", "teapot"])
        assert store.statistics([both], MINE).frequency == {both: 2}
        [signal] = store.score(["m_1", "m_2", "m_3"], [both], None, "", self.where())
        # two of three tokens each, whichever they are
        assert signal.values["m_1"] == signal.values["m_2"] > 0
        assert not signal.values["m_3"]
        assert [*signal.terms["m_1"]] == [("tea*", "words", "own", signal.values["m_1"])]
        assert ids(store.keyword([several("zebra*", [])], self.where(), 10)) == []

    def test_a_term_may_stand_for_words_and_phrases(self, tmp_path: Path) -> None:
        """What holds any of them holds the term, as often as all of them together; flushed long ago or not."""
        many = [fact(f"m_{i}", f"oil {i}") for i in range(100)]
        store = self.filled(tmp_path, [fact("m_a", "green tea pot"), fact("m_b", "teapot"), *many])
        self.put(store, [fact("m_c", "teapot, or tea pot"), fact("m_d", "pot of tea")])
        either = several("teapot", ["teapot", "tea pot"])
        assert store.statistics([either], MINE).frequency == {either: 3}
        found = store.passing(["m_a", "m_b", "m_c", "m_d", "m_1"], self.where(matching=Holds("teapot", either)))
        assert found == {"m_a", "m_b", "m_c"}
        assert {*ids(store.keyword([either], self.where(), 10))} == {"m_a", "m_b", "m_c"}

    def test_an_identifier_is_found_however_a_text_writes_it(self, tmp_path: Path) -> None:
        """As one word, or as its parts side by side; a phrase around it knows the same ways."""
        texts = [
            "the new night-shift begins", "the new nightShift begins", "a new night shift begins",
            "new nightshift begins", "nights without a shift", "C++ code", "C code", "an A/B test", "plan B test",
            "TGF-β1 signals", "TGFβ1 signals", "TGF beta1 signals", "two GPUs", "one GPU",
        ]  # fmt: skip
        store = self.filled(tmp_path, [fact(f"m_{i}", text) for i, text in enumerate(texts)])
        expected = {
            "night-shift": {0, 1, 2, 3}, "night_shift": {0, 1, 2, 3}, "nightShift": {0, 1, 2, 3},
            "nightshift": {0, 1, 3}, "night shift": {0, 1, 2, 4}, '"new night-shift begins"': {0, 1, 2, 3},
            '"night-shift begins"': {0, 1, 2, 3}, '"night-shift ends"': set(), "begins -night-shift": set(),
            "C++": {5}, "A/B test": {7}, '"A/B test"': {7}, "TGFβ1": {9, 10, 11}, "TGF-beta1": {9, 10, 11},
            '"TGFβ1 signals"': {9, 10, 11}, "GPUs": {12, 13}, "GPU": {12, 13},
        }  # fmt: skip
        everything = [f"m_{i}" for i in range(len(texts))]
        found = {text: {int(one[2:]) for one in self.passing(store, text, everything)} for text in expected}
        assert found == expected

    def test_other_filters_and_the_wall_still_stand(self, tmp_path: Path) -> None:
        """An expression, even one that denies, opens nothing."""
        memories = [
            fact("m_1", "tea", scope=OTHER),
            fact("m_2", "tea", expires=NOW - 1),
            fact("m_3", "tea", tags=("x",)),
            fact("m_4", "tea"),
        ]
        store = self.filled(tmp_path, memories)
        everything = [memory.id for memory in memories]
        assert self.passing(store, "NOT coffee", everything) == {"m_3", "m_4"}
        assert self.passing(store, "te*", everything, tags=frozenset({"x"})) == {"m_3"}
        denied: Expression = Not(Holds("oil", "oil"))
        assert store.passing(everything, Where(MINE, now=NOW, matching=denied, as_of=NOW)) == {"m_3", "m_4"}

    def test_phrases_of_any_length_are_held_side_by_side(self, tmp_path: Path) -> None:
        """A phrase is its words in their order with nothing between."""
        store = self.filled(tmp_path, [fact("m_1", "green tea pot"), fact("m_2", "green pot tea pot")])
        where = self.where(matching=asked_for('"green tea pot"').expression)
        assert store.passing(["m_1", "m_2"], where) == {"m_1"}
        assert store.passing(["m_1", "m_2"], replace(where, matching=asked_for("pot").expression)) == {"m_1", "m_2"}
