"""Small stores: what is drawn, what is asked of it, and that a question counts once."""

from __future__ import annotations

import json
import math
from itertools import count
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import BadDataset, ConfigError
from whyrank.evaluation.datasets import EvaluationSet, Question, load_kinds
from whyrank.evaluation.results import drawn, set_from
from whyrank.evaluation.small_stores import (
    ANSWERABLE,
    Draws,
    OpenStore,
    SmallStores,
    as_data,
    draw_stores,
    evaluate_small,
    files_of,
)
from whyrank.types.memory import GLOBAL, Document, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ANN, BOB = Scope("user", "ann"), Scope("user", "bob")


def a_set(
    texts: dict[str, str], questions: dict[str, tuple[str, dict[str, int]]], name: str = "notes"
) -> EvaluationSet:
    """Return a set of documents by id, and questions by id with their judgements."""
    return EvaluationSet(
        name,
        "en",
        tuple(Document(identity, text) for identity, text in texts.items()),
        None,
        tuple(Question(identity, text, "", GLOBAL) for identity, (text, _) in questions.items()),
        {identity: judged for identity, (_, judged) in questions.items()},
    )


def numbered(count: int, relevant: int) -> EvaluationSet:
    """Return so many documents, of which the first few answer a question each."""
    names = [f"d{number:03}" for number in range(count)]
    asked = {f"q{name}": (f"what is {name}?", {name: 1}) for name in names[:relevant]}
    return a_set({name: f"this is {name}" for name in names}, asked)


def opener(folder: Path, embedding: str) -> OpenStore:
    """Return what opens one empty store after the other."""
    numbers = count()

    def open_next() -> whyrank.Engine:
        store = folder / f"{next(numbers)}.db"
        return whyrank.open(store, workspace=folder, embedding=embedding, calibration="manual")

    return open_next


@pytest.fixture
def open_store(tmp_path: Path) -> OpenStore:
    return opener(tmp_path, "none")


def documents(stores: Sequence[EvaluationSet]) -> list[list[str]]:
    return [[document.id for document in store.documents] for store in stores]


def stores_of(dataset: EvaluationSet, draws: Draws, open_store: OpenStore) -> list[EvaluationSet]:
    return draw_stores(dataset, files_of(dataset, open_store), draws)


def evaluated(
    dataset: EvaluationSet, draws: Draws, open_store: OpenStore, others: Sequence[EvaluationSet] | None = None
) -> SmallStores:
    files = files_of(dataset, open_store)
    return evaluate_small(dataset, files, draws, ["default"], open_store, lambda *_: None, others)


def test_a_seed_draws_the_same_stores_again_and_another_seed_others(open_store: OpenStore) -> None:
    dataset = numbered(40, 20)
    first = documents(stores_of(dataset, Draws(7, 5, 1), open_store))
    assert first == documents(stores_of(dataset, Draws(7, 5, 1), open_store))
    assert first != documents(stores_of(dataset, Draws(7, 5, 2), open_store))
    assert [len(set(store)) for store in first] == [7] * 5
    assert len({tuple(store) for store in first}) == 5


def test_more_draws_begin_with_the_same_stores(open_store: OpenStore) -> None:
    dataset = numbered(40, 20)
    few, many = (documents(stores_of(dataset, Draws(7, count), open_store)) for count in (3, 6))
    assert many[:3] == few


def test_every_file_is_as_likely_as_another_where_a_quarter_answers_a_question(open_store: OpenStore) -> None:
    dataset = numbered(40, 10)
    stores = documents(stores_of(dataset, Draws(8, 400), open_store))
    relevant = [sum(document < "d010" for document in store) for store in stores]
    # 8 of 40 files, 10 of them relevant: 8 · 10/40 = 2 on average, hypergeometric with a deviation of 1.1
    assert sum(relevant) / len(relevant) == pytest.approx(2.0, abs=4 * 1.1 / math.sqrt(400))
    assert {0, 1, 2, 3, 4} <= set(relevant)


def test_a_quarter_of_the_files_answers_a_question_where_hardly_any_does(open_store: OpenStore) -> None:
    dataset = numbered(400, 20)  # a twentieth: nine files drawn alike would hold 0.45 of them
    for store in stores_of(dataset, Draws(9, 6), open_store):
        held = [document.id for document in store.documents]
        assert sum(document < "d020" for document in held) == 3  # 9/4 = 2.25, rounded up
        assert len(held) == 9


def test_all_that_answers_a_question_is_drawn_where_that_is_less_than_a_quarter(open_store: OpenStore) -> None:
    [store] = stores_of(numbered(50, 2), Draws(20, 1), open_store)
    assert {question.id for question in store.questions} == {"qd000", "qd001"}
    assert len(store.documents) == 20


