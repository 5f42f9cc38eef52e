# Two commands for users: `make run` and `make test`. `make check` is for contributors and CI.

PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
LOWEST := out/lowest.txt
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SAY := @printf '\n\033[1m%s\033[0m\n'
TRIALS ?= 200
# A process for each core, with its share of the tests in order, so that what those of a file share
# is made once; who is done first takes from the others' ends.
TOGETHER := -n auto --dist worksteal -p no:benchmark

.PHONY: run test check check-interop check-lowest check-python setup format snapshots bench evidence help clean

help:
	@echo 'make run    set up .venv, then rerun the experiments of the paper on a small scale'
	@echo 'make test   set up .venv, then run all tests but the slow ones'
	@echo 'make check  slow tests, ruff, mypy --strict, the layers'
	@echo 'make check-interop  to and from the real pgmpy and DoWhy, in .venv-interop (outside CI)'
	@echo 'make check-lowest   the tests with the lowest versions of pyproject.toml, in .venv-lowest (outside CI)'
	@echo 'make check-python PYTHON=python3.13  the tests with another Python, in .venv-3.13 (outside CI)'
	@echo 'make bench  benchmarks, beside their yardsticks'
	@echo 'make evidence  what we claim beyond the paper, measured (evidence/); TRIALS=40 for fewer worlds'
	@echo 'make format let ruff format and mend the code'
	@echo 'make snapshots  renew the recorded messages of errors (tests/bad_inputs/messages.json); read the diff'

run: setup
	$(SAY) 'The experiments of the paper on a small scale (some two minutes on two cores)'
	@$(BIN)/dowise reproduce --quick --out out/reproduction

# Hundreds of tests start processes: what Python makes of the sources is kept.
test check: export PYTHONDONTWRITEBYTECODE :=
test: setup
	$(SAY) 'Tests (all but the slow ones)'
	$(BIN)/python -m pytest -q -m 'not slow' $(TOGETHER) $(OPTIONS)

check: setup
	$(SAY) 'Benchmarks load (make bench runs them)'
	@$(BIN)/python -m pytest -q benchmarks/bench_*.py --collect-only > /dev/null || \
	  $(BIN)/python -m pytest -q benchmarks/bench_*.py --collect-only
	$(SAY) 'A browser for the slow tests'
	@.ci/browser
	$(SAY) 'Slow tests, and properties thoroughly'
	$(BIN)/python -m pytest -q -m 'slow or hypothesis' --hypothesis-profile=thorough $(TOGETHER)
	$(SAY) 'Lint and format (ruff)'
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(SAY) 'Types (mypy --strict)'
	$(BIN)/mypy
	$(SAY) 'Layers (import-linter)'
	$(BIN)/lint-imports --no-cache

# Old libraries use what the newest of those that they need deprecate: matplotlib 3.9 and pyparsing.
check-lowest: $(LOWEST)
	@$(MAKE) --no-print-directory test VENV=.venv-lowest CONSTRAINTS=$(LOWEST) \
	  OPTIONS='-W default::DeprecationWarning'

$(LOWEST): pyproject.toml .ci/lowest.py
	@mkdir -p $(@D)
	@$(PYTHON) .ci/lowest.py > $@

check-python:
	@$(MAKE) --no-print-directory test \
	  VENV=.venv-$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# In an environment of its own: neither is a dependency, and DoWhy holds SciPy back. Without torch.
INTEROP := .venv-interop
check-interop: $(INTEROP)/.ready
	$(SAY) 'To and from pgmpy and DoWhy'
	$(INTEROP)/bin/python -m pytest -q tests/interop -o filterwarnings=default --disable-warnings

$(INTEROP)/.ready: pyproject.toml
	$(SAY) 'Setting up $(INTEROP) (once; this downloads the libraries)'
	@$(PYTHON) -m venv $(INTEROP)
	@$(INTEROP)/bin/python -m pip install --quiet --disable-pip-version-check -e . \
	  'pgmpy==1.1.2' 'dowhy==0.14' 'pytest>=8.3' 'hypothesis>=6.108'
	@touch $@

bench: setup
	$(SAY) 'Benchmarks, each beside its yardstick'
	$(BIN)/python -m pytest -q -s benchmarks/bench_*.py --benchmark-only --benchmark-columns=min,median,rounds --benchmark-sort=fullname

evidence: setup
	$(SAY) 'What we claim beyond the paper, in $(TRIALS) worlds each (evidence/results)'
	@for script in $(filter-out evidence/_%,$(sort $(wildcard evidence/*.py))); do \
	  echo $$script; $(BIN)/python $$script --trials $(TRIALS) || exit 1; \
	done

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

snapshots: setup
	$(BIN)/python tests/bad_inputs/record.py

setup: $(READY)

$(READY): pyproject.toml $(CONSTRAINTS)
	$(SAY) 'Setting up $(VENV) (once; this downloads the libraries)'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'dowise needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)'; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@PIP_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(READY)

clean:
	rm -rf .venv .venv-* out build dist
