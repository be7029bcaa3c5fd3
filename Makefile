PYTHON ?= python3
BIN := .venv/bin
# Tests wait for clusters and servers, so more of them than cores run at a time, and long ones first (tests/conftest.py).
PYTEST := pytest -n 4 --dist loadscope --no-loadscope-reorder
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Stages and tests start hundreds of processes, each of which would compile all modules where this is set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help repro retrain test test-all faults format docs lock

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

repro: $(BIN)/.installed  ## from raw files to evaluated models; only what changed is done again
	@python -m stages check && dvc repro
	@printf '\n%s\n' "Next:" "  report/index.html             open it in a browser" \
	  "  source .venv/bin/activate     for the commands below" "  dvc metrics show              the results in one line" \
	  "  dvc plots show                pictures, contextual over random batches" \
	  "  batchwright show              batches with their texts, and what is masked"

retrain: $(BIN)/.installed  ## what came since, behind a gate: docs/retrain.md
	@batchwright retrain
	@echo "Next: dvc get URL models/biencoder --rev deployed, or batchwright rollback"

test: $(BIN)/.installed  ## style, types and tests, but for the slow ones
	ruff format --check --quiet . && ruff check --quiet .
	$(PYTEST) -m "not slow"
	@echo "Style, types and tests are fine. Next: make test-all runs the slow tests, too"

test-all: $(BIN)/.installed  ## all tests
	$(PYTEST)
	@echo "All tests pass"

faults: $(BIN)/.installed  ## kills, full disks, flipped bits and spoiled files; two hours
	python -m tests.faults
	@echo "Next: docs/reliability.md has such a table"

format: $(BIN)/.installed  ## put the code into its style
	ruff format --quiet . && ruff check --quiet --fix .
	@echo "Next: make test"

docs: $(BIN)/.installed  ## put the newest results and parameters into README and docs
	python -m docs.tables
	python -m docs.picture
	python -m docs.parameters
	@echo "Next: git diff README.md docs"

lock: $(BIN)/.installed  ## pin the newest versions that fit pyproject.toml
# torch pins its own CUDA packages; left out here, a CPU build satisfies the lock as well.
	uv pip compile --quiet --universal --python-version 3.11 --extra pipeline --group dev --no-annotate --no-header --upgrade pyproject.toml \
	  | grep -vE '^(nvidia|cuda|triton)' > requirements.lock
	@echo "Next: make repro installs the new versions, and runs again what they change"

$(BIN)/.installed: requirements.lock pyproject.toml
	@echo "installing the pinned packages into .venv (some minutes)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -r requirements.lock
# pip would do this on one core, and with all their tests.
	@$(BIN)/python -m compileall -q -j 0 -x "/tests?/" .venv/lib > /dev/null || true
# The command batchwright; all that it needs is pinned above.
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@
	@echo "Installed. For bare commands: source .venv/bin/activate"
