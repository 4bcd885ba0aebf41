"""The facade: facts, documents, pages, asynchronous callers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from tests.minilm import MODELS, installed
from whyrank.engine.arguments import Filters
from whyrank.errors import ConfigError, NotFound, StoreError
from whyrank.testing.memory_store import MemoryStore
from whyrank.types.memory import Document, Scope
from whyrank.types.query import Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as opened:
        yield opened


def test_the_same_text_is_not_stored_twice(engine: whyrank.Engine) -> None:
    first = engine.add("Suzy  drinks tea")
    second = engine.add("suzy drinks TEA")
    assert (second.id, engine.status().memories) == (first.id, 1)


def test_the_same_text_of_two_users_is_two_memories(engine: whyrank.Engine) -> None:
    assert engine.add("tea", scope="user:1").id != engine.add("tea", scope="user:2").id


@pytest.mark.parametrize("text", ["", "  \n", "a\x00b", "a\ud800b"])
def test_add_refuses_what_cannot_be_stored(engine: whyrank.Engine, text: str) -> None:
    with pytest.raises(ConfigError):
        engine.add(text)
    assert engine.status().memories == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "Planet:earth"},
        {"scope": "planet"},
        {"scope": "team:a/*"},
        {"metadata": ["a"]},
        {"metadata": "{"},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": "\0"}},
        {"metadata": {"a": object()}},
        {"scope": "user:"},
        {"category": "gossip"},
        {"importance": 6},
        {"importance": 0},
        {"date": "the day after"},
        {"expires": "2026-13-01"},
    ],
)
def test_add_refuses_fields_that_make_no_sense(engine: whyrank.Engine, fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        engine.add("tea", **fields)  # type: ignore[arg-type]
    assert engine.status().memories == 0


def test_an_expired_fact_is_not_found(engine: whyrank.Engine) -> None:
    engine.add("tea is ready", expires="2020-01-01")
    assert len(engine.search("tea")) == 0


def test_forget_is_by_exact_id_and_within_the_scope(engine: whyrank.Engine) -> None:
    mine = engine.add("tea", scope="user:1")
    with pytest.raises(NotFound):
        engine.forget(mine.id)
    with pytest.raises(NotFound):
        engine.forget(mine.id[:-1], scope="user:1")
    engine.forget(mine.id, scope="user:1")
    assert engine.status().memories == 0


def test_a_foreign_memory_answers_not_found_to_every_question(engine: whyrank.Engine) -> None:
    foreign = engine.add("tea", scope="user:2")
    for ask in (
        lambda: engine.get(foreign.id, scope="user:1"),
        lambda: engine.why("tea", foreign.id, scope="user:1"),
        lambda: engine.add("coffee", scope="user:1", supersedes=foreign.id),
    ):
        with pytest.raises(NotFound):
            ask()
    assert engine.list(scope="user:1") == []


def test_several_scopes_may_be_asked_for_at_once(engine: whyrank.Engine) -> None:
    for scope in ("global", "user:1", "agent:pip", "session:9", "user:2"):
        engine.add(f"tea of {scope}", scope=scope)
    found = engine.search("tea", scope=["user:1", "agent:pip", "session:9"], limit=10)
    assert {str(hit.memory.scope) for hit in found} == {"global", "user:1", "agent:pip", "session:9"}


@pytest.mark.parametrize(("limit", "offset", "said"), [(-1, 0, "limit is -1"), (5, -2, "offset is -2")])
def test_a_negative_page_is_refused(engine: whyrank.Engine, limit: int, offset: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        engine.search("tea", limit=limit, offset=offset)


def test_a_limit_out_of_proportion_is_cut_with_a_notice(engine: whyrank.Engine) -> None:
    engine.add("tea")
    results = engine.search("tea", limit=10**9)
    assert len(results) == 1
    assert "limit-cut" in {notice.code for notice in results.notices}


def test_an_unknown_filter_or_setting_is_an_error(engine: whyrank.Engine, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kind"):
        engine.search("tea", kind="rumour")
    with pytest.raises(ConfigError, match="did you mean"):
        whyrank.open(tmp_path / "x.db", embeding="none")


def test_documents_of_one_session_stand_in_their_order(engine: whyrank.Engine) -> None:
    engine.add_documents(
        Document(f"d{i}", f"turn {i}", scope=Scope("user", "1"), session="s", speaker="Ann") for i in range(3)
    )
    assert [memory.position for memory in engine.list(scope="user:1")] == [0, 1, 2]


def test_why_says_how_far_a_memory_was_from_the_pool(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "many.db", workspace=tmp_path) as engine:
        far = engine.add("the engine oil is changed in spring")
        for i in range(150):
            engine.add(f"green tea note number {i}")
        answer = engine.why("green tea note", far.id)
    assert answer.outcome == "not a candidate"
    assert "keyword: no shared term" in answer.details
    assert any(
        detail.startswith("vector: rank 151 of a pool of 100 sources; needs cosine") for detail in answer.details
    )


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("expires: 2020-01-01", "expired"),
        ("valid_until: 2020-01-01", "no longer valid"),
        ("valid_from: 2999-01-01", "not valid yet"),
    ],
)
def test_why_says_that_a_file_is_out_of_its_time(tmp_path: Path, field: str, said: str) -> None:
    (tmp_path / "tea.md").write_text(f"---\n{field}\n---\nGreen tea.\n")
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path, embedding="none") as engine:
        engine.ingest(tmp_path)
        assert engine.why("tea", "tea.md").summary == f"it cannot answer: {said}"


def test_recency_is_one_setting_away(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path, embedding="none", ranking_recency_weight=0.5) as engine:
        engine.add("tea note, old", date="2001-01-01")
        new = engine.add("tea note, new")
        results = engine.search("tea note")
    assert results[0].id == new.id
    assert any(step.stage == "recency" for step in results[0].trail)


def test_asynchronous_callers_get_the_same_answer(tmp_path: Path) -> None:
    async def ask() -> list[str]:
        async with await whyrank.open_async(tmp_path / "async.db", workspace=tmp_path, embedding="none") as memory:
            await memory.add("green tea")
            await memory.add("black tea")
            answers = await asyncio.gather(*(memory.search("green tea") for _ in range(8)))
            assert len({tuple(hit.id for hit in answer) for answer in answers}) == 1
            return [hit.memory.text for hit in answers[0]]

    assert asyncio.run(ask()) == ["green tea", "black tea"]


def test_a_failing_embedder_leaves_words_at_work(tmp_path: Path) -> None:
    from whyrank.config.load import load
    from whyrank.engine.engine import Engine
    from whyrank.errors import ProviderError
    from whyrank.storage.store import SqliteStore
    from whyrank.testing.fakes import WordDirections

    class Failing(WordDirections):
        def query(self, text: str) -> NDArray[np.float32]:
            raise ProviderError("the model is away", "wait")

    config = load({}, workspace=tmp_path, environment={})
    with Engine(SqliteStore(tmp_path / "m.db"), Failing(), config) as engine:
        engine.add("green tea")
        results = engine.search("tea")
    assert [hit.memory.text for hit in results] == ["green tea"]
    assert "vector-off" in {notice.code for notice in results.notices}


def test_a_store_whose_model_cannot_be_made_serves_words_and_says_what_mends_it(tmp_path: Path) -> None:
    from whyrank.config.load import load
    from whyrank.engine.engine import Engine
    from whyrank.storage.store import SqliteStore
    from whyrank.testing.fakes import WordDirections

    config = load({}, workspace=tmp_path, environment={})
    with Engine(SqliteStore(tmp_path / "m.db"), WordDirections(name="first"), config) as engine:
        engine.add("green tea")
    with Engine(SqliteStore(tmp_path / "m.db"), WordDirections(name="second"), config) as engine:
        results = engine.search("tea")
    assert [hit.memory.text for hit in results] == ["green tea"]
    [said] = [notice.message for notice in results.notices if notice.code == "vector-off"]
    assert "first" in said
    assert "`models.use()` embeds the memories again" in said


def test_a_memory_of_another_scope_cannot_be_replaced(engine: whyrank.Engine) -> None:
    shared = engine.add("the office opens at nine")
    with pytest.raises(ConfigError, match="belongs to global"):
        engine.add("the office opens at ten", scope="user:alice", supersedes=shared.id)
    assert [hit.id for hit in engine.search("office", scope="user:bob")] == [shared.id]


def test_a_text_that_was_replaced_can_be_said_again(engine: whyrank.Engine) -> None:
    tea = engine.add("Suzy drinks tea")
    coffee = engine.add("Suzy drinks coffee", supersedes=tea.id)
    engine.add("Suzy drinks tea", supersedes=coffee.id)
    assert [hit.memory.text for hit in engine.search("Suzy drinks")] == ["Suzy drinks tea"]


def test_an_expired_text_can_be_said_again(engine: whyrank.Engine) -> None:
    engine.add("the shop is open", expires="2020-01-01")
    engine.add("the shop is open")
    assert len(engine.search("shop")) == 1


def test_forgetting_a_correction_brings_back_what_it_corrected(engine: whyrank.Engine) -> None:
    tea = engine.add("Suzy drinks tea")
    coffee = engine.add("Suzy drinks coffee", supersedes=tea.id)
    engine.forget(coffee.id)
    assert [hit.id for hit in engine.search("Suzy drinks")] == [tea.id]


@pytest.mark.parametrize("given", [["tea"], "tea", [("d1", "tea")], [{"id": "d1", "text": "tea"}]])
def test_what_is_no_document_is_refused_with_what_one_is(engine: whyrank.Engine, given: Any) -> None:
    with pytest.raises(ConfigError, match=r"is not a document \(give whyrank.Document\(id, text"):
        engine.add_documents(given)


def test_a_document_with_new_text_takes_the_place_of_the_old(engine: whyrank.Engine) -> None:
    engine.add_documents([Document("d", "green tea")])
    engine.add_documents([Document("d", "black coffee")])
    assert [memory.text for memory in engine.list()] == ["black coffee"]


def test_a_single_tag_may_be_given_as_it_is(engine: whyrank.Engine) -> None:
    assert engine.add("tea", tags="work").tags == ("work",)
    assert len(engine.search("tea", tags="work")) == 1


def test_ingesting_the_workspace_leaves_files_from_elsewhere_alone(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here/a.md").write_text("inside")
    (tmp_path / "there/b.md").write_text("outside")
    with whyrank.open(tmp_path / "here/memory.db", workspace=tmp_path / "here", embedding="none") as engine:
        engine.ingest(tmp_path / "there")
        report = engine.ingest(tmp_path / "here")
        assert report.files == {"new": 1}
        assert len(engine.search("outside")) == 1


def test_two_ingests_at_once_leave_no_stale_chunk(tmp_path: Path) -> None:
    note = tmp_path / "n" / "a.md"
    note.parent.mkdir()
    note.write_text("version one")
    with (
        whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as first,
        whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as second,
    ):

        def interfere(done: int, total: int, name: str) -> None:
            note.write_text("version two, longer")
            second.ingest(note.parent)

        first.ingest(note.parent, progress=interfere)
        first.ingest(note.parent)
        assert [memory.text for memory in first.list()] == ["version two, longer"]


def test_a_chunk_that_was_replaced_stays_so_when_its_file_changes(tmp_path: Path) -> None:
    note = tmp_path / "a.md"
    long = "word " * 120
    note.write_text(f"# One\n\nzebra {long}\n\n# Two\n\nlion {long}\n")
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.ingest(note)
        zebra = engine.search("zebra")[0]
        engine.add("there is no zebra any more", supersedes=zebra.id)
        note.write_text(f"# One\n\nzebra {long}\n\n# Two\n\nlion and tiger {long}\n")
        engine.ingest(note)
        assert zebra.id not in {hit.id for hit in engine.search("zebra", limit=50)}


def test_strict_drops_with_a_reason_and_loses_nothing(engine: whyrank.Engine) -> None:
    engine.add("the cat sleeps on the sofa all day long while it rains")
    open_answer = engine.search("sofa tax deduction rules for commercial landlords")
    strict = engine.search("sofa tax deduction rules for commercial landlords", strict=True)
    assert open_answer.verdict == strict.verdict == "nothing"
    assert len(strict) == 0
    assert {hit.id for hit in strict.dropped} == {hit.id for hit in (*open_answer.hits, *open_answer.dropped)}
    assert strict.dropped[0].trail[-1].stage == "strict"


def test_the_verdict_does_not_depend_on_the_page(engine: whyrank.Engine) -> None:
    for i in range(5):
        engine.add(f"green tea note {i}")
    verdicts = {
        engine.search("green tea note", limit=limit, offset=offset).verdict
        for limit, offset in ((0, 0), (1, 0), (5, 3))
    }
    assert verdicts == {"found"}


def test_a_slip_of_the_finger_is_lifted_but_not_certain(engine: whyrank.Engine) -> None:
    engine.add("Signed papers live here.", name="Contract")
    results = engine.search("contrast")
    assert results[0].tier > 0
    assert results.verdict != "found"


def test_known_words_are_no_typo_of_a_name(engine: whyrank.Engine) -> None:
    for i in range(3):
        engine.add(f"green tea in pot {i}")
    engine.add("People who plant trees.", name="Green Team")
    assert all(hit.tier == 0 for hit in engine.search("green tea"))


def test_quoting_the_content_does_not_bring_back_the_function_words(engine: whyrank.Engine) -> None:
    engine.add("green tea")
    assert engine.search('what is "green tea"').analysis.terms == ("green tea",)


def test_a_weight_for_vectors_alone_lets_words_speak_where_there_are_none(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path, embedding="none", ranking_vector_weight=1.0) as engine:
        engine.add("a pot")
        best = engine.add("green tea pot")
        results = engine.search("green tea pot")
        assert (results[0].id, results[0].score) == (best.id, 1.0)
        unused = engine.search("green tea pot", recipe="rrf")
        assert "setting-unused" in {notice.code for notice in unused.notices}


def test_properties_of_an_asynchronous_engine_are_values(tmp_path: Path) -> None:
    async def ask() -> str:
        async with await whyrank.open_async(tmp_path / "async.db", workspace=tmp_path) as memory:
            return str(memory.models.space)

    assert asyncio.run(ask()).startswith("wordllama/")


def test_why_takes_a_path_and_tells_ties_from_places(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("green tea")
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.ingest(tmp_path / "tea.md")
        assert engine.why("green tea", "tea.md").outcome == "found"
        for i in range(130):
            engine.add("pump", scope=f"user:{i}")
        for i in range(130):
            engine.add(f"pump number{i:03} same length")
        lost = [
            memory for memory in engine.list(limit=200) if engine.why("pump", memory.id).outcome == "not a candidate"
        ]
        assert lost
        assert "tied at word score" in "".join(engine.why("pump", lost[0].id).details)


def test_a_closed_engine_says_so(tmp_path: Path) -> None:
    engine = whyrank.open(tmp_path / "m.db", workspace=tmp_path, embedding="none")
    engine.close()
    with pytest.raises(StoreError, match="was closed"):
        engine.search("tea")


def test_fetching_a_model_that_is_there_returns_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed()
    monkeypatch.setenv("WHYRANK_MODEL_FOLDER", str(MODELS))
    assert whyrank.fetch_model("minilm", workspace=tmp_path) == MODELS
    with pytest.raises(ConfigError, match="did you mean 'minilm'"):
        whyrank.fetch_model("minillm", workspace=tmp_path)


def test_a_store_is_embedded_again_for_another_model(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", embedding="none") as memory:
        memory.add("Suzy prefers tea")
        assert memory.models.embed().embedded == 0
    with whyrank.open(tmp_path / "memory.db", embedding="wordllama") as memory:
        done = memory.models.embed()
        assert (done.space, done.embedded, done.without_vector) == (memory.models.space, 1, 0)
        assert memory.status().without_vector == 0


def parcels(count: int, scope: str = "global") -> list[Document]:
    owner = Scope.parse(scope)
    return [
        Document(f"{scope}/{i}", f"The parcel {i} waits beside the copper gate of warehouse {i * 3}.", scope=owner)
        for i in range(count)
    ]


def test_confidence_is_calibrated_by_itself_when_the_memories_have_doubled(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add_documents(parcels(19))
        assert engine.models.calibrations() == []
        engine.add_documents(parcels(20))
        assert [made.memories for made in engine.models.calibrations()] == [20]
        engine.add_documents(parcels(39))
        assert [made.memories for made in engine.models.calibrations()] == [20]
        engine.add_documents(parcels(41))
        assert [made.memories for made in engine.models.calibrations()] == [41]


def test_each_scope_is_calibrated_with_what_it_sees(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add_documents([*parcels(21), *parcels(22, "user:1")])
        assert [(made.scopes, made.memories) for made in engine.models.calibrations()] == [
            (("global",), 21),
            (("global", "user:1"), 43),
        ]


def test_an_ingest_calibrates_and_a_single_fact_does_not(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(
        "\n".join(f'{{"text": "The crane number {i} lifts barrels of tar", "speaker": "Ann"}}' for i in range(25))
    )
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path) as engine:
        for number in range(21):
            engine.add(f"The parcel {number} waits beside the copper gate.")
        assert engine.models.calibrations() == []
        assert [notice.code for notice in engine.search("parcel").notices] == ["uncalibrated"]
        engine.ingest(tmp_path / "log.jsonl", dry_run=True)
        assert engine.models.calibrations() == []
        engine.ingest(tmp_path / "log.jsonl")
        assert [made.memories for made in engine.models.calibrations()] == [46]
        assert engine.search("parcel").notices == ()


def test_calibration_may_be_left_to_the_user(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none", calibration="manual") as engine:
        engine.add_documents(parcels(25))
        assert engine.models.calibrations() == []
        assert engine.calibrate().memories == 25


def test_calibration_is_awaited_by_asynchronous_callers(tmp_path: Path) -> None:
    async def calibrated() -> int:
        async with await whyrank.open_async(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
            await engine.add_documents(parcels(25))
            made = await engine.calibrate()
            return int(made.memories)

    assert asyncio.run(calibrated()) == 25


def test_calibrated_evidence_is_one_setting_away(tmp_path: Path) -> None:
    with whyrank.open(
        tmp_path / "memory.db", workspace=tmp_path, embedding="none", ranking_evidence="calibrated"
    ) as engine:
        engine.add_documents(parcels(40))
        assert len(engine.search("which parcel waits beside the gate?")) > 0
        lost = engine.search("copper mining in Chile and its prices on world markets").dropped
        assert any(hit.trail[-1].stage == "evidence" for hit in lost)


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        (None, {}, "the query is None"),
        ("tea", {"limit": "3"}, "limit is '3'"),
        ("tea", {"offset": 1.5}, "offset is 1.5"),
        ("tea", {"max_tokens": "many"}, "max_tokens is 'many'"),
        ("tea", {"recipe": 5}, "5 is no recipe"),
    ],
)
def test_what_is_no_question_and_no_number_is_refused_by_name(
    tmp_path: Path, query: Any, options: dict[str, Any], said: str
) -> None:
    with (
        whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine,
        pytest.raises(ConfigError, match=said),
    ):
        engine.search(query, **options)


def test_an_empty_path_is_not_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diary.md").write_text("nobody asked for this")
    with whyrank.open(tmp_path / "m.db", workspace=tmp_path) as memory:
        with pytest.raises(ConfigError, match="a path is empty"):
            memory.ingest("")
        assert memory.status().memories == 0


def test_filters_that_say_nothing_ask_what_a_question_without_filters_asks() -> None:
    assert Filters().for_store(MemoryStore(), 5.0) == Where(now=5.0)


@pytest.mark.parametrize("place", ["no/such/memory.db", "no/such/.whyrank/memory.db"])
def test_a_store_in_a_folder_that_is_not_there_makes_no_folders(tmp_path: Path, place: str) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*no/such for the store.*create it, or choose another"):
        whyrank.open(tmp_path / place, workspace=tmp_path, embedding="none")
    assert not [*tmp_path.iterdir()]


def test_the_folder_of_stores_is_made(tmp_path: Path) -> None:
    whyrank.open(tmp_path / ".whyrank/other.db", workspace=tmp_path, embedding="none").close()
    assert (tmp_path / ".whyrank/other.db").is_file()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda engine: engine.search("tea", lmit=3), "'lmit'.*did you mean 'limit'"),
        (lambda engine: engine.list(tag="x"), "'tag'.*did you mean 'tags'"),
        (lambda engine: engine.search("tea", zebra=1), "'zebra'.*the filters are scope, kind"),
        (lambda engine: engine.why("tea", None), "the memory is None.*give its id"),
        (lambda engine: engine.why("tea", "m_1", over=5), "the memory is 5"),
        (lambda engine: engine.forget(None), "the memory is None"),
        (lambda engine: engine.forget(["m_1"]), "the memory is .'m_1'."),
        (lambda engine: engine.search("tea", scope=5), "5 is not a scope.*user:NAME"),
        (lambda engine: engine.search("tea", tags=5), "5 is neither a text nor a list of texts"),
        (lambda engine: engine.search("tea", path=5), "the path pattern is 5"),
        (lambda engine: engine.add("tea", tags=5), "5 is neither a text nor a list of texts"),
        (lambda engine: engine.ingest(), "no path was named"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(engine: whyrank.Engine, wrong: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        wrong(engine)


def test_an_asynchronous_engine_is_entered_without_being_awaited(tmp_path: Path) -> None:
    async def lived() -> int:
        async with whyrank.open_async(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as memory:
            await memory.add("tea")
            return len(await memory.list())

    assert asyncio.run(lived()) == 1


def test_a_memory_of_another_scope_is_answered_as_one_that_is_not_there(engine: whyrank.Engine) -> None:
    foreign = engine.add("tea", scope="user:1").id
    said = []
    for identity in (foreign, "m_unknown"):
        for ask in (engine.get, lambda identity: engine.why("tea", identity)):
            with pytest.raises(NotFound, match="add --scope") as refused:
                ask(identity)
            said.append((refused.value.message.replace(identity, "ID"), refused.value.hint))
    assert said[:2] == said[2:]
