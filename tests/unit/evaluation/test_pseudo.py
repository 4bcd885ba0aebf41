"""Questions made of memories: what is asked, what answers it, and what is hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.evaluation.tuning import HIDDEN_KINDS, KINDS, Material, Pseudo, by_source, hide, plain, questions
from whyrank.types.memory import GLOBAL, Memory, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

BODY = (
    "The hull was tarred in spring and the oarlock squeaks, so a drop of oil helps for a week or two at sea, "
    "says the harbour master."
)
RARE = frozenset({"tar", "oarlock", "squeak"})


def note(path: str, text: str, *, name: str = "", headings: tuple[str, ...] = ()) -> Memory:
    return Memory(f"m_{path}_{hash(text)}", text, "chunk", name, name, headings=headings, source=Source(path, 1, 9))


def frequency(terms: Iterable[str]) -> dict[str, int]:
    return {term: 1 if term in RARE else 9 for term in terms}


def made(*memories: Memory, most: int = 60, seed: int = 1) -> list[Pseudo]:
    return questions(Material(by_source(memories), frequency, "en"), most, seed)


def of_kind(kind: str, *memories: Memory) -> list[Pseudo]:
    return [question for question in made(*memories) if question.kind == kind]


def test_a_heading_asks_for_its_file_and_is_hidden_there() -> None:
    boat = note(
        "boat.md", f"## Winter storage ashore\n\n{BODY}", headings=("Boat", "Winter storage ashore"), name="Boat"
    )
    [question] = of_kind("heading", boat)
    assert (question.text, question.answer) == ("Winter storage ashore", (GLOBAL, "boat.md"))
    assert (question.hidden, question.hidden_in) == ("Winter storage ashore", (GLOBAL, "boat.md"))


def test_a_heading_that_two_files_have_asks_for_neither() -> None:
    one, two = (note(path, BODY, headings=("Usage notes here",)) for path in ("a.md", "b.md"))
    assert of_kind("heading", one, two) == []


def test_a_title_that_the_path_gives_away_is_no_question() -> None:
    assert of_kind("title", note("tarred-hull.md", BODY, name="Tarred hull")) == []
    assert [question.text for question in of_kind("title", note("n7.md", BODY, name="Tarred hull"))] == ["Tarred hull"]


def test_a_title_that_says_only_a_date_is_no_question() -> None:
    dated = [note(f"{day}.md", BODY, name=f"Session of {day} November 2023") for day in range(10, 31)]
    assert of_kind("title", *dated) == []


def test_a_title_is_no_question_when_too_little_is_left_to_answer_with() -> None:
    assert of_kind("title", note("n7.md", "Tarred hull. Done.", name="Tarred hull")) == []


def test_a_link_asks_by_its_text_for_the_file_it_leads_to() -> None:
    index = note("docs/index.md", f"See [how we keep it dry](../boat/winter.md#oil). {BODY}")
    [question] = of_kind("link", index, note("boat/winter.md", BODY))
    assert (question.text, question.answer) == ("how we keep it dry", (GLOBAL, "boat/winter.md"))
    assert question.hidden_in == (GLOBAL, "docs/index.md")


@pytest.mark.parametrize("link", ["winter.md", "./winter.md", "winter", "/boat/winter", "../boat/winter.md#oil"])
def test_a_link_is_followed_however_it_is_written(link: str) -> None:
    page = note("docs/boat/index.md", f"See [how we keep it dry]({link}). {BODY}")
    [question] = of_kind("link", page, note("docs/boat/winter.md", BODY))
    assert question.answer == (GLOBAL, "docs/boat/winter.md")


@pytest.mark.parametrize(
    "link",
    ["[winter storage](winter-storage.md)", "[winter storage](https://example.org)", "![a dry hull](winter.png)"],
)
def test_a_link_by_name_out_of_the_store_or_to_a_picture_is_no_question(link: str) -> None:
    assert of_kind("link", note("a.md", f"See {link}. {BODY}"), note("winter-storage.md", BODY)) == []


def test_a_wiki_link_asks_by_its_label() -> None:
    [question] = of_kind("link", note("a.md", f"[[winter|how to keep the hull dry]] {BODY}"), note("winter.md", BODY))
    assert question.text == "how to keep the hull dry"


def test_a_paraphrase_lacks_the_rarest_third_of_a_sentence_and_hides_all_of_it() -> None:
    sentence = "The tarred hull squeaks in the oarlock after spring rain came"
    [question] = of_kind("paraphrase", note("a.md", f"{sentence}.\n\nwords: {'other things were said ' * 6}"))
    # Content: tarred, hull, squeaks, oarlock, spring, rain, came; of these 7 // 3 = 2 go, at equal rarity the first.
    assert question.text == "The hull in the oarlock after spring rain came."
    assert question.hidden == f"{sentence}."


def test_a_chinese_sentence_keeps_its_words() -> None:
    sentence = "老巷茶馆每天下午三点以后供应新鲜绿茶。"
    [question] = of_kind("paraphrase", note("a.md", f"{sentence}\n\n{'其他的事情也在这里写下来了吗' * 3}？"))
    assert question.text in (sentence, f"{'其他的事情也在这里写下来了吗' * 3}？")


def test_terms_are_three_words_of_the_memory_with_nothing_hidden() -> None:
    [question] = of_kind("terms", note("a.md", BODY))
    assert len(question.text.split()) == 3
    assert set(question.text.split()) <= set(BODY.replace(",", "").replace(".", "").split())
    assert (question.hidden, question.hidden_in) == ("", None)


def test_a_name_is_asked_for_by_two_neighbouring_words() -> None:
    [question] = of_kind("name", note("a.md", BODY, name="Tarred rowing hull"))
    assert question.text in ("tarred rowing", "rowing hull")


def test_hiding_takes_words_out_of_text_headings_and_names_however_they_are_broken() -> None:
    boat = note(
        "a.md",
        "# Winter\n  Storage\n\nAs WINTER storage goes.",
        name="Winter storage",
        headings=("Winter storage", "Oil"),
    )
    bare = hide(boat, "Winter storage")
    assert "winter" not in bare.text.casefold()
    assert (bare.name, bare.title, bare.headings, bare.id) == ("", "", ("Oil",), boat.id)
    assert "goes" in bare.text


def test_markup_is_not_asked() -> None:
    assert plain("- **Turn** the `heap`, see [the plan](plan.md)") == "Turn the heap, see the plan"


def test_the_seed_decides() -> None:
    notes = [
        note(f"{i}.md", f"{BODY} {'other things were said ' * 8}", name=f"Tarred rowing hull {i}") for i in range(40)
    ]
    assert made(*notes, most=30, seed=3) == made(*reversed(notes), most=30, seed=3)
    assert made(*notes, most=30, seed=3) != made(*notes, most=30, seed=4)


def test_what_a_kind_cannot_give_is_left_to_those_with_hidden_words() -> None:
    notes = [note(f"{i}.md", f"{BODY} {'other things were said ' * 8}") for i in range(40)]
    counts = {kind: sum(question.kind == kind for question in made(*notes, most=60)) for kind in KINDS}
    # No headings, titles, links or names: terms may have 60 // 6 = 10, and the sentences 40 of 40 sources.
    assert counts == {"heading": 0, "title": 0, "link": 0, "paraphrase": 40, "terms": 10, "name": 0}


def test_only_terms_and_names_are_asked_with_nothing_hidden() -> None:
    assert set(KINDS) - set(HIDDEN_KINDS) == {"terms", "name"}
