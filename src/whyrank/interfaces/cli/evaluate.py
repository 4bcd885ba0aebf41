"""`whyrank eval`: measuring search on labelled sets, and the report."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...engine.open import make_embedder
from ...errors import ConfigError
from ...evaluation import results as kept
from ...evaluation.abstention import KEPT_SHOWN, KEPT_WANTED, Abstention, Point, abstention
from ...evaluation.abstention import as_data as abstention_as_data
from ...evaluation.compare import Against, Duel, against
from ...evaluation.compare import as_data as compared_as_data
from ...evaluation.datasets import EvaluationSet, load_kinds, split_kinds
from ...evaluation.harness import CEILING, SLIPS, Evaluation, evaluate, write_run
from ...evaluation.harness import as_data as evaluation_as_data
from ...evaluation.measures import MAIN, bootstrap, compare
from ...evaluation.report.html import check_drawable, draw_plot
from ...evaluation.report.page import page_of
from ...evaluation.results import (
    Kept,
    KeptAbstention,
    KeptQuery,
    KeptSet,
    KeptSide,
    KeptStores,
    Story,
    drawn,
    set_from,
    story_as_data,
    worst,
)
from ...evaluation.small_stores import DRAWS, SEED, VERDICTS, Draws, OpenStore, better_single, evaluate_small, files_of
from ...evaluation.small_stores import as_data as small_stores_as_data
from ...formatting import counted, on_one_line, which
from ...ranking.recipes import recipe_named
from ...search.confidence import MIN_MEMORIES, Calibration
from .. import serialize
from ..errors import OK, PINS_LOST, TRAIL_BROKEN
from ..serialize import calibration
from . import output
from .files import check_data, check_page, check_picture, check_run, tell_written
from .main import BESIDE_THE_STORE
from .output import settings_of
from .search import name_of, open_existing, suggesting, thrown_away

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from ...config.load import Config
    from ...engine.engine import Engine
    from ...evaluation.pins import Pin, PinCheck
    from ...evaluation.tuning import Fit, HeldOut, Tuning

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
            check_data(self._kept_in, "a kept evaluation", kept.is_kept)

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


def _place_of(asked: argparse.Namespace) -> Path | None:
    """Return the path for kept results: the given file, else the default beside the store."""
    if asked.keep != BESIDE_THE_STORE:
        return None if asked.keep is None else Path(asked.keep)
    config = settings_of(asked)
    if not config.has_store:
        raise ConfigError(f"there is no store at {config.store} to keep it beside", "name a file, or a --store")
    return config.evaluation


def _check(asked: argparse.Namespace) -> None:
    if asked.kept and asked.sets:
        raise ConfigError("--from shows kept results and measures no SET", "leave one of them out")
    measuring = ("recipe", "run_out", "keep", "plot", "small", "draws", "seed")
    refused = [name for name in measuring if getattr(asked, name) is not None]
    if asked.kept and (refused or asked.abstention is not None):
        option = "--" + (refused[0] if refused else "abstention").replace("_", "-")
        raise ConfigError(f"{option} needs a measurement, and --from makes none", "leave one of them out")
    if not asked.kept and not asked.sets:
        raise ConfigError("no set is named", "give folders of sets, or --from FILE with kept results")
    if asked.small is None and (asked.draws is not None or asked.seed is not None):
        option = "--draws" if asked.draws is not None else "--seed"
        raise ConfigError(f"{option} needs --small", "give the number of files: --small 11,45,130")
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
        raise ConfigError("--plot takes one set", "run `whyrank eval` once for each set")
    if asked.plot:
        check_drawable(Path(asked.plot))
        check_picture(Path(asked.plot))
    names = asked.recipe or ["default"]
    if len(names) > 1:
        raise ConfigError("--abstention takes one recipe", "run `whyrank eval` once for each")
    measured = []
    for folder in asked.sets:
        dataset, others = load_kinds(folder), other_sets(folder, asked.abstention)
        with thrown_away(asked) as engine, output.progress("eval", quiet=asked.json) as tick:
            measured.append(abstention(dataset, others, engine, recipe_named(names[0]).name, tick))
        if not asked.json:
            _say_risk(measured[-1])
    if asked.plot:
        draw_plot(measured[0], Path(asked.plot))
    report.finish(abstention=[abstention_as_data(one) for one in measured], written=[asked.plot] if asked.plot else [])
    return OK


def other_sets(folder: str, named: Sequence[str]) -> list[EvaluationSet]:
    """Read the sets whose queries a set cannot answer: all named ones except itself."""
    # Compared by path: two languages of one set may have the same name.
    place = split_kinds(folder)[0].resolve()
    return [load_kinds(other) for other in named if split_kinds(other)[0].resolve() != place]


def _say_risk(measured: Abstention) -> None:
    for side in measured.sides:
        own, other = side.verdicts
        wanted, asked = side.at_kept(KEPT_WANTED), (len(side.answerable), len(side.unanswerable))
        points = [side.at_kept(share) for share in KEPT_SHOWN]
        _say_side(f"{measured.set_name}: {side.name}", asked, points, wanted.rejected, side.auc)
        output.say(
            f"the verdict, calibrated without labels: {own.kept:.1%} kept, {1 - other.kept:.1%} rejected; "
            f"called found: {own.found:.1%} and {other.found:.1%}"
        )
        output.say()
    say_uncalibrated(measured.uncalibrated)


def _say_side(name: str, asked: tuple[int, int], points: Sequence[Point], rejected: float, auc: float) -> None:
    """Print the share kept and rejected at each threshold, of answerable and unanswerable questions."""
    output.say(output.bold(name))
    output.say(f"{counted(asked[0], 'answerable question')}, {asked[1]} unanswerable")
    output.say(f"{'kept':>8}{'rejected':>10}{'evidence':>10}{'answered':>10}{'risk':>8}")
    for point in points:
        shares = f"{point.threshold:>10.3f}{point.coverage:>10.1%}{point.risk:>8.1%}"
        output.say(f"{point.kept:>8.1%}{point.rejected:>10.1%}{shares}")
    output.say(f"at {KEPT_WANTED:.0%} kept: {rejected:.1%} rejected; AUC {auc:.3f}")


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
                said = f"{dataset.name} has {counted(len(files), 'file')}: too few to draw stores of {draws.files}"
                not_drawn.append(said)
                output.complain(f"notice: {said}")
                continue
            with output.progress("eval", quiet=asked.json) as tick:
                found = evaluate_small(dataset, files, draws, recipes, open_store, tick, others)
            measured.append(small_stores_as_data(found))
            if not asked.json:
                say_set(set_from(measured[-1]))
    if not measured:
        raise ConfigError("no set is larger than the stores to draw", "give a smaller size, or omit --small")
    report.finish(sets=measured, not_drawn=not_drawn)
    return TRAIL_BROKEN.exit_status if any(one["trails"]["broken"] for one in measured) else OK


def _store_opener(asked: argparse.Namespace) -> OpenStore:
    """Return a function that opens an empty store; all share an embedder with a cache."""
    from ...providers.registry import with_cache

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
        points = [_at_kept(side, share) for share in KEPT_SHOWN]
        asked = side.answerable, side.unanswerable
        _say_side(f"{measured.name}: {side.name}", asked, points, side.rejected_at_95_kept, side.auc)
        output.say(f"the verdict, calibrated without labels: {side.kept:.1%} kept, {side.rejected:.1%} rejected")
        output.say()
    say_uncalibrated(measured.uncalibrated)


def _at_kept(side: KeptSide, share: float) -> Point:
    """Return the highest kept threshold that keeps this share of the answerable queries."""
    keeping = [point for point in side.points if point.kept >= share - _ROUNDING]
    return max(keeping, key=lambda point: point.threshold, default=side.points[0])


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
        raise ConfigError("--run-out takes one set", "run `whyrank eval` once for each set")
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
        # The output of a terminal has no stories of the worst queries.
        stories = worst(evaluation, engine) if asked.html or asked.keep is not None or asked.json else []
    if asked.run_out:
        try:
            write_run(Path(asked.run_out), evaluation.lines[recipes[0]], f"whyrank-{recipes[0]}")
        except OSError as error:
            raise ConfigError(f"{asked.run_out} cannot be written: {error.strerror}", "check the folder") from error
    return evaluation, stories


_HOW = (
    "Figures are nDCG@10 on held-out questions: each fold is judged by the setting the others chose. Only the "
    "kinds called witnesses can support a setting; every kind can speak against it."
)


def tune(asked: argparse.Namespace) -> int:
    """Try other settings on queries made of the memories; write the better ones only with --apply."""
    if asked.plot:
        check_picture(Path(asked.plot))
    with open_existing(asked) as engine, output.progress("tune", quiet=asked.json) as tick:
        options = serialize.fields(asked, "scope recipe queries seed apply")
        tuning = engine.tune(**options, progress=tick)
    if asked.plot:
        _draw(tuning, Path(asked.plot))
    written = tuning.changes if asked.apply else {}
    if asked.json:
        output.say_json({**serialize.tuning(tuning), "applied": bool(written)})
    else:
        _say_tuning(tuning, applied=bool(written))
    _warn_of_stronger(settings_of(asked), written)
    return OK


def _draw(tuning: Tuning, file: Path) -> None:
    from ...evaluation.report.html import draw_curves

    try:
        file.write_text(draw_curves(tuning), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder of --plot") from error


def _say_tuning(tuning: Tuning, *, applied: bool) -> None:
    output.say(f"present: {tuning.present}; {counted(len(tuning.trials), 'question')}, seed {tuning.seed}")
    for fit in tuning.fits:
        _say_fit(fit)
    if any(fit.witnesses for fit in tuning.fits):
        output.say(output.dim(_HOW))
    if not tuning.changes:
        output.say(f"Nothing to change: {tuning.reason}.")
    for key, value in tuning.changes.items():
        shown = output.bold(f"{key} = {'unset' if value is None else f'{value:g}'}")
        output.say(shown + (" (written)" if applied else ""))
        if not applied:
            output.say(output.dim("nothing was written; --apply writes it into whyrank.toml of the workspace"))


def _say_fit(fit: Fit) -> None:
    output.say()
    output.say(f"{output.bold(f'ranking.{fit.setting}')}: {fit.decision}")
    if fit.witnesses is not None:
        value = getattr(fit.best, fit.setting)
        agreeing = sum(choice == fit.best for choice in fit.folds)
        output.say(
            f"  best: {'unset' if value is None else f'{value:g}'}, chosen by {agreeing} of {len(fit.folds)} folds"
        )
        output.say(f"  {'':12}{'questions':>10}{'present':>10}{'chosen':>10}{'difference':>12}   95 %{'p':>21}")
        for judged in (fit.witnesses, *fit.kinds):
            output.say("  " + _line(judged))
    output.say(f"  {fit.reason}")


def _line(judged: HeldOut) -> str:
    low, high = judged.interval
    return (
        f"{judged.kind or 'witnesses':12}{judged.queries:>10}{judged.present:>10.4f}{judged.chosen:>10.4f}"
        f"{judged.compared.difference:>+12.4f}   {low:+.4f} to {high:+.4f}   {judged.compared.p:.3f}"
    )


def _warn_of_stronger(config: Config, written: dict[str, float | None]) -> None:
    """Warn if a written setting has no effect, because a source of higher precedence overrides it."""
    for key, value in written.items():
        held, origin = config.values[key]
        if held != value:
            shown = "unset" if held is None else f"{held:g}"
            output.complain(
                f"notice: {key} is still {shown}: it comes from {origin}, which overrides the workspace file"
            )


def calibrate(asked: argparse.Namespace) -> int:
    """Measure and print the thresholds of the given scopes."""
    if asked.every_scope and asked.scope:
        raise ConfigError("--every-scope and --scope exclude each other", "leave one of them out")
    made: list[Calibration] = []
    with open_existing(asked) as engine, output.progress("calibrate", quiet=asked.json) as tick:
        if asked.every_scope:
            made.extend(_each(engine, _every_scope(engine), tick))
        else:
            made.append(engine.calibrate(scope=asked.scope, progress=tick))
    if asked.json:
        output.say_json({"calibrations": [calibration(one) for one in made]})
        return OK
    for one in made:
        _say_calibration(one)
    return OK


def _each(engine: Engine, scopes: Sequence[str | None], tick: Callable[[int, int, str], None]) -> Iterator[Calibration]:
    """Yield the calibrations of all scopes; one that fails is reported and skipped."""
    for scope in scopes:
        try:
            yield engine.calibrate(scope=scope, progress=tick)
        except ConfigError as error:
            output.complain(f"notice: {scope or 'global'}: {error.message}")


def _every_scope(engine: Engine) -> Sequence[str | None]:
    """Return the scopes that see enough memories for a calibration, global ones included."""
    counts = engine.status().scopes
    shared = counts.get("global", 0)
    seen = {scope: count + (shared if scope != "global" else 0) for scope, count in counts.items()}
    enough = [scope for scope, count in seen.items() if count >= MIN_MEMORIES]
    if not enough:
        hint = "until then the default thresholds are used; ingest or add more"
        raise ConfigError(f"no scope has {MIN_MEMORIES} memories", hint)
    return [None if scope == "global" else scope for scope in enough]


def _say_calibration(made: Calibration) -> None:
    held = f"{counted(made.memories, 'memory', 'memories')}, {', '.join(made.languages)}"
    output.say(f"{output.bold(' + '.join(made.scopes))}: {held}")
    output.say(f"  asked: {counted(made.own, 'question')} on the store, {made.foreign} off topic")
    bars = {"evidence": made.both, "words": made.words, "cosine": made.cosine, "coverage": made.coverage}
    for name, bar in bars.items():
        if bar is not None:
            output.say(
                f"  {name + ':':10} weak from {bar.weak:.3f}, found from {bar.found:.3f}"
                f"   (keeps {bar.kept:.0%} of those on the store, rejects {bar.rejected:.0%} of those off topic)"
            )


def pin(asked: argparse.Namespace) -> int:
    """Record, list or remove pins."""
    _check_typed(asked)
    with open_existing(asked) as engine:
        wanted = asked.id and name_of(engine, asked.id, asked.scope)
        if asked.list:
            pins = engine.pins.list(scope=asked.scope, all_scopes=asked.all_scopes)
        elif asked.remove:
            pins = engine.pins.remove(asked.query, wanted, scope=asked.scope, all_scopes=asked.all_scopes)
        else:
            with suggesting(engine, asked, wanted):
                pins = [
                    engine.pins.add(asked.query, wanted, scope=asked.scope, within=asked.within, recipe=asked.recipe)
                ]
        file = engine.config.pins
    if asked.json:
        output.say_json({"pins": [serialize.pin(held) for held in pins], "file": str(file)})
        return OK
    done = "" if asked.list else "removed: " if asked.remove else "pinned: "
    for held in pins:
        output.say(done + _told(held))
    output.say(output.dim(f"{counted(len(pins), 'pin')} in {file}" if asked.list else f"written to {file}"))
    return OK


def _check_typed(asked: argparse.Namespace) -> None:
    if asked.list and asked.query is not None:
        raise ConfigError("--list takes no query", "`whyrank pin --list` prints all pins")
    if not asked.list and asked.query is None:
        hint = "`whyrank pin QUERY ID` records a pin, `whyrank pin --list` prints them"
        raise ConfigError("no query was given", hint)
    if not asked.list and not asked.remove and asked.id is None:
        raise ConfigError("no memory was named", "give its id or its path after the query; `whyrank search` shows both")


def _told(held: Pin) -> str:
    whose = f"  {output.dim(', '.join(held.scopes))}" if held.scopes else ""
    return f"{held.query!r} → {on_one_line(held.place)}  {output.dim(f'within {held.within}')}{whose}"


def check(asked: argparse.Namespace) -> int:
    """Run every pinned query again."""
    with open_existing(asked) as engine, output.progress("check", quiet=asked.json) as tick:
        done = engine.pins.check(scope=asked.scope, all_scopes=asked.all_scopes, recipe=asked.recipe, progress=tick)
    if asked.json:
        output.say_json(serialize.checkup(done))
    else:
        _say_check(done)
    return PINS_LOST.exit_status if done.count("lost") else OK


def _say_check(done: PinCheck) -> None:
    for one in done.checked:
        if one.status == "kept":
            continue
        place = f", at {output.place(one.memory)}" if one.memory is not None else ""
        output.say(f"{output.bold(one.status)}  {_told(one.pin)}")
        output.say(f"       {one.why}{place}" + (f", result {one.rank}" if one.status == "moved" else ""))
    output.say(str(done))