def test_a_store_is_asked_what_its_files_answer_and_judged_by_them_alone(open_store: OpenStore) -> None:
    dataset = a_set(
        {name: name for name in "abcdef"},
        {"q1": ("?", {"a": 2, "b": 1}), "q2": ("?", {"c": 1, "d": 0}), "q3": ("?", {"e": 1})},
    )
    for store in stores_of(dataset, Draws(3, 8), open_store):
        held = {document.id for document in store.documents}
        expected = {
            identity: {document: gain for document, gain in judged.items() if document in held}
            for identity, judged in dataset.judgements.items()
        }
        answered = {identity: judged for identity, judged in expected.items() if any(judged.values())}
        assert store.judgements == answered
        assert [question.id for question in store.questions] == list(answered)


def test_the_turns_of_a_session_are_drawn_together(open_store: OpenStore) -> None:
    turns = tuple(Document(f"{s}/{t}", f"turn {t}", session=s, speaker="Ann") for s in "abcde" for t in range(4))
    dataset = EvaluationSet("talk", "en", turns, None, (Question("q", "?", "", GLOBAL),), {"q": {"a/1": 1}})
    assert len(files_of(dataset, open_store)) == 5
    for held in documents(stores_of(dataset, Draws(2, 4), open_store)):
        sessions = {document[0] for document in held}
        assert sorted(held) == sorted(f"{session}/{turn}" for session in sessions for turn in range(4))
        assert len(sessions) == 2


def test_files_are_those_that_an_ingest_takes(tmp_path: Path, open_store: OpenStore) -> None:
    files = tmp_path / "files"
    (files / "below").mkdir(parents=True)
    for name in ("tea.md", "boat.md", "below/heap.md"):
        (files / name).write_text(f"# {name}\n\ntext of {name}", encoding="utf-8")
    (files / "picture.png").write_bytes(b"\x89PNG\0")
    asked = Question("q", "text of tea", "", GLOBAL)
    dataset = EvaluationSet("files", "en", (), files, (asked,), {"q": {"tea.md": 1}})
    assert sorted(files_of(dataset, open_store)) == ["below/heap.md", "boat.md", "tea.md"]
    measured = evaluated(dataset, Draws(2, 6), open_store)
    stores = stores_of(dataset, Draws(2, 6), open_store)
    assert all(len(store.paths) == 2 for store in stores)
    holding = [store for store in stores if "tea.md" in store.paths]
    assert (measured.asked, measured.unasked) == (len(holding), 6 - len(holding))
    assert measured.evaluation.lines["default"].values("hit@1") == [1.0]


def test_a_question_asked_of_several_stores_counts_once_by_its_mean(open_store: OpenStore) -> None:
    texts = {
        "oil": "oil",
        "best": "copper kettle whistles",
        "wanted": "the copper was polished on a winter morning while the snow fell on the quiet yard",
        "flour": "flour",
        "wool": "wool",
    }
    dataset = a_set(texts, {"q": ("copper kettle whistles", {"wanted": 1}), "sure": ("flour", {"flour": 1})})
    draws = Draws(3, 12)
    held = documents(stores_of(dataset, draws, open_store))
    asked = [store for store in held if "wanted" in store]
    behind = [store for store in asked if "best" in store]
    assert 0 < len(behind) < len(asked)  # in some it is second, in the others first
    measured = evaluated(dataset, draws, open_store)
    line = measured.evaluation.lines["default"]
    assert [question.id for question in measured.evaluation.questions] == ["q", "sure"]
    assert line.scores["q"]["hit@1"] == pytest.approx(1 - len(behind) / len(asked))
    # second is worth 1/log2(3), first 1
    gained = [1 / math.log2(3) if store in behind else 1.0 for store in asked]
    assert line.scores["q"]["ndcg@10"] == pytest.approx(sum(gained) / len(gained))
    # both questions have the same weight, however many stores each was asked of
    assert line.means()["hit@1"] == pytest.approx((line.scores["q"]["hit@1"] + 1.0) / 2)
    assert measured.asked == len(asked) + sum("flour" in store for store in held)
    assert measured.unasked == sum(not {"wanted", "flour"} & set(store) for store in held)


def test_a_question_sees_the_drawn_files_of_its_scope(open_store: OpenStore) -> None:
    texts = [Document(f"{scope.name}{i}", "green tea", scope=scope) for scope in (ANN, BOB) for i in range(4)]
    questions = tuple(Question(scope.name, "green tea", "", scope) for scope in (ANN, BOB))
    judged = {scope.name: {f"{scope.name}0": 1, f"{scope.name}1": 1} for scope in (ANN, BOB)}
    dataset = EvaluationSet("tea", "en", tuple(texts), None, questions, judged)
    measured = evaluated(dataset, Draws(4, 6), open_store, others=[])
    assert measured.evaluation.lines["ceiling"].means()["recall@10"] == 1.0
    assert measured.evaluation.lines["default"].means()["recall@10"] == 1.0
    # the other scope's question is foreign in a store that asks both
    assert measured.verdicts["other scopes"].questions == 2


