# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TASKS ?= examples/tasks.jsonl
LIBRARY ?= quickstart

.DEFAULT_GOAL := help
.PHONY: help venv dev quickstart stats check format test test-slow planted test-confined test-trainers test-adapters test-bench test-tau2 perf live live-replies live-role-replies live-test lock clean

help:
	@echo "make quickstart   make environments from 200 task texts with the embedded offline model, and show them"
	@echo "make stats LIBRARY=…   docs/statistics.md anew from a library"
	@echo "make test         check the code and run the tests"
	@echo "make check        formatting, lint, types, import layers"
	@echo "make test-slow    the tests that take minutes"
	@echo "make planted      how many planted faults the audit finds, and its false alarms"
	@echo "make test-confined   the tests of what runs generated code, as a user without rights and in a container"
	@echo "make test-trainers   what the exports write, read by each trainer itself in an environment of its own"
	@echo "make test-adapters   environments played by gem, Gymnasium and TRL, each in an environment of its own"
	@echo "make test-bench      benchmarks by their own packages: floors, ceilings, scores item by item"
	@echo "make test-tau2       the same of tau2-bench, and of tau-bench where ENVSCALER_TAU_BENCH names a checkout"
	@echo "make perf         speed and memory, ratios side by side"
	@echo "make live TASKS=… BASE_URL=… MODEL=…   the same chain with a real model"
	@echo "make live-replies BASE_URL=… MODEL=…   what a real model writes in each dialect, to be judged by hand"
	@echo "make live-role-replies BASE_URL=… MODEL=…   what it writes in each role of the synthesis, likewise"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "envscaler needs Python 3.11 or newer; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)

# The lock file makes every machine install the same versions; the stamp makes the second run instant.
$(VENV)/.installed: $(BIN)/python pyproject.toml requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev]'
	@touch $@

venv: $(VENV)/.installed
dev: $(VENV)/.installed-dev

quickstart: venv
	$(BIN)/python examples/quickstart.py --library $(LIBRARY)

stats: venv
	$(BIN)/envscaler stats $(LIBRARY) --out docs/statistics.md

check: dev
	$(BIN)/ruff format --check src tests examples perf
	$(BIN)/ruff check src tests examples perf
	$(BIN)/mypy
	$(BIN)/lint-imports

format: dev
	$(BIN)/ruff format src tests examples perf
	$(BIN)/ruff check --fix src tests examples perf

test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: dev
	$(BIN)/python -m pytest -m slow

planted: dev
	$(BIN)/python -m pytest -m slow -s tests/audit/test_planted.py

# What runs generated code, as others run it: without rights (which root gives up for it), in a container, on an older
# kernel in a container without rights, and on a system that cannot harden processes at all.
CONFINED := $(BIN)/python tests/confined.py
CONFINED_TESTS := python -m pytest -p no:cacheprovider tests/sandbox tests/env
test-confined: dev
	$(CONFINED) --user -- $(CONFINED_TESTS)
	$(CONFINED) --docker -- $(CONFINED_TESTS)
	$(CONFINED) --user --docker --without landlock -- $(CONFINED_TESTS)
	$(CONFINED) --without seccomp --without landlock -- $(CONFINED_TESTS)

# Each trainer in a virtual environment of its own, made below .venvs or the folder that ENVSCALER_TRAINERS names.
test-trainers: dev
	$(BIN)/python tests/trainers/environments.py $(TRAINERS)

test-adapters: dev
	$(BIN)/python tests/adapters/environments.py $(ADAPTERS)

# Environments lie in the folder that ENVSCALER_BENCH names, else in .venvs/bench. ACEBench is played too where
# ENVSCALER_ACEBENCH names a checkout of it.
test-bench: dev
	$(BIN)/python -m pytest -m "" -s tests/bench/contract

# tau-bench too where ENVSCALER_TAU_BENCH names a checkout of it.
test-tau2: dev
	$(BIN)/python -m pytest -m bench -s tests/bench/contract_tau

perf: dev
	$(BIN)/python -m perf

# The first six of the tasks that the model keeps, in an order drawn by a seed; stopped at any moment, it goes on.
LIVE_FLAGS ?= --environments 6 --min-usefulness 1 --min-modelability 1 --scenarios 1 --environment-minutes 60
live: venv
	@test -n "$(BASE_URL)" -a -n "$(MODEL)" || { echo "usage: make live TASKS=tasks.jsonl BASE_URL=http://127.0.0.1:8080/v1 MODEL=name"; exit 2; }
	$(BIN)/envscaler synth $(TASKS) --library live --model $(MODEL) --base-url $(BASE_URL) $(LIVE_FLAGS)

live-replies: dev
	@test -n "$(BASE_URL)" -a -n "$(MODEL)" || { echo "usage: make live-replies BASE_URL=http://127.0.0.1:8080/v1 MODEL=name"; exit 2; }
	$(BIN)/python tests/agents/record_replies.py --base-url $(BASE_URL) --model $(MODEL)

live-role-replies: dev
	@test -n "$(BASE_URL)" -a -n "$(MODEL)" || { echo "usage: make live-role-replies BASE_URL=http://127.0.0.1:8080/v1 MODEL=name"; exit 2; }
	$(BIN)/python tests/roles/record_replies.py --base-url $(BASE_URL) --model $(MODEL)

live-test: dev
	$(BIN)/python -m pytest -m live

# Without the extras of trainers: their pins contradict each other's, and each is tested in an environment of its own.
lock: dev
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra parquet --universal --no-header --no-emit-index-url --no-annotate --output-file requirements.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
