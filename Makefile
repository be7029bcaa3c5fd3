PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: repro test test-all format lock

repro: $(BIN)/.installed  ## raw files to evaluated models
	@dvc repro --quiet-noise

$(BIN)/.installed: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

# torch pins its own CUDA packages; left out here, a CPU build satisfies the lock as well.
lock: $(BIN)/.installed
	uv pip compile --quiet --universal --python-version 3.11 --group dev --no-annotate --no-header pyproject.toml \
	  | grep -vE '^(nvidia|cuda|triton)' > requirements.lock
