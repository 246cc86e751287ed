# One door for every habit; CI calls the same ones. Needs Python 3.11+ with venv, and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The versions that are installed. `make test VENV=.venv-lowest CONSTRAINTS=constraints-lowest.txt` tries the lowest ones.
CONSTRAINTS := constraints.txt
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c $(CONSTRAINTS)

.DEFAULT_GOAL := help
.PHONY: help evaluate serve test test-all test-server test-hosts lint bench docs lowest clean

# Tests run in as many processes as there are cores, four at most; those of one xdist_group in one process.
PARALLEL := -n logical --maxprocesses 4 --dist loadgroup

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

evaluate: $(VENV)/.evaluate  ## judge, summarize and report the project's own recording (no key, no network)
	@$(BIN)/toolmem evaluate $(ARGS)

serve: $(VENV)/.serve  ## serve the flows and rules on http://127.0.0.1:8002
	@$(BIN)/toolmem serve $(ARGS)

test: $(VENV)/.dev  ## run the tests, a few minutes: without a server, without what is marked slow, few examples per property
	@$(BIN)/python -m pytest $(PARALLEL) -m 'not slow and not server' $(ARGS)

test-all: $(VENV)/.dev  ## run every test, as CI does after `make docs`; those of Elasticsearch where a server can be had
	@$(BIN)/python -m pytest $(PARALLEL) --hypothesis-profile=thorough --durations=60 --durations-min=1 $(ARGS)

test-server: $(VENV)/.dev  ## run only those that need an Elasticsearch server (ELASTICSEARCH_URL, Docker, or Java and Maven)
	@$(BIN)/python -m pytest tests/elasticsearch $(ARGS)

test-hosts: $(VENV)/.dev .hosts/.programs  ## run the agents' own programs and the frameworks through it all (needs npm)
	@$(BIN)/python -m tests.hosts_live.editions || echo "npm did not say what is newest: that was not tried" >&2
	@$(BIN)/python -m pytest tests/hosts_live -m hosts -rA $(ARGS); programs=$$?; \
	  $(BIN)/python tests/hosts_live/adapters/run.py; frameworks=$$?; \
	  $(BIN)/python docs/generate.py; exit $$((programs + frameworks))

lint: $(VENV)/.dev  ## style, types, import direction
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.dev  ## measure: prints tables, writes benchmarks/results/*.json
	@$(BIN)/python benchmarks/run_all.py $(ARGS)

docs: $(VENV)/.dev  ## build the documentation into docs/_build/html; some of its pages run tests
	@$(BIN)/python -m sphinx -W --keep-going -q -j 2 -b html docs docs/_build/html
	@$(BIN)/python docs/check_site.py docs/_build/html
	@echo "docs/_build/html/index.html"

lowest: $(VENV)/.dev  ## write constraints-lowest.txt: the lowest versions that pyproject.toml allows, on Python 3.11
	@$(PIP) uv
	@$(BIN)/uv pip compile pyproject.toml --extra dev --resolution lowest-direct --python-version 3.11 \
	  --upgrade --no-annotate --no-header --quiet -o constraints-lowest.txt

clean:  ## remove what was built (the memory in .toolmem/ stays)
	rm -rf $(VENV) .venv-* report build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "toolmem needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "making $(VENV) ..." >&2
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.evaluate: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing toolmem and what a report needs into $(VENV) (about 490 MB, once) ..." >&2
	@$(PIP) -e '.[dashscope,elasticsearch,research]'
	@touch $@

$(VENV)/.serve: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing toolmem and what serving needs into $(VENV) (about 200 MB, once) ..." >&2
	@$(PIP) -e '.[serve]'
	@touch $@

# In a folder of its own, at the versions of package.json: a second run downloads nothing.
.hosts/.programs: tests/hosts_live/package.json
	@command -v npm >/dev/null || { echo "npm is needed: the agents are its packages (Node.js 20 or newer)" >&2; exit 1; }
	@echo "installing the agents into .hosts (about 1.5 GB, once) ..." >&2
	@mkdir -p .hosts && cp tests/hosts_live/package.json .hosts/
	@npm install --prefix .hosts --no-audit --no-fund --loglevel=error
	@touch $@

$(VENV)/.dev: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "installing toolmem and its development tools into $(VENV) (once) ..." >&2
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.evaluate $(VENV)/.serve
