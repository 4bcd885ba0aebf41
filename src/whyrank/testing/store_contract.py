"""What every store must do, as tests: subclass `StoreContract`, say how to open your store, run pytest."""

from __future__ import annotations

from pathlib import Path

from ..analysis.names import probe_for
from ..errors import StoreError
from ..hits import content_keys_of, memory_of
from ..ingest.entries import entry_for
from ..ports import Changes, FileRecord
from ..types import GLOBAL, Source
from .arrival_contract import ArrivalContract
from .life_contract import LifeContract
from .notes_contract import NotesContract
from .reader_contract import ReaderContract
from .restating_contract import RestatingContract
from .space_contract import SpaceContract
from .store_setting import MINE, NOW, OTHER, USER, fact, ids

__all__ = ["MINE", "NOW", "OTHER", "USER", "StoreContract", "fact", "ids"]


class StoreContract(LifeContract, NotesContract, ReaderContract, SpaceContract, ArrivalContract, RestatingContract):
    """Subclass this and give `open_store`."""

    def test_what_was_written_comes_back_whole(self, tmp_path: Path) -> None:
        """Every field survives the store."""
        memory = fact(
            "m_1", "Suzy drinks tea", kind="chunk", name="Tea", title="Tea", slug="tea", owner="suzy", aliases=("cha",),
            summary="hot", headings=("Drinks", "Tea"), source=Source("a/b.md", 3, 9, "h"), scope=USER,
            category="preference", tags=("x", "y"), entities=("Suzy",), importance=4, evergreen=True, valid_from=1.0,
            valid_until=NOW + 5, expires=NOW + 9, supersedes="m_0", trust="agent", session="s", speaker="Suzy",
            position=7,
        )  # fmt: skip
        store = self.filled(tmp_path, [memory])
        assert store.get(["m_1", "m_2"], MINE) == {"m_1": memory}

    def test_a_foreign_id_does_not_exist(self, tmp_path: Path) -> None:
        """Scope is a wall for ids too."""
        assert self.filled(tmp_path, [fact("m_1", "tea", scope=OTHER)]).get(["m_1"], MINE) == {}

    def test_writing_an_id_again_replaces_it_everywhere(self, tmp_path: Path) -> None:
        """No index keeps a trace of the old text."""
        store = self.filled(tmp_path, [fact("m_1", "tea", name="Tea")])
        self.put(store, [fact("m_1", "coffee", name="Coffee")])
        assert ids(store.keyword(["coffe"], self.where(), 10)) == ["m_1"]
        assert not ids(store.keyword(["tea"], self.where(), 10)) + ids(store.named(probe_for("Tea"), self.where(), 10))

    def test_what_was_read_before_a_write_is_read_anew_after_it(self, tmp_path: Path) -> None:
        """Nothing that a store keeps in mind outlives a change of it."""
        store = self.open_store(tmp_path)
        for text in ("green tea", "green mint"):
            self.put(store, [fact("m_1", text)])
            assert ids(store.keyword(["green"], self.where(), 10)) == ["m_1"]
            assert memory_of(store.held(["m_1"], MINE)["m_1"]).text == store.get(["m_1"], MINE)["m_1"].text == text

    def test_what_breaks_ties_is_known_without_reading_memories(self, tmp_path: Path) -> None:
        """Path, line, content and id, of facts and chunks alike, in the order asked for."""
        chunk = fact("m_1", "tea", kind="chunk", source=Source("notes/tea.md", 3, 7, "a1"))
        store = self.filled(tmp_path, [fact("m_3", "milk"), chunk, fact("m_2", "pot")])
        asked = ["m_3", "m_1", "m_2"]
        keys = content_keys_of(store.held(["m_1", "m_2", "m_3"], MINE), asked)
        assert [*keys] == [store.get([key], MINE)[key].content_key for key in asked]

    def test_removed_means_gone_from_every_run(self, tmp_path: Path) -> None:
        """A removed memory is nowhere, and neither is its vector."""
        store = self.filled(tmp_path, [fact("m_1", "tea", name="Tea")])
        store.write(Changes(remove=["m_1"]))
        vector = self.embedder.query("tea")
        assert store.get(["m_1"], MINE) == {}
        assert ids(store.keyword(["tea"], self.where(), 10)) == []
        assert ids(store.nearest(vector, self.embedder.fingerprint, self.where(), 10)) == []
        assert ids(store.named(probe_for("Tea"), self.where(), 10)) == []
        assert store.spaces() == {}

    def test_a_vector_lives_as_long_as_any_memory_with_its_text(self, tmp_path: Path) -> None:
        """Equal texts share a vector."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "tea")])
        store.write(Changes(remove=["m_1"]))
        assert ids(store.nearest(self.embedder.query("tea"), self.embedder.fingerprint, self.where(), 10)) == ["m_2"]

    def test_keyword_orders_by_word_score_and_any_term_is_enough(self, tmp_path: Path) -> None:
        """OR-join; more and rarer terms are better; higher is better."""
        store = self.filled(
            tmp_path,
            [fact("m_1", "green tea"), fact("m_2", "black tea and milk"), fact("m_3", "coffee"), fact("m_4", "tea")],
        )
        run = store.keyword(["tea", "milk"], self.where(), 10)
        assert ids(run)[0] == "m_2"
        assert set(ids(run)) == {"m_1", "m_2", "m_4"}
        assert [candidate.score for candidate in run.candidates] == sorted(
            (candidate.score for candidate in run.candidates), reverse=True
        )

    def test_and_join_asks_for_every_term(self, tmp_path: Path) -> None:
        """The AND-join exists to show what it loses."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "black tea milk")])
        assert ids(store.keyword(["tea", "milk"], self.where(), 10, "and")) == ["m_2"]

    def test_a_phrase_matches_only_side_by_side(self, tmp_path: Path) -> None:
        """A term of several tokens is a phrase."""
        store = self.filled(tmp_path, [fact("m_1", "green tea pot"), fact("m_2", "tea is green")])
        assert ids(store.keyword(["green tea"], self.where(), 10)) == ["m_1"]

    def test_hostile_terms_match_nothing_and_raise_nothing(self, tmp_path: Path) -> None:
        """Operators, quotes and signs are text."""
        store = self.filled(tmp_path, [fact("m_1", "tea")])
        for term in ['"', "AND", "NOT", "*", "te*", "tokens:tea", "(", "^tea", "NEAR", "c++", "'", "é" * 100]:
            assert ids(store.keyword([term], self.where(), 10)) == []

    def test_nearest_orders_by_cosine(self, tmp_path: Path) -> None:
        """The same text is nearest, at cosine 1."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "tea"), fact("m_3", "engine oil")])
        run = store.nearest(self.embedder.query("tea"), self.embedder.fingerprint, self.where(), 10)
        assert ids(run)[0] == "m_2"
        assert abs(run.candidates[0].score - 1.0) < 1e-6

    def test_filters_come_before_the_cut(self, tmp_path: Path) -> None:
        """A hundred foreign rows do not starve one of ours."""
        foreign = [fact(f"m_{i}", "tea tea tea", scope=OTHER) for i in range(100)]
        store = self.filled(tmp_path, [*foreign, fact("m_mine", "some tea", scope=USER)])
        vector = self.embedder.query("tea")
        assert ids(store.keyword(["tea"], self.where(), 1)) == ["m_mine"]
        assert ids(store.nearest(vector, self.embedder.fingerprint, self.where(), 1)) == ["m_mine"]

    def test_every_filter_says_the_same_as_where(self, tmp_path: Path) -> None:
        """Kinds, tags, paths, dates, expiry, validity and supersession are those of Where.allows."""
        memories = [
            fact("m_plain", "tea"),
            fact("m_chunk", "tea", kind="chunk", source=Source("notes/a.md", 1, 2, "h")),
            fact("m_tag", "tea", tags=("hot", "x")),
            fact("m_old", "tea", date=NOW - 1e6),
            fact("m_gone", "tea", superseded_by="m_plain", superseded_at=NOW - 5),
            fact("m_expired", "tea", expires=NOW - 1),
            fact("m_future", "tea", valid_from=NOW + 1),
            fact("m_past", "tea", valid_until=NOW - 1),
            fact("m_over", "tea", created=NOW, valid_until=NOW - 50),
            fact("m_late", "tea", created=NOW, valid_until=NOW + 50),
            fact("m_foreign", "tea", scope=OTHER),
            fact("m_undated", "tea", date=None),
        ]
        store = self.filled(tmp_path, memories)
        vector, space = self.embedder.query("tea"), self.embedder.fingerprint
        for where in (
            self.where(),
            self.where(kinds=frozenset({"chunk"})),
            self.where(tags=frozenset({"hot"})),
            self.where(path="notes/*"),
            self.where(since=NOW - 100),
            self.where(before=NOW - 100),
            self.where(include_superseded=True),
            self.where(as_of=NOW - 7),
            self.where(as_of=NOW - 100),
            self.where(only_expired=True),
        ):
            expected = {memory.id for memory in memories if where.allows(memory)}
            assert set(ids(store.keyword(["tea"], where, 50))) == expected
            assert set(ids(store.nearest(vector, space, where, 50))) == expected
            assert {memory.id for memory in store.browse(where, 50)} == expected

    def test_the_pool_counts_sources_not_chunks(self, tmp_path: Path) -> None:
        """One long file cannot eat the pool."""
        long = [
            fact(f"m_{i:02}", f"tea number{i}", kind="chunk", source=Source("long.md", i, i, str(i))) for i in range(40)
        ]
        store = self.filled(tmp_path, [*long, fact("m_fact", "tea once upon a time in a far away country")])
        assert "m_fact" in ids(store.keyword(["tea"], self.where(), 2))

    def test_ties_do_not_depend_on_the_order_of_inserts(self, tmp_path: Path) -> None:
        """Content breaks ties, never the row number."""
        memories = [fact(f"m_{i}", "tea") for i in range(6)]
        first = self.filled(tmp_path / "1", memories)
        second = self.filled(tmp_path / "2", memories[::-1])
        vector, space = self.embedder.query("tea"), self.embedder.fingerprint
        assert ids(first.keyword(["tea"], self.where(), 3)) == ids(second.keyword(["tea"], self.where(), 3))
        assert ids(first.nearest(vector, space, self.where(), 3)) == ids(second.nearest(vector, space, self.where(), 3))

    def test_names_are_found_by_key_words_prefix_window_and_typo(self, tmp_path: Path) -> None:
        """The name run proposes every relation there is."""
        store = self.filled(tmp_path, [fact("m_1", "sets alarms", name="Remind Me", slug="remind-me")])
        for text in ("Remind Me", "remindme", "REMIND-ME", "me remind", "remi", "how do I use remind me"):
            assert ids(store.named(probe_for(text), self.where(), 5)) == ["m_1"], text
        assert ids(store.named(probe_for("remnd me", typos=True), self.where(), 5)) == ["m_1"]
        assert ids(store.named(probe_for("remnd me", typos=False), self.where(), 5)) == []

    def test_score_covers_candidates_that_no_run_listed(self, tmp_path: Path) -> None:
        """Absence from a list is not evidence; absence of a vector is."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "coffee")])
        store.write(Changes(put=[entry_for(fact("m_3", "tea without vector"), "en")]))
        signals = {
            signal.name: signal
            for signal in store.score(
                ["m_1", "m_2", "m_3"], ["tea"], self.embedder.query("tea"), self.embedder.fingerprint, self.where()
            )
        }
        assert set(signals["keyword"].values) == {"m_1", "m_2", "m_3"}
        assert signals["keyword"].values["m_2"] == 0.0
        assert set(signals["vector"].values) == {"m_1", "m_2"}

    def test_scores_equal_those_of_the_run(self, tmp_path: Path) -> None:
        """A run and `score` speak of the same numbers."""
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "tea tea milk"), fact("m_3", "coffee")])
        vector, space = self.embedder.query("green tea"), self.embedder.fingerprint
        signals = store.score(["m_1", "m_2", "m_3"], ["green", "tea"], vector, space, self.where())
        for run in (store.keyword(["green", "tea"], self.where(), 9), store.nearest(vector, space, self.where(), 9)):
            values = next(signal.values for signal in signals if signal.name == run.name)
            assert {candidate.id: candidate.score for candidate in run.candidates}.items() <= values.items()

    def test_vectors_are_those_nearest_compares_and_stay_behind_the_wall(self, tmp_path: Path) -> None:
        """A vector comes back at unit length and gives the cosine of the run; foreign and missing ones do not."""
        foreign = fact("m_3", "tea pot", scope=OTHER)
        store = self.filled(tmp_path, [fact("m_1", "green tea"), fact("m_2", "coffee"), foreign])
        store.write(Changes(put=[entry_for(fact("m_4", "no vector yet"), "en")]))
        question, space = self.embedder.query("tea"), self.embedder.fingerprint
        vectors = store.vectors(["m_1", "m_2", "m_3", "m_4", "m_5"], space, MINE)
        assert sorted(vectors) == ["m_1", "m_2"]
        for identity, cosine in store.nearest(question, space, self.where(), 9).candidates:
            assert abs(float((vectors[identity] * question).sum()) - cosine) < 1e-5
            assert abs(float((vectors[identity] ** 2).sum()) - 1.0) < 1e-5
        assert store.vectors(["m_1"], "another space", MINE) == {}
        assert store.vectors([], space, MINE) == {}

    def test_statistics_are_those_of_the_scope(self, tmp_path: Path) -> None:
        """Another user's inserts change nothing for this one."""
        store = self.filled(tmp_path, [fact("m_1", "tea", scope=USER), fact("m_2", "two words")])
        before = store.statistics(["tea"], MINE)
        self.put(store, [fact(f"m_x{i}", "tea", scope=OTHER) for i in range(20)])
        assert store.statistics(["tea"], MINE) == before
        assert (before.total, before.frequency["tea"]) == (2, 1)

    def test_the_manifest_remembers_files(self, tmp_path: Path) -> None:
        """Files come and go with their records."""
        store = self.open_store(tmp_path)
        record = FileRecord("a.md", USER, 3, 4, "h")
        store.write(Changes(files=[record]))
        assert store.manifest(USER) == {"a.md": record}
        assert store.manifest(GLOBAL) == {}
        store.write(Changes(files=[record._replace(size=9)]))
        assert store.manifest(USER)["a.md"].size == 9
        store.write(Changes(forget_files=[(USER, "a.md")]))
        assert store.manifest(USER) == {}

    def test_supersession_is_written_with_its_moment(self, tmp_path: Path) -> None:
        """The old memory knows what replaced it and when."""
        store = self.filled(tmp_path, [fact("m_1", "tea")])
        entry = entry_for(fact("m_2", "coffee", supersedes="m_1"), "en")
        store.write(Changes(put=[entry], superseded={"m_1": ("m_2", NOW)}))
        old = store.get(["m_1"], MINE)["m_1"]
        assert (old.superseded_by, old.superseded_at) == ("m_2", NOW)
        assert ids(store.keyword(["tea"], self.where(), 5)) == []

    def test_an_id_of_another_scope_is_not_overwritten(self, tmp_path: Path) -> None:
        """Scope is a wall for writers too."""
        store = self.filled(tmp_path, [fact("m_1", "tea", scope=OTHER)])
        try:
            self.put(store, [fact("m_1", "coffee", scope=USER)])
        except StoreError:
            pass
        else:
            raise AssertionError("the id of another scope was overwritten")
        assert store.get(["m_1"], frozenset({OTHER}))["m_1"].text == "tea"

    def test_writing_a_replaced_memory_again_does_not_bring_it_back(self, tmp_path: Path) -> None:
        """A file that is read anew keeps what was said of its chunks, unless told otherwise."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "coffee")])
        store.write(Changes(superseded={"m_1": ("m_2", NOW)}))
        self.put(store, [fact("m_1", "tea", date=NOW - 3)])
        assert store.get(["m_1"], MINE)["m_1"].superseded_by == "m_2"
        store.write(Changes(superseded={"m_1": None}))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_1"]

    def test_what_a_removed_memory_had_replaced_comes_back(self, tmp_path: Path) -> None:
        """Forgetting the correction brings back what it corrected."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "coffee")])
        store.write(Changes(superseded={"m_1": ("m_2", NOW)}))
        store.write(Changes(remove=["m_2"]))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_1"]

    def test_replacing_a_file_leaves_only_what_is_put(self, tmp_path: Path) -> None:
        """Whoever wrote the file in between, its old chunks go; facts and other scopes stay."""
        place = Source("a.md", 1, 1, "h")
        store = self.filled(
            tmp_path,
            [
                fact("m_old", "tea old", kind="chunk", source=place),
                fact("m_kept", "tea kept", kind="chunk", source=place),
                fact("m_fact", "tea fact"),
                fact("m_other", "tea other", kind="chunk", source=place, scope=USER),
            ],
        )
        kept = entry_for(fact("m_kept", "tea kept", kind="chunk", source=place), "en")
        store.write(Changes(put=[kept], replace_files=[(GLOBAL, "a.md")]))
        assert set(ids(store.keyword(["tea"], self.where(), 9))) == {"m_kept", "m_fact", "m_other"}

    def test_path_patterns_are_those_of_the_shell(self, tmp_path: Path) -> None:
        """`[!a]` leaves out a, in every store."""
        chunks = [fact(f"m_{n}", "tea", kind="chunk", source=Source(f"n/{n}.md", 1, 1, n)) for n in "ab"]
        store = self.filled(tmp_path, chunks)
        assert ids(store.keyword(["tea"], self.where(path="n/[!a].md"), 5)) == ["m_b"]

    def test_forgetting_the_middle_of_a_chain_hands_the_rest_on(self, tmp_path: Path) -> None:
        """a was replaced by b, b by c: without b, a is replaced by c."""
        store = self.filled(tmp_path, [fact("m_a", "tea"), fact("m_b", "tea b"), fact("m_c", "tea c")])
        store.write(Changes(superseded={"m_a": ("m_b", NOW - 2), "m_b": ("m_c", NOW - 1)}))
        store.write(Changes(remove=["m_b"]))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_c"]
        assert store.get(["m_a"], MINE)["m_a"].superseded_by == "m_c"

    def test_what_comes_back_after_a_while_is_still_replaced(self, tmp_path: Path) -> None:
        """A file that was away, as on another branch, finds its successor waiting."""
        old = fact("m_old", "tea", kind="chunk", source=Source("a.md", 1, 1, "h"))
        store = self.filled(tmp_path, [old, fact("m_new", "tea now", supersedes="m_old")])
        store.write(Changes(superseded={"m_old": ("m_new", NOW)}))
        store.write(Changes(replace_files=[(GLOBAL, "a.md")]))
        self.put(store, [old])
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_new"]

    def test_what_moves_takes_its_successor_along(self, tmp_path: Path) -> None:
        """A renamed file has new ids and the old story."""
        old = fact("m_old", "tea", kind="chunk", source=Source("a.md", 1, 1, "h"))
        store = self.filled(tmp_path, [old, fact("m_new", "tea now", supersedes="m_old")])
        store.write(Changes(superseded={"m_old": ("m_new", NOW)}))
        moved = entry_for(fact("m_moved", "tea", kind="chunk", source=Source("b.md", 1, 1, "h")), "en")
        store.write(Changes(put=[moved], replace_files=[(GLOBAL, "a.md")], renamed={"m_old": "m_moved"}))
        assert store.get(["m_moved"], MINE)["m_moved"].superseded_by == "m_new"
        assert store.get(["m_new"], MINE)["m_new"].supersedes == "m_moved"

    def test_nothing_is_replaced_across_scopes_or_by_itself(self, tmp_path: Path) -> None:
        """Scope is a wall for supersession too."""
        store = self.filled(tmp_path, [fact("m_1", "tea", scope=USER), fact("m_2", "tea", scope=OTHER)])
        for other in ("m_2", "m_1"):
            store.write(Changes(superseded={"m_1": (other, NOW)}))
        assert ids(store.keyword(["tea"], self.where(), 5)) == ["m_1"]

    def test_the_last_of_equal_ids_in_one_write_wins(self, tmp_path: Path) -> None:
        """No raw error of the database for a careless caller."""
        twice = [fact("m_1", "tea"), fact("m_1", "coffee")]
        assert self.filled(tmp_path, twice).get(["m_1"], MINE)["m_1"].text == "coffee"

    def test_a_sample_is_the_same_whatever_the_order_of_writing(self, tmp_path: Path) -> None:
        """What is drawn depends on the memories alone, not on what else the store holds."""
        memories = [fact(f"m_{number}", f"note number {number}") for number in range(30)]
        hidden = [fact(f"o_{number}", "tea", scope=OTHER) for number in range(9)]
        one = self.filled(tmp_path / "1", [*memories, *hidden])
        two = self.filled(tmp_path / "2", memories[::-1])
        drawn = one.sample(self.where(), 10)
        assert drawn == two.sample(self.where(), 10)
        assert len({memory.id for memory in drawn}) == 10
        assert set(drawn) <= set(memories)
        assert drawn == one.sample(self.where(), 20)[:10]

    def test_a_sample_holds_only_what_may_answer(self, tmp_path: Path) -> None:
        """Filters count, and a small store gives all it has."""
        store = self.filled(tmp_path, [fact("m_1", "tea"), fact("m_2", "milk", expires=NOW - 1), fact("m_3", "oat")])
        assert {memory.id for memory in store.sample(self.where(), 10)} == {"m_1", "m_3"}
