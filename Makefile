# setup: .venv with everything for development   demo: train without and under a network, evaluate under it, write runs/demo/report.html
# notebooks: execute them and write their outputs   docs: the pages, docs/_build/index.html
# test: the quick tests, laws on named examples among them; a worker that has none left takes tests of another
# lint: format, rules, types
# recipes: each of examples/recipes in an environment of its own (minutes, GBs; RECIPES="rllib minari" for some)
# check: lint and all tests   clean: remove what tools leave
# Another interpreter: make setup PYTHON=python3.12. Indexes and the like are taken from pip's own PIP_* variables.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done

.DEFAULT_GOAL := test
.PHONY: setup demo test lint check notebooks docs recipes clean distclean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt heron_env/_version.py
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "heron_env needs Python >= 3.11; $(PYTHON) is %d.%d. Name another one: make setup PYTHON=python3.12" % v[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: setup
	$(BIN)/heron demo

test: setup
	$(BIN)/python -m pytest -x -q -n $(WORKERS) --dist worksteal -m "not draw and not e2e and not far"

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff format --check --line-length 88 README.md $$(find docs -name '*.md' -not -path 'docs/_build/*')
	$(BIN)/ruff check .
	$(BIN)/mypy --strict heron_env benchmarks tools

check: lint
	$(BIN)/python -m pytest -q -n $(WORKERS)

notebooks: $(VENV)/.extra-notebooks
	$(BIN)/python notebooks/build.py

$(VENV)/.extra-%: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$*]'
	@touch $@

docs: $(VENV)/.extra-docs # -a: in the search, pages that are not written again would lose their words
	$(BIN)/python -m sphinx -a -W --keep-going -q -b html docs docs/_build

recipes: setup
	$(BIN)/python tools/run_recipes.py $(RECIPES)

clean:
	rm -rf build dist docs/_build docs/notebooks docs/jupyter_execute .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find heron_env tests training benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
