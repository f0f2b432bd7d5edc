# Two commands on a fresh machine: `make check-model` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# Whoever has finished takes a test from whoever has most left.
PARALLEL := -n auto --dist worksteal

.PHONY: check-model test quick test-spin test-adapters test-browser lint mutants bench bench-harness docs clean

check-model: $(READY)
	@$(BIN)/peeklock check

test: $(READY)
	$(BIN)/pytest -q $(PARALLEL) -m "not spin and not adapters and not browser"

# For whoever changes a line of the specification: some seconds.
quick: $(READY)
	@$(BIN)/mypy -p peeklock.spec -p peeklock.model
	@$(BIN)/peeklock check --items 1 --no-causes
	@$(BIN)/pytest -q $(PARALLEL) -m "not slow and not spin" tests/test_house.py tests/spec tests/model

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
	@$(BIN)/python tests/bench/bench.py

bench-harness: $(READY)
	@$(BIN)/python tests/bench/harness.py

docs: $(READY)
	$(BIN)/peeklock docs

# Tests and benchmarks import the helpers that lie in these folders of tests/.
HELPERS := bench conform explore impl model mutants refinement

# The editable install links every file, so it is made anew when a file comes or goes.
STAMP := $(VENV)/files-$(shell find spec model impl proofs tests/harness -name '*.py' -o -path '*/assets/*' | sort | cksum | cut -d' ' -f1)

$(READY): requirements.txt pyproject.toml $(STAMP)
	@echo "setting up $(VENV) …" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . \
		> $(VENV)/install.log 2>&1 || { cat $(VENV)/install.log >&2; exit 1; }
	@printf '%s\n' $(HELPERS:%=$(CURDIR)/tests/%) > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/peeklock-tests.pth"
	@touch $@

$(STAMP):
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -f $(VENV)/files-*
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
