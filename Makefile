# Needs Python 3.11 to 3.14 with venv, and make.
PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
NEWER := .venv-newer
WHEEL := .venv-wheel
RUN := $(VENV)/bin
ARGS ?=
SEED ?= $(shell od -An -N2 -tu2 /dev/urandom | tr -d " ")
HERE := not slow and not hosts and not frameworks

.PHONY: help evaluate serve docs test test-random test-all test-slow test-hosts test-frameworks test-lowest test-newer test-wheel lint bench pictures ci clean

evaluate: $(VENV)/.ready  ## judge the packaged sample and write report/
	$(RUN)/toolmem evaluate $(ARGS)

serve: $(VENV)/.ready  ## serve .toolmem/memory.db over HTTP
	$(RUN)/toolmem serve $(ARGS)

test: $(VENV)/.ready  ## run the tests
	$(RUN)/python -m pytest -q -n 2 -m "$(HERE)" $(ARGS)

test-random: $(VENV)/.ready  ## run them in any order; to repeat one: make test-random SEED=number
	$(RUN)/python -m pytest -q -n 2 -m "$(HERE)" \
		--random-order-bucket=global --random-order-seed=$(SEED) $(ARGS)

test-all: test-random test-slow test-wheel  ## also notebooks, killed nodes, and the built wheel

test-slow: $(VENV)/.ready  ## execute notebooks, kill Elasticsearch nodes (JDK 17 or newer, Maven)
	$(RUN)/python -m pytest -q -n 2 -m slow

test-hosts: $(VENV)/.ready .hosts/.ready  ## the agents' own programs, offline (needs npm; 1.5 GB, once)
	$(RUN)/python -m pytest -q -m hosts -rA -s $(ARGS)

test-frameworks: .frameworks/.ready  ## adapters, in the frameworks' own agents
	.frameworks/bin/python -m pytest -q -m frameworks --override-ini addopts=--import-mode=importlib \
		tests/frameworks $(ARGS)

# How pages and notebooks look is a matter of the versions in constraints.txt.
PLAIN := -m "$(HERE) and not browser" --ignore tests/test_house.py --ignore tests/test_docs.py

test-lowest: $(LOWEST)/.ready  ## with the oldest libraries that are allowed
	$(LOWEST)/bin/python -m pytest -q -n 2 $(PLAIN) $(ARGS)

test-newer: $(NEWER)/.ready  ## on another Python: make test-newer PYTHON=python3.13
	$(NEWER)/bin/python -m pytest -q -n 2 $(PLAIN) $(ARGS)

test-wheel: $(VENV)/.ready  ## the wheel, in an empty folder, evaluates its sample
	rm -rf build $(WHEEL)
	$(RUN)/python -m pip wheel -q --no-deps -w build/wheel .
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install -q -c constraints.txt build/wheel/*.whl
	mkdir build/wheel/empty build/wheel/home
	cd build/wheel/empty && HOME=$(CURDIR)/build/wheel/home XDG_STATE_HOME= \
		../../../$(WHEEL)/bin/toolmem evaluate && test -s report/report.html
	$(WHEEL)/bin/python -c "import toolmem, pathlib; assert (pathlib.Path(toolmem.__file__).parent / 'py.typed').is_file()"

lint: $(VENV)/.ready  ## check style and types
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

docs: $(VENV)/.ready  ## build docs/_build/html; its pages and notebooks are executed
	$(RUN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

pictures: $(VENV)/.ready  ## take the pictures of the console (needs Chromium)
	$(RUN)/python docs/pictures.py

bench: $(VENV)/.ready  ## measure all, or one: make bench ARGS=judge; needs the shared recordings
	$(RUN)/python benchmarks/run.py $(ARGS)

help:
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' Makefile | expand -t 18

ci: lint docs test-all  ## what must hold on a fresh clone

clean:
	rm -rf .hosts .frameworks $(VENV) $(LOWEST) $(NEWER) $(WHEEL) .elasticsearch build dist *.egg-info report docs/_build docs/jupyter_execute docs/notebooks docs/reference .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

.frameworks/.ready: pyproject.toml tests/frameworks/requirements.txt
	$(PYTHON) -m venv .frameworks
	.frameworks/bin/python -m pip install -q -e . -r tests/frameworks/requirements.txt
	touch $@

.hosts/.ready: tests/hosts_live/package.json
	mkdir -p .hosts/home && cp tests/hosts_live/package.json .hosts/
	for name in CACHE CONFIG DATA STATE; do export XDG_$${name}_HOME=$(CURDIR)/.hosts/home; done; \
		npm install --prefix .hosts --cache .hosts/cache --no-audit --no-fund --loglevel=error
	touch $@

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	touch $@

$(LOWEST)/.ready: pyproject.toml constraints.txt constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install -q -c constraints-lowest.txt -e ".[all]" \
		$$(grep -E '^(pytest|pytest-xdist|hypothesis|greenlet)==' constraints.txt)
	touch $@

$(NEWER)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(NEWER)
	$(NEWER)/bin/python -m pip install -q -c constraints.txt -e ".[dev]"
	touch $@
