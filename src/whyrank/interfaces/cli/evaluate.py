"""`whyrank eval`: measuring search on labelled sets, and the report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ... import __version__
from ...engine.open import make_embedder
from ...errors import ConfigError
from ...evaluation import results as kept
from ...evaluation.abstention import KEPT_SHOWN, KEPT_WANTED, Abstention, Point, abstention
from ...evaluation.abstention import as_data as abstention_as_data
from ...evaluation.compare import Against, Duel, against
from ...evaluation.compare import as_data as compared_as_data
from ...evaluation.datasets import EvaluationSet, load_kinds, split_kinds
from ...evaluation.failures import Story, worst
from ...evaluation.harness import CEILING, SLIPS, Evaluation, evaluate, write_run
from ...evaluation.harness import as_data as evaluation_as_data
from ...evaluation.measures import MAIN, bootstrap, compare
from ...evaluation.report.charts import check_drawable, draw_plot
from ...evaluation.report.page import page_of
from ...evaluation.results import (
    Kept,
    KeptAbstention,
    KeptQuery,
    KeptSet,
    KeptSide,
    KeptStores,
    drawn,
    set_from,
    story_as_data,
)
from ...evaluation.small_stores import DRAWS, SEED, VERDICTS, Draws, OpenStore, better_single, evaluate_small, files_of
from ...evaluation.small_stores import as_data as small_stores_as_data
from ...formatting import counted, which
from ...ranking.recipes import recipe_named
from ..errors import OK, TRAIL_BROKEN
from . import output
from .files import check_data, check_page, check_picture, check_run, tell_written
from .options import BESIDE_THE_STORE
from .search import settings_of, thrown_away

# Settings that change results; none of them is a secret or a path.
_TOLD = {"embedding", "keyword", "language"} | {f"embedder.{of}" for of in ("model", "dimension", "prompt", "weight")}
_TOLD_ROOMS = ("chunk.", "ranking.")


class ReportOptions:
    """Report of an evaluation; checks file names before measuring, so that a wrong one costs no work."""

    def __init__(self, asked: argparse.Namespace) -> None:
        _check(asked)
        self._asked = asked
        self._before = kept.read(Path(asked.against)) if asked.against else None
        self._kept_in = _place_of(asked)
        if asked.html:
            check_page(Path(asked.html))
        if self._kept_in:
            check_data(self._kept_in, "an evaluation that was kept", kept.is_kept)

    def shown_again(self) -> int:
        """Print kept results without measuring."""
        data = kept.read_data(Path(self._asked.kept))
        found = self._show(data)
        return TRAIL_BROKEN.exit_status if any(one.broken for one in found.sets) else OK

    def finish(
        self,
        sets: Sequence[dict[str, Any]] | None = None,
        abstention: Sequence[dict[str, Any]] | None = None,
        not_drawn: Sequence[str] | None = None,
        written: Sequence[str] = (),
    ) -> None:
        """Keep, draw, compare and print the measurements; `written` names files written before."""
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        data = kept.as_data(__version__, made, self._settings(), sets, abstention, not_drawn)
        if self._kept_in is not None:
            kept.write(data, self._kept_in)
        self._show(data, [*written, *([str(self._kept_in)] if self._kept_in else [])])

    def _show(self, data: dict[str, Any], written: Sequence[str] = ()) -> kept.Kept:
        """Draw, compare and print results, new or kept, and name the written files."""
        found = kept.kept_from(data)
        compared = against(found, self._before) if self._before else None
        if self._asked.html:
            Path(self._asked.html).write_text(page_of(found, compared), encoding="utf-8")
            written = [*written, self._asked.html]
        if self._asked.json:
            more = {"against": compared_as_data(compared)} if compared else {}
            output.say_json({**data, **more, "written": list(written)})
        elif self._asked.kept:
            say_kept(found, self._asked.kept)
        if compared and not self._asked.json:
            _say_report(compared, self._asked.against)
        tell_written(written)
        return found

    def _settings(self) -> dict[str, str]:
        """Return the settings that change results: the embedding, and others that are not the default."""
        values = settings_of(self._asked).values
        told = {
            key: str(value.value)
            for key, value in values.items()
            if (key in _TOLD or key.startswith(_TOLD_ROOMS)) and (key == "embedding" or value.origin != "default")
        }
        return told if self._asked.add is None else {**told, "added": self._asked.add}


def is_story_wanted(asked: argparse.Namespace) -> bool:
    """Return whether failure stories of the worst queries are needed; terminal output has none."""
    return bool(asked.html or asked.keep is not None or asked.json)


def _place_of(asked: argparse.Namespace) -> Path | None:
    """Return the path for kept results: the given file, else the default beside the store."""
    if asked.keep != BESIDE_THE_STORE:
        return None if asked.keep is None else Path(asked.keep)
    config = settings_of(asked)
    if not config.store.is_file():
        raise ConfigError(f"there is no store at {config.store} to keep it beside", "name a file, or a --store")
    return config.evaluation


def _check(asked: argparse.Namespace) -> None:
    if asked.kept and asked.sets:
        raise ConfigError("--from shows results that were kept, and measures no SET", "leave one of them out")
    measuring = ("recipe", "run_out", "keep", "plot", "small", "draws", "seed")
    refused = [name for name in measuring if getattr(asked, name) is not None]
    if asked.kept and (refused or asked.abstention is not None):
        option = "--" + (refused[0] if refused else "abstention").replace("_", "-")
        raise ConfigError(f"{option} needs a measurement, and --from makes none", "leave one of them out")
    if not asked.kept and not asked.sets:
        raise ConfigError("no set is named", "give folders of sets, or --from FILE with results that were kept")
    if asked.small is None and (asked.draws is not None or asked.seed is not None):
        option = "--draws" if asked.draws is not None else "--seed"
        raise ConfigError(f"{option} is about small stores", "say of how many files: --small 11,45,130")
    if asked.abstention is not None and asked.small is None and asked.against:
        raise ConfigError("--against compares query by query, which --abstention does not keep", "leave one out")


def _say_report(compared: Against, file: str) -> None:
    other = compared.other
    output.say(output.bold(f"against {file} (whyrank {other.whyrank}, {other.made})"))
    for duel in compared.duels:
        _say_duel(duel)
    for said in compared.left_out:
        output.say(f"  not compared: {said}")
    if not any(duel.pairs for duel in compared.duels):
        output.say("  nothing can be compared: no set with the same queries is in both")


def _say_duel(duel: Duel) -> None:
    if duel.pairs:
        (before, after), found, (low, high) = duel.means, duel.comparison(), duel.interval()
        counts = f"better {found.better}, worse {found.worse}, same {found.same}, p {found.p:.4f}"
        change = f"{before:.4f} → {after:.4f}, {found.difference:+.4f} ({low:+.4f} to {high:+.4f})"
        output.say(f"{duel.set_name}: {counted(len(duel.pairs), 'query', 'queries')}, {duel.after}: {change}; {counts}")
    for said in duel.left_out:
        output.say(f"  {duel.set_name}, not compared: {said}")
    for said in duel.remarks:
        output.say(f"  {duel.set_name}, mind: {said}")


def measure_abstention(asked: argparse.Namespace, report: ReportOptions) -> int:
    """Measure abstention on answerable and unanswerable queries, each set in a temporary store."""
    if asked.run_out:
        raise ConfigError("--run-out and --abstention exclude each other", "leave one of them out")
    if asked.plot and len(asked.sets) > 1:
        raise ConfigError("--plot takes one set", "call `whyrank eval` once for each set")
    if asked.plot:
        check_drawable(Path(asked.plot))
        check_picture(Path(asked.plot))
    names = asked.recipe or ["default"]
    if len(names) > 1:
        raise ConfigError("--abstention takes one recipe", "call `whyrank eval` once for each")
    measured = []
    for folder in asked.sets:
        measured.append(_measure(folder, recipe_named(names[0]).name, asked))
        if not asked.json:
            _say_risk(measured[-1])
    if asked.plot:
        draw_plot(measured[0], Path(asked.plot))
    report.finish(abstention=[abstention_as_data(one) for one in measured], written=[asked.plot] if asked.plot else [])
    return OK


def _measure(folder: str, recipe: str, asked: argparse.Namespace) -> Abstention:
    dataset, others = load_kinds(folder), other_sets(folder, asked.abstention)
    with thrown_away(asked) as engine, output.progress("eval", quiet=asked.json) as tick:
        return abstention(dataset, others, engine, recipe, tick)


def other_sets(folder: str, named: Sequence[str]) -> list[EvaluationSet]:
    """Read the sets whose queries a set cannot answer: all named ones except itself."""
    # Compared by path: two languages of one set may have the same name.
    place = split_kinds(folder)[0].resolve()
    return [load_kinds(other) for other in named if split_kinds(other)[0].resolve() != place]


def _say_risk(measured: Abstention) -> None:
    for side in measured.sides:
        output.say(output.bold(f"{measured.set_name}: {side.name}"))
        answerable = counted(len(side.answerable), "answerable question")
        output.say(f"{answerable}, {len(side.unanswerable)} unanswerable")
        say_curve([side.at_kept(share) for share in KEPT_SHOWN])
        wanted = side.at_kept(KEPT_WANTED)
        output.say(f"at {KEPT_WANTED:.0%} kept: {wanted.rejected:.1%} rejected; AUC {side.auc:.3f}")
        own, other = side.verdicts
        output.say(
            f"the verdict, calibrated without labels: {own.kept:.1%} kept, {1 - other.kept:.1%} rejected; "
            f"called found: {own.found:.1%} and {other.found:.1%}"
        )
        output.say()
    say_uncalibrated(measured.uncalibrated)


def measure_small(asked: argparse.Namespace, report: ReportOptions) -> int:
    """Measure recipes on small temporary stores sampled from sets."""
    for option in ("run_out", "plot"):
        if getattr(asked, option):
            raise ConfigError(f"--{option.replace('_', '-')} and --small exclude each other", "leave one of them out")
    recipes = list(dict.fromkeys(recipe_named(name).name for name in asked.recipe or ["default"]))
    sizes = [Draws(size, asked.draws or DRAWS, SEED if asked.seed is None else asked.seed) for size in asked.small]
    open_store = _store_opener(asked)
    measured, not_drawn = [], []
    for folder in asked.sets:
        dataset = load_kinds(folder)
        others = None if asked.abstention is None else other_sets(folder, asked.abstention)
        files = files_of(dataset, open_store)
        for draws in sizes:
            if draws.files >= len(files):
                said = f"{dataset.name} has {counted(len(files), 'file')}: no store of {draws.files} is drawn out of it"
                not_drawn.append(said)
                output.complain(f"notice: {said}")
                continue
            with output.progress("eval", quiet=asked.json) as tick:
                measured.append(
                    small_stores_as_data(evaluate_small(dataset, files, draws, recipes, open_store, tick, others))
                )
            if not asked.json:
                say_set(set_from(measured[-1]))
    if not measured:
        raise ConfigError("no set is larger than the stores to be drawn", "name a smaller size, or leave --small out")
    report.finish(sets=measured, not_drawn=not_drawn)
    return TRAIL_BROKEN.exit_status if any(one["trails"]["broken"] for one in measured) else OK


def _store_opener(asked: argparse.Namespace) -> OpenStore:
    """Return a function that opens an empty store; all share an embedder with a cache."""
    from ...providers.vector_cache import with_cache

    embedder = make_embedder(settings_of(asked))
    return partial(thrown_away, asked, None if embedder is None else with_cache(embedder))


_ROUNDING = 1e-9  # tolerance between a requested share and a measured one


def say_kept(found: Kept, file: str) -> None:
    """Print a kept evaluation."""
    settings = ", ".join(f"{key} {value}" for key, value in found.settings.items())
    output.say(output.dim(f"{file}: whyrank {found.whyrank}, {found.made}" + (f", {settings}" if settings else "")))
    for one in found.sets:
        say_set(one)
    for measured in found.abstentions:
        _say_abstention(measured)


def say_set(one: KeptSet) -> None:
    """Print the table of a set, the first recipe by query kind, and the result of the trail replay."""
    output.say(output.bold(f"{one.name}: {counted(len(one.queries), 'query', 'queries')}"))
    names = "".join(f"{name:>11}" for name in one.measures)
    output.say(f"{'':20}{names}   95 % of {MAIN}   against {one.recipes[0]}")
    for line in one.lines:
        low, high = bootstrap(one.values(line))
        output.say(f"{line:20}{_means(one, one.queries, line)}   {low:.4f} – {high:.4f}" + _against(one, line))
    for kind, queries in _by_kind(one.queries).items():
        count = counted(len(queries), "query", "queries")
        output.say(f"  {kind or '–':18}{_means(one, queries, one.recipes[0])}   {count}")
    if one.stores is not None:
        _say_stores(one, one.stores)
    if one.broken:
        failing = which(one.broken, "does", "do")
        output.say(f"{one.broken} of {counted(one.trails, 'trail')} {failing} not replay to the exact key")
    else:
        output.say(output.dim(f"{counted(one.trails, 'trail')} replayed, every one to its exact key"))
    for code, told in SLIPS.items():
        if one.notices.get(code):
            output.say(f"{code}: {one.notices[code]:,} {told}")
    output.say()


def _say_stores(one: KeptSet, stores: KeptStores) -> None:
    """Print the sampled stores, each recipe against the better single run, and the verdicts."""
    output.say(" ".join(drawn(stores)))
    for recipe in one.recipes:
        run, found = better_single(one.values, recipe)
        counts = f"better {found.better}, worse {found.worse}, p {found.p:.4f}"
        output.say(f"{recipe} against {run}, the better single run: {found.difference:+.4f} ({counts})")
    width = max(map(len, stores.verdicts), default=0)
    output.say(f"{'verdicts':{width + 2}}{'questions':>11}" + "".join(f"{verdict:>9}" for verdict in VERDICTS))
    for group, shares in stores.verdicts.items():
        output.say(f"  {group:{width}}{shares.questions:>11,}" + "".join(f"{share:>9.1%}" for share in shares[1:]))


def _means(one: KeptSet, queries: Sequence[KeptQuery], line: str) -> str:
    totals = (sum(query.figures[line][name] for query in queries) for name in one.measures)
    return "".join(f"{total / len(queries):>11.4f}" for total in totals)


def _by_kind(queries: Sequence[KeptQuery]) -> dict[str, list[KeptQuery]]:
    """Return the queries by kind; empty if there is one kind alone."""
    groups: dict[str, list[KeptQuery]] = {}
    for query in queries:
        groups.setdefault(query.kind, []).append(query)
    return dict(sorted(groups.items())) if len(groups) > 1 else {}


def _against(one: KeptSet, line: str) -> str:
    if line in (one.recipes[0], CEILING):
        return ""
    found = compare(one.values(one.recipes[0]), one.values(line))
    return f"   {found.difference:+.4f} (better {found.better}, worse {found.worse}, p {found.p:.4f})"


def _say_abstention(measured: KeptAbstention) -> None:
    for side in measured.sides:
        output.say(output.bold(f"{measured.name}: {side.name}"))
        output.say(f"{counted(side.answerable, 'answerable question')}, {side.unanswerable} unanswerable")
        say_curve([_at_kept(side, share) for share in KEPT_SHOWN])
        output.say(f"at {KEPT_WANTED:.0%} kept: {side.rejected_at_95_kept:.1%} rejected; AUC {side.auc:.3f}")
        output.say(f"the verdict, calibrated without labels: {side.kept:.1%} kept, {side.rejected:.1%} rejected")
        output.say()
    say_uncalibrated(measured.uncalibrated)


def _at_kept(side: KeptSide, share: float) -> Point:
    """Return the highest kept threshold that keeps this share of the answerable queries."""
    keeping = [point for point in side.points if point.kept >= share - _ROUNDING]
    return max(keeping, key=lambda point: point.threshold, default=side.points[0])


def say_curve(points: Sequence[Point]) -> None:
    """Print the share kept and rejected at each threshold."""
    output.say(f"{'kept':>8}{'rejected':>10}{'evidence':>10}{'answered':>10}{'risk':>8}")
    for point in points:
        output.say(
            f"{point.kept:>8.1%}{point.rejected:>10.1%}{point.threshold:>10.3f}{point.coverage:>10.1%}{point.risk:>8.1%}"
        )


def say_uncalibrated(names: Sequence[str]) -> None:
    """Print the scopes that were too small to calibrate."""
    if names:
        output.say(output.dim(f"too few memories to calibrate by: {', '.join(names)}"))


def evaluate_sets(asked: argparse.Namespace) -> int:
    """Measure recipes on sets, each in a temporary store; or print kept results."""
    report = ReportOptions(asked)
    if asked.kept:
        return report.shown_again()
    if asked.small is not None:
        return measure_small(asked, report)
    if asked.abstention is not None:
        return measure_abstention(asked, report)
    if asked.plot:
        raise ConfigError("--plot draws the curves of --abstention", "add --abstention")
    recipes = list(dict.fromkeys(recipe_named(name).name for name in asked.recipe or ["default"]))
    if asked.run_out and len(asked.sets) > 1:
        raise ConfigError("--run-out takes one set", "call `whyrank eval` once for each set")
    if asked.run_out:
        check_run(Path(asked.run_out))
    measured = []
    for folder in asked.sets:
        evaluation, stories = _evaluate(folder, recipes, asked)
        measured.append({**evaluation_as_data(evaluation), "worst": [story_as_data(story) for story in stories]})
        if not asked.json:
            say_set(set_from(measured[-1]))
    report.finish(sets=measured, written=[asked.run_out] if asked.run_out else [])
    return TRAIL_BROKEN.exit_status if any(one["trails"]["broken"] for one in measured) else OK


def _evaluate(folder: str, recipes: list[str], asked: argparse.Namespace) -> tuple[Evaluation, list[Story]]:
    dataset = load_kinds(folder)
    with thrown_away(asked) as engine, output.progress("eval", quiet=asked.json) as tick:
        evaluation = evaluate(dataset, engine, recipes, tick)
        stories = worst(evaluation, engine) if is_story_wanted(asked) else []
    if asked.run_out:
        try:
            write_run(Path(asked.run_out), evaluation.lines[recipes[0]], f"whyrank-{recipes[0]}")
        except OSError as error:
            raise ConfigError(f"{asked.run_out} cannot be written: {error.strerror}", "check the folder") from error
    return evaluation, stories
