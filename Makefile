# Everything runs in .venv, which is created when a target first needs it.
# Another interpreter: make test PYTHON=/path/to/python3.12

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready
PYTEST_ARGS ?= -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-gpu lint format typecheck pytest soak audit bench docs clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found: install one, or name it with make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv .venv

# A stamp is older than pyproject.toml or constraints.txt when an installation is due.
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e .
	@touch $@

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e ".[dev]"
	@touch $(INSTALLED) $@

setup: $(READY) ## create .venv and install the package with all tools

demo: $(INSTALLED) ## group 200 held-out scenes with the shipped model, draw a few
	$(BIN)/taggernet demo

test: lint typecheck pytest ## ruff, mypy --strict and all tests

lint: $(READY) ## ruff: style and common mistakes
	$(BIN)/ruff check
	$(BIN)/ruff format --check

typecheck: $(READY) ## mypy --strict on the package and paper/
	$(BIN)/mypy --strict src/taggernet paper

pytest: $(READY) ## the tests only; PYTEST_ARGS="-k ami -x" selects some
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-gpu: $(READY) ## the tests that need a GPU; what they say goes into results/gpu_tests.json
	$(BIN)/python tests/helpers/gpu_report.py results/gpu_tests.json

# The guarantees of docs/reliability.md; -p no:cacheprovider leaves nothing behind in the repository.
SOAKED := $(wildcard tests/trust) tests/test_reliability.py $(addprefix tests/training/test_, \
	resume.py checkpoint.py run_dir.py divergence.py distributed.py failures.py failures_of_the_machine.py)

soak: $(READY) ## the tests of docs/reliability.md at full size
	TAGGERNET_SOAK=1 PYTHONDONTWRITEBYTECODE=1 $(BIN)/python -m pytest $(PYTEST_ARGS) --timeout 1200 \
		-p no:cacheprovider --durations 10 $(SOAKED)

# --strict: otherwise pip-audit silently skips every version that its service does not answer for.
audit: $(READY) ## look up known vulnerabilities of the versions in constraints.txt (needs the network)
	@test -x build/audit/bin/pip-audit || { $(BIN)/python -m venv build/audit && build/audit/bin/pip install -q pip-audit; }
	build/audit/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

format: $(READY) ## format the sources with ruff
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) ## run every script in benchmarks/
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

docs: $(READY) ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation is in site/: open site/index.html"
	@echo "Its explorer needs a server, e.g. $(BIN)/python -m http.server --directory site"

clean: ## remove what the tools leave behind
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv as well
	rm -rf .venv
