"""The documentation is executed, and nothing a user meets is missing from it."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import whyrank
from benchmarks import comparison
from benchmarks.speed.page import DATA, PAGE, page_of
from benchmarks.speed.report import as_markdown as benchmark_page
from benchmarks.speed.results import read
from tests import postgres
from tests.damage import told as tell
from tests.minilm import MODELS, installed
from whyrank import errors
from whyrank.config.load import WORKSPACE_FILE, StoreUrl, load
from whyrank.config.settings import SETTINGS
from whyrank.engine.engine import COLLABORATORS
from whyrank.evaluation.report.page import page_of as evaluation_page
from whyrank.evaluation.results import read as evaluation_results
from whyrank.interfaces.cli.main import build, main
from whyrank.interfaces.errors import FAILURES, PARTLY_READ, PINS_LOST, TRAIL_BROKEN, WAITING
from whyrank.providers.names import PROMPTS
from whyrank.ranking.recipes import RECIPES
from whyrank.storage.postgres.pool import Address
from whyrank.storage.sqlite.check import CODES
from whyrank_conformance.report import as_markdown as conformance_page
from whyrank_conformance.session import kept

ROOT = Path(__file__).parent.parent.parent
REFERENCE = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


# Members that the engine and its collaborators have for each other.
INTERNAL = {"board", "check_derived", "record_damage"}


def python_in(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


def run(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<documentation>", "exec"), {"__name__": "documentation"})
    return out.getvalue()


def test_the_readme_code_runs_and_finds_tea(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    [code] = python_in(ROOT / "README.md")
    told = run(code)
    assert told.splitlines()[0].endswith("'Robin prefers tea'")
    assert "fusion:" in told
    assert "it cannot answer: replaced by" in told


@pytest.mark.filterwarnings("ignore")  # what LanceDB warns of is not ours to mend
def test_the_worked_example_fuses_lancedb_and_fts5_as_it_says() -> None:
    page = ROOT / "docs/how-to/fuse-lists.md"
    code, further = python_in(page)
    first, *explanation = run(code).splitlines()
    expected, said = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    assert f"{first}\n" == expected
    assert explanation[0] == "= fusion: 1.0000"
    assert run(further) == said


def test_the_page_on_advanced_queries_says_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs/how-to/advanced-queries.md"
    monkeypatch.chdir(tmp_path)
    [code] = python_in(page)
    expected = re.search(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    assert expected is not None
    assert run(code) == expected.group(1)


def test_the_page_on_upgrading_says_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs/how-to/upgrade.md"
    told = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    [code] = python_in(page)
    assert f"```text\n{run(code)}```" in told
    shutil.copy(ROOT / "tests/golden/readers/reader3.db", tmp_path / "old.db")
    for repair in ([], ["--repair"]):
        main(["doctor", *repair, "--store", "old.db"])
        command = " ".join(["whyrank doctor", *repair])
        assert f"$ {command}\n{capsys.readouterr().out}" in told


def test_the_page_on_damage_runs_and_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs/how-to/damaged-store.md"
    monkeypatch.chdir(tmp_path)
    told = page.read_text(encoding="utf-8")
    [code] = python_in(page)
    assert f"```text\n{run(code)}```" in told
    tell(tmp_path / "memory.db", "UPDATE records SET records = zeroblob(length(records))")
    for repair in ([], ["--repair"]):
        main(["doctor", *repair, "--store", "memory.db"])
        assert f"$ {' '.join(['whyrank doctor', *repair])}\n{capsys.readouterr().out}" in told
    rows = re.findall(r"^\| (`[a-z`, ]+) \|", told, flags=re.M)
    assert set(re.findall(r"`([a-z]+)`", " ".join(rows))) == CODES


def test_the_roles_of_the_page_on_postgresql_suffice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/how-to/postgresql.md").read_text(encoding="utf-8")
    first, schema, reader = re.findall(r"```sql\n(.*?)```", page, flags=re.S)
    server = postgres.server()
    inside, store = server.address_of(postgres.USER, "notes"), server.address_of("notes", "notes")
    for statement in filter(None, map(str.strip, first.split(";"))):
        postgres.ask(server.address, statement)
    monkeypatch.chdir(tmp_path)
    try:
        postgres.ask(inside, schema)
        for verb in (["add", "Suzy drinks green tea"], ["add", "Suzy drinks coffee"], ["export", "--out", "all.jsonl"],
                     ["forget", "--whole-scope", "global", "--yes", "--purge"], ["import", "whyrank", "all.jsonl"],
                     ["doctor", "--repair"]):  # fmt: skip
            assert main([*verb, "--store", store]) == 0, capsys.readouterr().err
        postgres.ask(inside, reader)
        reading = server.address_of("notes_reader", "notes")
        assert main(["search", "what does Suzy drink?", "--store", reading]) == 0
        assert "green tea" in capsys.readouterr().out
        assert main(["add", "Suzy drinks water", "--store", reading]) == 8
    finally:
        postgres.ask(server.address, "DROP DATABASE notes WITH (FORCE)")
        postgres.ask(server.address, "DROP ROLE notes")
        postgres.ask(server.address, "DROP ROLE notes_reader")


def test_the_page_on_nothing_relevant_says_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs/how-to/nothing-relevant.md"
    monkeypatch.chdir(tmp_path)
    [code] = python_in(page)
    expected = re.search(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    assert expected is not None
    assert run(code) == expected.group(1)


def test_the_page_on_stores_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    contract, engine = python_in(ROOT / "docs/how-to/write-a-store.md")
    run(contract)
    assert run(engine) == "Robin prefers tea\n"


@pytest.mark.parametrize(
    "name",
    [
        "why-not-that-one",
        "rerank",
        "come-from-another-system",
        "providers",
        "extract-facts",
        "facts",
        "conformance",
        "back-up",
        "copy-a-store",
        "worker",
        "recall",
    ],
)
def test_the_pages_with_an_example_say_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    page = ROOT / f"docs/how-to/{name}.md"
    [code] = python_in(page)
    expected = re.search(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    assert expected is not None
    assert run(code) == expected.group(1)


def test_the_settings_of_another_system_are_what_the_page_makes_of_them(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/come-from-another-system.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```toml\n(.*?)```", page, flags=re.S)
    (tmp_path / WORKSPACE_FILE).write_text(block, encoding="utf-8")
    config = load(workspace=tmp_path, environment={"HOME": str(tmp_path)})
    assert (config["recipe"], config["limit"], config["ranking.pool"]) == ("openclaw", 10, 40)
    assert (config["ranking.recency_weight"], config["ranking.recency_half_life_days"]) == (1.0, 14)
    changed = [key for key, value in config.values.items() if value.origin != "default"]
    assert all(f"`{key}" in page for key in changed if key != "ranking.recency_half_life_days"), changed


def test_the_page_on_other_systems_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/how-to/come-from-another-system.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    shutil.copytree(ROOT / "examples/memory", "memory")
    [lines] = re.findall(r"```json\n(.*?)```", page, flags=re.S)
    Path("lines.jsonl").write_text(lines, encoding="utf-8")
    memories = [{"memory": "Suzy prefers tea", "user_id": "42", "mood": 1}, {"id": "b7", "memory": 7}]
    Path("export.json").write_text(json.dumps(memories), encoding="utf-8")
    Path("questions.txt").write_text("what does Suzy drink in the morning?\n", encoding="utf-8")
    assert main(["import", "jsonl", "lines.jsonl", "--store", "lines.db"]) == 0
    assert capsys.readouterr().out == "3 memories imported, 0 unchanged\n"
    assert main(["ingest", "memory"]) == 0
    capsys.readouterr()
    shown = re.findall(r"```console\n\$ whyrank (.*?)\n(.*?)```", page, flags=re.S)
    assert len(shown) == 2
    for command, printed in shown:
        main(command.split())
        told = capsys.readouterr()
        assert told.out + told.err == printed


def test_the_page_on_models_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed()
    monkeypatch.setenv("WHYRANK_MODEL_FOLDER", str(MODELS))
    monkeypatch.chdir(tmp_path)
    [code] = python_in(ROOT / "docs/how-to/models.md")
    assert run(code) == "The tin behind the flour holds green leaves for hot water\n"


def test_the_page_on_pins_runs_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/how-to/pin-answers.md"
    [code] = python_in(page)
    said = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)[-1]
    assert run(code) == said


def test_the_page_on_agents_says_what_they_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/how-to/mcp.md"
    [code] = python_in(page)
    [said] = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    assert run(code) == said


def test_the_page_of_the_conformance_suite_is_made_of_the_reports_beside_it() -> None:
    page = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
    assert page == conformance_page(kept(ROOT / "docs/conformance"), "conformance/")


def test_the_page_on_http_says_what_a_program_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/how-to/http.md"
    [code] = python_in(page)
    [said] = re.findall(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    assert run(code) == said


def test_every_verb_and_option_is_in_the_reference() -> None:
    verbs = next(action for action in build()._actions if action.dest == "verb").choices
    assert verbs
    for verb, parser in dict(verbs).items():
        assert f"`whyrank {verb}" in REFERENCE, verb
        for action in parser._actions:
            for option in action.option_strings:
                if option.startswith("--") and option != "--help":
                    assert option in REFERENCE, f"{verb} {option}"


def test_every_public_member_of_the_engine_is_in_the_reference(tmp_path: Path) -> None:
    python = REFERENCE[REFERENCE.index("## Python") :]
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        for holder in (engine, *(getattr(engine, name) for name in COLLABORATORS)):
            members = {name for name in dir(holder) if not name.startswith("_")} - INTERNAL
            missing = [name for name in members if not re.search(rf"`{name}\b", python)]
            assert not missing, (type(holder).__name__, sorted(missing))


@pytest.mark.parametrize("key", list(SETTINGS))
def test_every_setting_is_in_the_reference_with_its_default(key: str) -> None:
    default = SETTINGS[key].default
    shown = "unset" if default is None else f"`{default}`"
    assert re.search(rf"^\| `{re.escape(key)}` \| {re.escape(shown)} \|", REFERENCE, flags=re.M)


@pytest.mark.parametrize("name", list(PROMPTS))
def test_every_prompt_is_in_the_reference_and_in_its_table(name: str) -> None:
    page = (ROOT / "docs/how-to/providers.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{name}` \|(.*)$", page, flags=re.M)
    assert row is not None
    assert PROMPTS[name].query.replace("|", r"\|") in row.group(1)
    assert f"`{name}`" in REFERENCE


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_recipe_is_in_the_reference(recipe: str) -> None:
    assert f"`{recipe}`" in REFERENCE


def test_every_error_is_in_the_reference() -> None:
    names = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(names) > 10
    for name in names:
        assert f"`{name}`" in REFERENCE or f"whyrank.{name}`" in REFERENCE, name
        assert name in (errors.__doc__ or ""), name


def test_every_exit_status_is_in_the_reference() -> None:
    for failure in (
        *(failure for _, failure in FAILURES),
        PARTLY_READ,
        PINS_LOST,
        TRAIL_BROKEN,
        WAITING,
    ):
        assert f"| {failure.exit_status} | `{failure.code}` |" in REFERENCE


def test_every_notice_is_in_the_reference() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    codes = {code for source in sources for code in re.findall(r'Notice\(\s*"([a-z-]+)"', source)}
    assert len(codes) > 8
    for code in sorted(codes):
        assert f"`{code}`" in REFERENCE, code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_every_module_is_named_on_the_page_of_the_architecture() -> None:
    page = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "src/whyrank"
    for module in package.rglob("*.py"):
        folder = module.parent.relative_to(package)
        if folder.parts[:2] not in {("interfaces", "cli"), ("interfaces", "http"), ("interfaces", "mcp")}:
            named = module.parent.name if module.stem == "__init__" or len(folder.parts) > 3 else module.stem
            # Folders that the page names as a whole.
            inner = folder.name if folder.name in {"onnx", "report", "extraction"} else named
            assert re.search(rf"\b{inner}\b", page), module
    assert len(page.splitlines()) <= 150


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in contents


def test_every_how_to_is_on_the_first_page() -> None:
    docs = ROOT / "docs"
    first = (docs / "index.md").read_text(encoding="utf-8")
    pages = {page.relative_to(docs).as_posix() for page in (*docs.glob("how-to/*.md"), *docs.glob("*.md"))}
    assert {page for page in pages if f"]({page})" not in first} == {"index.md"}


def test_documentation_names_no_place_of_one_machine() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.$])/(home|root|work|tmp|Users)/", page.read_text(encoding="utf-8")), page


@pytest.mark.parametrize("folder", ["docs/benchmarks", "docs/benchmarks/million", "docs/benchmarks/scopes"])
def test_the_benchmark_pages_are_what_the_kept_results_make(folder: str) -> None:
    contest = read(ROOT / folder / DATA)
    assert (ROOT / folder / PAGE).read_text(encoding="utf-8") == page_of(contest)
    assert (ROOT / folder / "index.md").read_text(encoding="utf-8") == benchmark_page(contest, ["hybrid", "keyword"])


def test_the_sample_page_is_what_the_kept_results_make() -> None:
    page = (ROOT / "docs/sample/eval.html").read_text(encoding="utf-8")
    assert page == evaluation_page(evaluation_results(ROOT / "docs/sample/eval.json"))


def test_the_tables_of_the_comparison_are_what_the_kept_figures_make() -> None:
    page = comparison.PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- end -->") == len(comparison.TABLES)
    assert comparison.renewed(page) == page


def test_the_files_of_the_page_on_deployment_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
    [compose] = re.findall(r"```yaml\n(.*?)```", page, flags=re.S)
    services = yaml.safe_load(compose)["services"]
    assert set(services) == {"primary", "replica", "node", "worker"}
    *units, variables = re.findall(r"```ini\n(.*?)```", page, flags=re.S)
    commands = [services[name]["command"] for name in ("node", "worker")]
    commands += [
        line.partition("=")[2] for unit in units for line in unit.splitlines() if line.startswith("ExecStart=")
    ]
    for command in commands:
        assert build().parse_args(command.split()[1:])
    stated = dict(line.partition("=")[::2] for line in variables.splitlines())
    for given in (services["node"]["environment"], services["worker"]["environment"], stated):
        config = load(workspace=tmp_path, environment={name: given[name] for name in given if name != "PGPASSWORD"})
        assert isinstance(config.store, StoreUrl)
        address = Address.parse(config.store.url)
        assert bool(address.replicas) == (given is not services["worker"]["environment"])
        assert config["embedder.when"] == ("worker" if address.replicas else "write")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_the_units_of_the_page_on_deployment_are_what_systemd_reads(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
    units = re.findall(r"`/etc/systemd/system/([\w.-]+)`.*?```ini\n(.*?)```", page, flags=re.S)
    assert [name for name, _ in units] == ["whyrank.service", "whyrank-worker.service"]
    for name, unit in units:
        (tmp_path / name).write_text(unit.replace("/opt/whyrank/bin/whyrank", "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name, _ in units)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
