# Every target sets up what it needs, once. `make` alone explains the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.SUFFIXES:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PYTHONPATH := operator:tests

.PHONY: help
help:  ## Explain the targets
	@awk -F ':.*##' '/^[a-z-]+:.*##/ {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sexton needs Python 3.11 or newer; set PYTHON=…")'
	echo "==> setting up $(VENV) from requirements/dev.txt" >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.PHONY: setup
setup: $(READY)  ## Make the virtual environment (every other target does it by itself)

.PHONY: lint
lint: $(READY)  ## Check style, types, import layers and generated files
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

.PHONY: format
format: $(READY)  ## Format the code and mend what the linter can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: lock
lock: $(READY)  ## Pin the newest allowed versions of every dependency, with hashes
	flags=(--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade)
	$(BIN)/uv pip compile "$${flags[@]}" pyproject.toml --output-file requirements/run.txt
	$(BIN)/uv pip compile "$${flags[@]}" pyproject.toml --group dev --constraint requirements/run.txt --output-file requirements/dev.txt
	$(BIN)/uv pip compile "$${flags[@]}" --group build --constraint requirements/dev.txt --output-file requirements/build.txt
	$(BIN)/uv pip compile "$${flags[@]}" --group image --output-file requirements/image.txt

.PHONY: crds
crds: $(READY)  ## Write crds/ anew from the models
	$(BIN)/python -m sexton.api.crd crds/

.PHONY: chart
chart: crds  ## Write anew what of the Helm chart is made from crds/ and from the comments in its values
	$(BIN)/python -m chart_tools

.PHONY: demo
demo: $(READY)  ## Show it all: a real cluster, Sexton installed by Helm, the examples, what kubectl shows (KEEP=1: leave it all up)
	$(BIN)/python examples/demo.py

.PHONY: test
test: lint  ## Run every check and every test, on a real cluster (about half an hour; the first time some more)
	@echo "==> unit tests and simulations, with all of the property tests' examples" >&2
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest tests/unit tests/simulation --numprocesses 2
	echo "==> tests on local Kubernetes clusters, in lanes side by side" >&2
	$(BIN)/python tests/lanes.py pods tests/cluster -m "not simulated_node and not busy" \
		-- simulated tests/cluster -m "simulated_node and not busy" --cluster-node kwok \
		-- chart tests/chart tests/e2e --cluster-node none
	echo "==> tests that take all of the machine" >&2
	$(BIN)/python -m pytest tests/cluster -m busy

.PHONY: test-fast
test-fast: $(READY)  ## Run the tests that need no cluster, with a sample of the property tests (under a minute)
	$(BIN)/python -m pytest tests/unit tests/simulation

.PHONY: bench
bench: $(READY)  ## Measure, beside what others do in the same run
	$(BIN)/python -m bench

.PHONY: image
image: $(READY)  ## Build Sexton's image, and show what it adds to its base (with Docker or Podman, else as root on Debian)
	@$(BIN)/python -m cluster_tools image

.PHONY: cluster-up
cluster-up: $(READY)  ## Start a cluster to play with and print how to use it (NODE=auto|real|kwok|none)
	@$(BIN)/python -m cluster_tools up --node $(or $(NODE),auto)

.PHONY: cluster-down
cluster-down: $(READY)  ## Stop that cluster
	@$(BIN)/python -m cluster_tools down

.PHONY: clean
clean:  ## Remove what was built here (the cluster's programs stay in the user's cache folder)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
