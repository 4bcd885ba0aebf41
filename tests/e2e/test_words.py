"""Words as users type them, over notes made up for it: translations, slips of the finger, names written otherwise."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.minilm import MODELS
from tests.multilingual import installed as multilingual_files

from .translations import PAIRS, Page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What stands below every English page: the same words, so that the translation is the shorter page.
FOOTER = """

This page is looked after by the whole team. If something here is wrong or out of date, change it and tell the others in
the weekly meeting, so that nobody works with old notes. Screenshots go into the folder beside this page, and every
larger change is discussed first with the people who have to live with it.
"""

# A note, and a question that it answers.
NOTES = (
    ("The staging cluster runs Kubernetes 1.29 on three nodes.", "how many nodes does the staging cluster have"),
    ("A stuck rollout is undone with kubectl rollout undo.", "what do I do about a stuck rollout"),
    ("The nightly database backup is kept for thirty days.", "how long is the nightly backup kept"),
    ("Customer invoices are approved by Sabine in accounting.", "who approves customer invoices"),
    ("The printer on the second floor needs black toner.", "which toner does the printer need"),
    ("Certificates are renewed by certbot every sixty days.", "how often are certificates renewed"),
    ("The payment webhook retries five times before it gives up.", "how often does the payment webhook retry"),
    ("Passwords live in the shared Bitwarden vault.", "where are passwords kept, in which vault"),
    ("The monitoring dashboard is built with Grafana.", "what is the monitoring dashboard built with"),
    ("Holiday requests go to Martin two weeks in advance.", "who gets holiday requests"),
    ("The coffee machine is descaled on the first Monday.", "when is the coffee machine descaled"),
    ("Our mobile application supports Android nine and later.", "which Android does the mobile application support"),
    ("The search index is rebuilt every weekend.", "when is the search index rebuilt"),
    ("Interview candidates write a small exercise in Python.", "what exercise do interview candidates write"),
    ("The warehouse scanner talks to the server over Bluetooth.", "how does the warehouse scanner talk to the server"),
    ("Marketing newsletters are sent on Tuesday morning.", "when are marketing newsletters sent"),
    ("The staircase lights are switched off at midnight.", "when are the staircase lights switched off"),
    ("Travel expenses above two hundred euros need a receipt.", "which travel expenses need a receipt"),
    ("The firewall blocks outgoing traffic on port 25.", "which outgoing traffic does the firewall block"),
    ("Translations of the manual are ordered in Prague.", "where are translations of the manual ordered"),
    ("The conference room projector has only an HDMI socket.", "which socket does the projector have"),
    ("Bicycle parking is behind the northern entrance.", "where is the bicycle parking"),
    ("The recommendation service caches results for an hour.", "how long does the recommendation service cache"),
    ("Support tickets are answered within four hours.", "how fast are support tickets answered"),
    ("The greenhouse sensor measures humidity every minute.", "what does the greenhouse sensor measure"),
    ("Feature flags are removed two releases after launch.", "when are feature flags removed"),
    ("The apprentice programme starts in September.", "when does the apprentice programme start"),
    ("Broken laptops are replaced by the helpdesk in Leipzig.", "who replaces broken laptops"),
    ("The quarterly report is written by Fatima.", "who writes the quarterly report"),
    ("Deployment freezes begin a week before Christmas.", "when do deployment freezes begin"),
)


def written(folder: Path, page: Page, slug: str) -> None:
    place = folder / page.language
    place.mkdir(parents=True, exist_ok=True)
    footer = FOOTER if page.language == "en" else ""
    (place / f"{slug}.md").write_text(page.text + footer, encoding="utf-8")


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp("translated")
    for pair in PAIRS:
        for page in (pair.english, pair.other):
            written(place / "notes", page, pair.slug)
    with whyrank.open(place / "memory.db", workspace=place) as memory:
        memory.ingest(place / "notes")
        yield memory


def first_path(memory: whyrank.Engine, query: str, **asked: object) -> str:
    [hit] = memory.search(query, limit=1, **asked)  # type: ignore[arg-type]
    assert hit.memory.source is not None
    return hit.memory.source.path


def raw_scores(results: whyrank.Results) -> dict[str, list[float | None]]:
    """Return what each signal says of each file."""
    return {
        hit.memory.source.path: [part.raw for step in hit.trail for part in step.parts]
        for hit in results
        if hit.memory.source is not None
    }


@pytest.mark.parametrize("which", ["english", "other"])
def test_of_a_page_and_its_translation_the_one_in_the_language_of_the_question_is_first(
    translated: whyrank.Engine, which: str
) -> None:
    pages = [(pair.slug, getattr(pair, which)) for pair in PAIRS]
    right = [first_path(translated, page.question) == f"notes/{page.language}/{slug}.md" for slug, page in pages]
    assert len(right) == 20
    assert sum(right) >= 19


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    """Open the pages and their translations with a model added that knows all their languages."""
    multilingual_files()
    place = tmp_path_factory.mktemp("multilingual")
    for pair in PAIRS:
        for page in (pair.english, pair.other):
            written(place / "notes", page, pair.slug)
    with whyrank.open(place / "memory.db", workspace=place, **{"model.folder": str(MODELS)}) as memory:  # type: ignore[arg-type]
        memory.ingest(place / "notes")
        memory.models.add("multilingual")
        yield memory


@pytest.mark.parametrize("which", ["english", "other"])
def test_with_a_model_added_the_language_of_the_question_is_first_all_the_same(
    multilingual: whyrank.Engine, which: str
) -> None:
    pages = [(pair.slug, getattr(pair, which)) for pair in PAIRS]
    right = [first_path(multilingual, page.question) == f"notes/{page.language}/{slug}.md" for slug, page in pages]
    assert sum(right) >= 19


def test_with_a_model_added_a_question_finds_the_page_in_another_language(multilingual: whyrank.Engine) -> None:
    found = [
        first_path(multilingual, pair.english.question, language=pair.other.language)
        == f"notes/{pair.other.language}/{pair.slug}.md"
        for pair in PAIRS
    ]
    assert sum(found) >= 19


def test_what_another_language_takes_stands_in_the_trail(translated: whyrank.Engine) -> None:
    hits = translated.search(PAIRS[0].english.question, limit=40)
    taken = {
        hit.memory.source.path: hit
        for hit in hits
        if hit.memory.source and any(step.stage == "language" for step in hit.trail)
    }
    assert not any(path.startswith("notes/en/") for path in taken)
    assert len(taken) == 19  # of twenty; in one of them too few words show a language
    hit = taken["notes/de/postgres-backup.md"]
    [fusion, language] = [step for step in hit.trail if step.op in ("set", "scale")]
    assert (language.value, language.why) == (0.8, "in de, the question in en")
    assert hit.score == fusion.value * 0.8


def test_a_language_filters_before_the_cut_and_changes_no_score(translated: whyrank.Engine) -> None:
    question = PAIRS[0].english.question
    german = raw_scores(translated.search(question, limit=100, language="de"))
    everything = raw_scores(translated.search(question, limit=100))
    assert len(german) == 11  # of twelve; in one too few words show a language
    assert {path.split("/")[1] for path in german} == {"de"}
    assert german == {path: everything[path] for path in german}
    assert first_path(translated, question, language="fr").startswith("notes/fr/")


def test_a_memory_in_another_language_says_so_when_asked_why(translated: whyrank.Engine) -> None:
    answer = translated.why(PAIRS[0].english.question, "notes/de/vpn.md", language="en")
    assert answer.outcome == "filtered"
    assert answer.summary == "it cannot answer: not in the language en"


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp("noted")
    with whyrank.open(place / "memory.db", workspace=place) as memory:
        for note, _ in NOTES:
            memory.add(note)
        yield memory


def with_a_letter_dropped(question: str, choice: random.Random) -> str:
    """Return a question whose longest word lacks one letter behind its first."""
    longest = max(question.split(), key=len)
    place = choice.randrange(1, len(longest))
    return question.replace(longest, longest[:place] + longest[place + 1 :])


def test_questions_are_found_and_stay_found_with_a_letter_dropped(noted: whyrank.Engine) -> None:
    choice = random.Random(26)
    assert len(NOTES) == 30
    for note, question in NOTES:
        slip = with_a_letter_dropped(question, choice)
        for asked in (question, slip):
            results = noted.search(asked, limit=1)
            assert results[0].memory.text == note, asked
            assert results.verdict != "nothing", asked


@pytest.mark.parametrize("seed", range(5))
def test_without_an_embedder_they_stay_found_too(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as memory:
        for note, _ in NOTES:
            memory.add(note)
        kept = [
            memory.search(with_a_letter_dropped(question, choice), limit=1)[0].memory.text == note
            for note, question in NOTES
        ]
    assert sum(kept) >= 29