def test_verdicts_on_answerable_and_foreign_questions_are_shares_of_questions(tmp_path: Path) -> None:
    texts = {f"{i:02}": f"The parcel {i} waits beside the copper gate of warehouse {i * 3}." for i in range(40)}
    asked = {f"q{i}": (f"which warehouse holds parcel {i} beside the gate?", {f"{i:02}": 1}) for i in range(20)}
    dataset = a_set(texts, asked)
    penguins = a_set({"x": "x"}, {"f1": ("do penguins have knees?", {"x": 1})}, "birds")
    zips = a_set({"x": "x"}, {f"g{i}": (f"who invented zipper {i}?", {"x": 1}) for i in range(3)}, "zips")
    measured = evaluated(dataset, Draws(25, 3), opener(tmp_path, "wordllama"), others=[penguins, zips])
    assert list(measured.verdicts) == [
        ANSWERABLE,
        "questions of birds",
        "questions of zips",
        "questions of all other sets",
    ]
    assert all(sum(shares[1:]) == pytest.approx(1.0) for shares in measured.verdicts.values())
    assert measured.verdicts[ANSWERABLE].questions == len(measured.evaluation.questions)
    assert measured.verdicts[ANSWERABLE].nothing == 0.0
    one, three, four = (shares for group, shares in measured.verdicts.items() if group != ANSWERABLE)
    assert (one.questions, three.questions, four.questions) == (1, 3, 4)
    assert four.nothing == pytest.approx((1 * one.nothing + 3 * three.nothing) / 4)
    assert one.nothing == 1.0
    assert measured.uncalibrated == 0  # 25 memories are enough


def test_stores_too_small_to_calibrate_are_counted(open_store: OpenStore) -> None:
    measured = evaluated(numbered(30, 15), Draws(5, 3), open_store)
    assert measured.uncalibrated == 3


def test_a_set_without_foreign_questions_is_refused(open_store: OpenStore) -> None:
    with pytest.raises(ConfigError, match="one scope only"):
        evaluated(numbered(10, 5), Draws(5, 1), open_store, others=[])


def test_stores_that_answer_nothing_are_refused_with_what_helps(open_store: OpenStore) -> None:
    dataset = numbered(4, 1)
    draws = Draws(
        1, 1, seed=next(s for s in range(99) if not stores_of(dataset, Draws(1, 1, s), open_store)[0].questions)
    )
    with pytest.raises(ConfigError, match="none of the 1 stores drawn out of notes answers a question"):
        evaluated(dataset, draws, open_store)


def test_small_stores_are_kept_and_read_again(open_store: OpenStore) -> None:
    measured = evaluated(numbered(30, 15), Draws(5, 3, seed=4), open_store)
    data = as_data(measured)
    read = set_from(json.loads(json.dumps(data)))
    assert read.name == "notes, stores of 5"
    assert read.stores is not None
    assert (read.stores.files, read.stores.draws, read.stores.seed) == (5, 3, 4)
    assert (read.stores.asked, read.stores.verdicts) == (measured.asked, measured.verdicts)
    assert drawn(read.stores)[0] == (
        f"3 stores of 5 files, seed 4: {measured.asked} questions asked, one asked of several stores counted once."
    )
    single = data["stores"]["better_single"]["default"]
    assert (single["against"], single["difference"]) == ("keyword", 0.0)  # without an embedder words are all there is


def test_kinds_are_chosen_behind_a_colon(tmp_path: Path) -> None:
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"id": "a", "text": "a"}', encoding="utf-8")
    rows = [{"id": kind, "text": kind, "kind": kind} for kind in ("direct", "vague", "natural")]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "qrels.tsv").write_text("direct\ta\t1\nvague\ta\t1\nnatural\ta\t1\n", encoding="utf-8")
    assert len(load_kinds(str(folder)).questions) == 3
    chosen = load_kinds(f"{folder}:vague,direct")
    assert (chosen.name, [question.id for question in chosen.questions]) == ("kinds:vague,direct", ["direct", "vague"])
    assert set(chosen.judgements) == {"direct", "vague"}
    with pytest.raises(BadDataset, match=r"no question of the kind 'loud'.*its kinds are direct, natural, vague"):
        load_kinds(f"{folder}:loud")
    with_colon = tmp_path / "a:b"
    folder.rename(with_colon)
    assert load_kinds(str(with_colon)).name == "a:b"
