# Two commands for a fresh machine: `make run` and `make test`. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run test browser docs pictures gallery verify lint bench table errata lock release clean

run: $(VENV)/.run-ready
	mkdir -p out
	$(BIN)/polyarm warm --only certex
	$(BIN)/polyarm run router --plot out/router.png

test: $(VENV)/.test-ready lint browser
	$(BIN)/polyarm warm
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The dashboard is tested in a real Chromium: installed where that is possible, or else the tests say loudly that they
# were skipped.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
			&& echo "installing chromium for the tests of the dashboard ..." \
			&& apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; } \
		|| echo "NO BROWSER: the tests of the dashboard will be skipped; install chromium to run them"

# The documentation, to read in a browser: out/docs/index.html. Warnings are errors; nothing is fetched.
docs: $(VENV)/.docs-ready
	$(BIN)/sphinx-build -q -E -a -W --keep-going -b html docs out/docs
	@echo "open out/docs/index.html"

# Rewrites the pictures of docs/concepts.md.
pictures: $(VENV)/.docs-ready
	$(BIN)/python docs/pictures.py

# Rewrites docs/gallery.md and its pictures; some minutes.
gallery: $(VENV)/.test-ready
	$(BIN)/python gallery/make_page.py

# The statistical claims over thousands of runs: an hour or so, for the night.
verify: $(VENV)/.test-ready
	$(BIN)/python -m pytest -m nightly tests

# Rewrites docs/comparison.md.
table: $(VENV)/.run-ready
	$(BIN)/python benchmarks/compare_explorers.py

# Rewrites docs/errata.md; some minutes.
errata: $(VENV)/.run-ready
	$(BIN)/python benchmarks/measure_errata.py

bench: $(VENV)/.bench-ready
	$(BIN)/python -m pytest benchmarks --benchmark-disable-gc
	$(BIN)/python -m benchmarks.measure_compiling

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
	$(PIP) install --constraint constraints.txt --editable '.[plot,parquet,service]'
	@touch $@

$(VENV)/.docs-ready: $(VENV)/.python-ready pyproject.toml constraints.txt
	@echo "installing polyarm and what its documentation needs into $(VENV) ..."
	$(PIP) install --constraint constraints.txt --editable '.[docs,plot,parquet,service]'
	@touch $@ $(VENV)/.run-ready

$(VENV)/.test-ready: $(VENV)/.python-ready pyproject.toml constraints.txt
	@echo "installing polyarm and its tests into $(VENV) ..."
	$(PIP) install --constraint constraints.txt --editable '.[test]'
	@touch $@ $(VENV)/.run-ready $(VENV)/.docs-ready

$(VENV)/.bench-ready: $(VENV)/.python-ready pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable '.[bench]'
	@touch $@ $(VENV)/.test-ready $(VENV)/.run-ready $(VENV)/.docs-ready

# Builds wheel and sdist into dist/ and tries the wheel in an empty environment, from install to a first run.
release: $(VENV)/.test-ready
	rm -rf dist out/release
	$(BIN)/python -m hatchling build
	$(PYTHON) -m venv out/release
	out/release/bin/python -m pip --disable-pip-version-check --quiet install "$$(ls dist/*.whl)[plot,service]"
	cd out && release/bin/polyarm run router --plot release.png && release/bin/polyarm token list --storage sqlite:///release.db
	@echo "dist/ is ready: $$(ls dist)"

clean:
	rm -rf $(VENV) out dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
