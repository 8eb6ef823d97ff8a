# Two commands on a fresh machine: `make demo` and `make test`. Both need only Python 3.11 and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The paper's data sets, where they lie beside the project; otherwise they are downloaded when asked for.
ifneq ($(wildcard ../shared/data),)
export DEMONET_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-all lint types docs check results bench processes hostile soak clean
demo: $(READY)
	$(BIN)/demonet demo

# Two workers with one thread each: faster than one worker with two, and the same bits however many cores there are.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --durations=15 -m "not long" $(ARGS)

# The rest: browsers, hostile files, walks, guides, notebooks, the study, processes, compilers and interpreters.
test-all: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --durations=15 -m long $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

# The site, without a network; a warning is an error.
docs: $(READY)
	$(BIN)/mkdocs build --strict --site-dir build/site

check: lint types docs test test-all

# Every table and figure of the paper, beside what it prints: days on two cores. Stop when you like, it goes on later.
results: $(READY)
	$(BIN)/python -m demonet_study.experiments.expressive.atlas
	OMP_NUM_THREADS=1 $(BIN)/demonet reproduce all --jobs 2

# Speed beside other networks, on the CPU: about half an hour, with nothing else running. The GPU tables come from
# benchmarks/gpu.py on a machine that has one. Both end up in docs/performance.md.
bench: $(READY)
	$(BIN)/python benchmarks/cpu.py
	$(BIN)/python benchmarks/page.py

# Losses with 1, 2 and 4 processes in every configuration, then two hosts (as root, on Linux): what docs/distributed.md
# promises. Some minutes.
processes: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.distributed $(ARGS)
	OMP_NUM_THREADS=1 DEMONET_RAY_HOSTS=1 $(BIN)/python -m pytest tests/distributed/test_hosts.py

# Kills at every write and at random times, mutated files, flipped bits, the same graphs in other files: what
# docs/reliability.md promises.
# make hostile ARGS="--scale 0.1 --seed 1"
hostile: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.hostile $(ARGS)

# 10,000 small estimators, then an hour of fit, predict and compare: memory, files and threads stay flat.
soak: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.hostile.soak $(ARGS)

# torch first and pinned: anything that depends on a plain `torch` would otherwise choose its own build.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,docs,dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
