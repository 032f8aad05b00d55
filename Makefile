# make demo    sets up, plays the paper's SVM stream with every learner, prints a table and draws the figure
# make test    sets up, runs every check
# make bench   sets up, measures speed against the limits and the peers

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
STAMPS := pyproject.toml constraints.txt Makefile

.PHONY: demo test bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python -m redescend.experiments --out results

test: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

$(VENV)/.python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "redescend needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo $(VENV)/.test $(VENV)/.bench: $(VENV)/.%: $(VENV)/.python $(STAMPS)
	@echo "Setting up $(VENV) for 'make $*' ..."
	$(PIP) "pip>=25.1"
	$(PIP) --editable . --group $*
	touch $@

clean:
	rm -rf $(VENV) results
