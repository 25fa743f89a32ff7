# Everything from a bare machine with python3 (3.11), git and make: `make demo` runs the pipeline, `make test` its tests.
SHELL := /bin/bash
PYTHON ?= python3
MAIN := .venv
TRAINER := .venv-trainer
READY := $(MAIN)/.ready $(TRAINER)/.ready
PORT ?= 8080

.PHONY: help demo up down test lint bench lock clean
help:  ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

demo: $(READY)  ## from 2,624 real images to a classifier, through a real Airflow
	@$(MAIN)/bin/python -m demo --port $(PORT)

up: $(READY)  ## Airflow with its web UI on localhost, until Ctrl-C
	@$(MAIN)/bin/python -c 'from demo.archive import prepare; prepare()'
	@exec $(MAIN)/bin/python -m imagenet_ops.local_airflow up --port $(PORT)

down: $(MAIN)/.ready  ## stop what an `up` started, even one that was killed
	@$(MAIN)/bin/python -m imagenet_ops.local_airflow down

test: $(READY)  ## all tests: in the main environment, then in the trainer's
	$(MAIN)/bin/python -m pytest tests --ignore tests/trainer $(ARGS)
	$(TRAINER)/bin/python -m pytest tests/trainer $(ARGS)

lint: $(READY)  ## ruff, and mypy in strict mode
	$(MAIN)/bin/ruff check .
	$(MAIN)/bin/ruff format --check .
	$(MAIN)/bin/mypy

bench: $(READY)  ## make bench NAME=pack: a benchmark; its last line is one JSON object
	@test -f benchmarks/$(NAME).py || { echo "NAME is one of: $(basename $(filter-out __init__.py,$(notdir $(wildcard benchmarks/*.py))))"; exit 2; }
	@$(MAIN)/bin/python -m benchmarks.$(NAME) $(ARGS)

lock: .local/uv  ## pin the newest allowed versions into requirements/
	$(UV) pip compile -q -U pyproject.toml --extra dev $(LOCK) -o requirements/main.txt
	$(UV) pip compile -q -U pyproject.toml --extra train --extra test $(LOCK) -o requirements/trainer.txt

clean:  ## remove the environments, the local Airflow and the demo's archive, what benchmarks read; with STORE=yes the local store too
	@if [ -x $(MAIN)/bin/python ]; then $(MAIN)/bin/python -m imagenet_ops.local_airflow down; fi
	rm -rf $(MAIN) $(TRAINER) .local/airflow .local/bench .local/demo .local/uv .local/uv-venv .mypy_cache .ruff_cache *.egg-info
	@if [ "$(STORE)" = yes ]; then rm -rf .local/store; elif [ -d .local/store ]; then echo "kept: .local/store"; fi

# uv from the PATH, or an own one fetched with pip.
UV = $$(cat .local/uv)
LOCK := --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
.local/uv:
	@mkdir -p .local
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "Python 3.11 is needed (mxnet and numpy 1.23.5 have no later wheels): make PYTHON=python3.11"; exit 1; }
	@if command -v uv >/dev/null; then command -v uv > $@; else \
	  $(PYTHON) -m venv .local/uv-venv && .local/uv-venv/bin/pip install -q uv && echo "$$PWD/.local/uv-venv/bin/uv" > $@; fi

$(MAIN)/.ready: requirements/main.txt pyproject.toml | .local/uv
	@echo "setting up $(MAIN)"
	@$(UV) venv -q --allow-existing --python "$$(command -v $(PYTHON))" $(MAIN)
	@$(UV) pip sync -q --python $(MAIN)/bin/python --require-hashes requirements/main.txt
	@$(UV) pip install -q --python $(MAIN)/bin/python --no-deps --editable .
	@touch $@

$(TRAINER)/.ready: requirements/trainer.txt pyproject.toml | .local/uv
	@echo "setting up $(TRAINER)"
	@./tools/install-trainer-libraries
	@$(UV) venv -q --allow-existing --python "$$(command -v $(PYTHON))" $(TRAINER)
	@$(UV) pip sync -q --python $(TRAINER)/bin/python --require-hashes requirements/trainer.txt
	@$(UV) pip install -q --python $(TRAINER)/bin/python --no-deps --editable .
	@touch $@
