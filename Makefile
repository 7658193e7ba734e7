# One page of verbs. A machine needs Rust, Python 3.11 or later and make; the rest is installed
# into .venv from requirements/dev.txt. Nothing is done twice: the stamps below remember.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python on the path that is new enough; `make PYTHON=...` chooses another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BUILT := $(VENV)/.built
RUST := Cargo.toml Cargo.lock $(shell find engine io bindings -name '*.rs' -o -name Cargo.toml -o -name build.rs)
# Processes that run the Python tests.
WORKERS ?= 2
# States that the crash laboratory tries when it is run by hand.
STATES ?= 1000000
# Damages of each frame that the laboratory of repair tries when it is run by hand.
DAMAGES ?= 1000
# Examples that the array laboratory tries when it is run by hand.
EXAMPLES ?= 100000
# Cases that the laboratory of schedules draws when it is run by hand, and their seed.
CASES ?= 5000
SIZES ?= 20000
SEED ?= 1
# Interrupts at most of each grain, drawn from all (0: every one), and seconds of real signals.
INTERRUPTS ?= 0
SECONDS_OF_SIGNALS ?= 300

.PHONY: help demo test test-peer test-rust test-python check bench bench-quick bench-matrix bench-more figures lab lab-paths lab-repair lab-arrays lab-schedules lab-interrupts lab-sizes fuzz docs build wheel format clean

help: ## show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r verb does; do printf '  make %-14s %s\n' "$$verb" "$$does"; done

demo: $(BUILT) ## compress real data, measure, verify with blosc2, draw into demo-output/
	$(BIN)/python examples/demo/demo.py

test: test-rust test-python ## run every test, of the engine and of the package

test-rust:
	cargo test --workspace --locked

test-peer: $(BUILT) ## run python-blosc2's own storage tests on superchunk, against the table of differences; 2 minutes
	$(BIN)/python tests/peer/run.py -n $(WORKERS)

test-python: $(BUILT)
	HYPOTHESIS_STORAGE_DIRECTORY=target/hypothesis $(BIN)/python -m pytest -n $(WORKERS)

check: ## run everything that CI runs: formats, lints, types, docs, tests
	.ci/run

bench: $(BUILT) ## measure against blosc2, zarr, h5py and others, 25 minutes; write the figures of docs and README
	$(BIN)/python benchmarks/suite.py

bench-quick: $(BUILT) ## measure the same in less than three minutes, into benchmarks/out
	$(BIN)/python benchmarks/suite.py --quick

bench-matrix: $(BUILT) ## measure chunks against blosc2, cell by cell; CELLS="--codec lz4 --data text" for some
	$(BIN)/python benchmarks/matrix.py $(CELLS)

bench-more: $(BUILT) ## measure arrays of several dimensions, and the cost of safety, against blosc2
	$(BIN)/python benchmarks/arrays.py
	$(BIN)/python benchmarks/durability.py

figures: $(BUILT) ## write tables and picture of docs and README from benchmarks/results
	$(BIN)/python benchmarks/report.py

lab: $(BUILT) ## run the crash laboratory over STATES=1000000 states
	PYTHONPATH=tests $(BIN)/python -m crashlab --states $(STATES)

lab-paths: $(BUILT) ## try every call that takes a path, with every kind of file, mode, and foreign files at the rename
	$(BIN)/python tests/labs/paths.py

lab-repair: $(BUILT) ## repair DAMAGES=1000 damages of each of 36 frames
	PYTHONPATH=tests $(BIN)/python tests/labs/repair.py --cases $(DAMAGES)

lab-arrays: $(BUILT) ## compare EXAMPLES=100000 random arrays with NumPy
	HYPOTHESIS_STORAGE_DIRECTORY=target/hypothesis SUPERCHUNK_ARRAY_EXAMPLES=$(EXAMPLES) \
		$(BIN)/python -m pytest -n $(WORKERS) --timeout 0 tests/test_stateful_ndarray.py

lab-schedules: $(BUILT) ## try random schedules of threads, handles and processes, forks, lock turns; CASES=5000 SEED=1
	cd tests && PYTHONPATH=. ../$(BIN)/python -m labs.schedules --cases $(CASES) --seed $(SEED)
	cd tests && PYTHONPATH=. ../$(BIN)/python -m labs.forks --cases $$(( $(CASES) / 25 )) --seed $(SEED)
	cd tests && PYTHONPATH=. ../$(BIN)/python -m labs.turns

lab-interrupts: $(BUILT) ## interrupt every line and bytecode of every operation, and send signals; INTERRUPTS=0 tries all
	cd tests && PYTHONPATH=. ../$(BIN)/python -m labs.interrupts --grain line --cases $(INTERRUPTS) --seed $(SEED)
	cd tests && PYTHONPATH=. ../$(BIN)/python -m labs.interrupts --grain signal --cases $(INTERRUPTS) --seed $(SEED)
	cd tests && PYTHONPATH=. ../$(BIN)/python -m labs.interrupts --signals --seconds $(SECONDS_OF_SIGNALS) --seed $(SEED)

lab-sizes: $(BUILT) ## compare the sizes of SIZES=20000 chunks with those of C-Blosc2; --search looks for the worst
	cd tests && PYTHONPATH=. ../$(BIN)/python -m labs.sizes --cells $(SIZES)

fuzz: $(BUILT) ## run every fuzz target, a minute each
	PYTHON=$(abspath $(BIN))/python fuzz/run

docs: $(BUILT) ## run the examples in the documentation and in docstrings
	cargo test --workspace --locked --doc
	$(BIN)/python -m pytest -q python tests/test_readme.py tests/test_migrating.py

build: $(BUILT) ## build the engine in release mode into .venv

wheel: $(INSTALLED) ## build a wheel for CPython 3.11 and later, into target/wheels
	$(BIN)/maturin build --release --locked

format: $(INSTALLED) ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix --exit-zero .
	$(BIN)/ruff format .

clean: ## remove what was built, .venv included
	rm -rf $(VENV) target demo-output benchmarks/out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find python -name '*.so' -delete

$(INSTALLED): requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "superchunk needs Python 3.11 or later: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

$(BUILT): $(INSTALLED) $(RUST) pyproject.toml
	@command -v cargo >/dev/null || { echo "superchunk needs Rust (cargo) to build its engine" >&2; exit 1; }
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --quiet --release --locked
	touch $@
