# Two commands on a fresh machine: `make check-model` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: check-model test test-spin test-adapters test-browser lint mutants bench bench-harness docs clean

check-model: $(READY)
	@$(BIN)/peeklock check

test: $(READY)
	$(BIN)/pytest -q -m "not spin and not adapters and not browser"

test-spin: $(READY)
	$(BIN)/pytest -q -m spin

test-adapters: $(READY)
	$(BIN)/pytest -q -m adapters

test-browser: $(READY)
	$(BIN)/pytest -q -m browser

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p peeklock.spec -p peeklock.model -p peeklock.cli -p peeklock.impl -p peeklock.proofs -p peeklock.harness
	$(BIN)/pyright -p .

mutants: $(READY)
	@$(BIN)/python -m peeklock.model.mutants.run

bench: $(READY)
	PYTHONPATH=tests/model $(BIN)/python tests/bench/bench.py

bench-harness: $(READY)
	@PYTHONPATH=tests/conform:tests/mutants $(BIN)/python tests/bench/harness.py

docs: $(READY)
	$(BIN)/peeklock docs

# The editable install links every file, so it is made anew when a file comes or goes.
STAMP := $(VENV)/files-$(shell find spec model impl proofs tests/harness -name '*.py' -o -path '*/assets/*' | sort | cksum | cut -d' ' -f1)

$(READY): requirements.txt pyproject.toml $(STAMP)
	@echo "setting up $(VENV) …" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . \
		> $(VENV)/install.log 2>&1 || { cat $(VENV)/install.log >&2; exit 1; }
	@touch $@

$(STAMP):
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -f $(VENV)/files-*
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
