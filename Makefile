# Two commands for a fresh machine: `make run` and `make test`. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run test verify lint bench table errata lock clean

run: $(VENV)/.run-ready
	mkdir -p out
	$(BIN)/polyarm run router --plot out/router.png

test: $(VENV)/.test-ready lint
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The statistical claims over thousands of runs: an hour or so, for the night.
verify: $(VENV)/.test-ready
	$(BIN)/python -m pytest -m nightly tests/nightly

# Rewrites docs/comparison.md.
table: $(VENV)/.run-ready
	$(BIN)/python benchmarks/compare_explorers.py

# Rewrites docs/errata.md; some minutes.
errata: $(VENV)/.run-ready
	$(BIN)/python benchmarks/measure_errata.py

bench: $(VENV)/.bench-ready
	$(BIN)/python -m pytest benchmarks --benchmark-disable-gc

# Rewrites the pinned versions after a change of dependencies.
lock: $(VENV)/.python-ready
	$(PIP) install uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-header \
		--output-file constraints.txt pyproject.toml

$(VENV)/.python-ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "polyarm needs Python 3.11 or newer; choose one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "could not create $(VENV); on Debian: apt-get install python3-venv"; exit 1; }
	@touch $@

$(VENV)/.run-ready: $(VENV)/.python-ready pyproject.toml constraints.txt
	@echo "installing polyarm into $(VENV) ..."
	$(PIP) install --constraint constraints.txt --editable '.[plot,parquet]'
	@touch $@

$(VENV)/.test-ready: $(VENV)/.python-ready pyproject.toml constraints.txt
	@echo "installing polyarm and its tests into $(VENV) ..."
	$(PIP) install --constraint constraints.txt --editable '.[test]'
	@touch $@ $(VENV)/.run-ready

$(VENV)/.bench-ready: $(VENV)/.python-ready pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[bench]'
	@touch $@ $(VENV)/.test-ready $(VENV)/.run-ready

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
