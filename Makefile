# Every target first sets up what it needs in .venv; a fresh machine needs only make and Python 3.11 or newer. `make test`
# also installs Chromium, Redis and Mosquitto with apt-get, if they are missing.
#
# make demo         reproduce the paper: every figure and claim, in results/report.html
# make test         run every check
# make bench        measure speed against its goals and other packages
# make docs         build the documentation in docs/_build/html and check it for dead links and missing images
# make test-torch   install PyTorch as well, and run the checks that need it
# make soak         run the long tests and write results/soak.md: random games, thousands of damaged and forged files and of
#                   killed runs, every run of the paper, each extra alone, the oldest versions of the dependencies;
#                   30 minutes on two cores

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
OLDEST := .venv-oldest
RECIPE := pyproject.toml constraints.txt Makefile

# The tests start hundreds of processes, each of which would compile all modules to bytecode again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: servers demo test docs soak test-torch bench browser clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/redescend reproduce

# Types are checked while the tests run. There are as many processes as cores, each with one thread for linear algebra and
# for PyTorch, if it is installed.
test: $(VENV)/.test browser servers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy > $(VENV)/types.txt 2>&1 & types=$$!; \
		OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile; tests=$$?; \
		wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((tests | types))

# Start from nothing, so that removed files leave no pages behind.
docs: $(VENV)/.docs
	rm -rf docs/_build docs/api/generated docs/gallery
	OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	$(BIN)/python docs/crawl.py docs/_build/html
	@echo "Open docs/_build/html/index.html"

# One thread: more do not speed up small tensors, and slow them down on a busy machine.
test-torch: $(VENV)/.torch
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests_torch src/redescend/torch docs/pytorch.md

soak: $(VENV)/.test $(VENV)/.clients $(OLDEST)/.ready servers
	@rm -f results/soak.json
	@echo "Running the long tests. Results so far are in results/soak.md."
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m soak -vv

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# Some tests open the report and the live page in a browser.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { echo "Installing Chromium ..."; \
		{ apt-get -qq update && apt-get -qq install --yes chromium chromium-driver >/dev/null; } || \
		{ echo "make test needs Chromium; install it, for instance with: sudo apt-get install chromium chromium-driver"; exit 1; }; }

# Some tests start Redis and Mosquitto on free ports of this machine, and are skipped without them.
servers:
	@command -v redis-server >/dev/null && { command -v mosquitto || test -x /usr/sbin/mosquitto; } >/dev/null || { \
		echo "Installing Redis and Mosquitto ..."; \
		{ apt-get -qq update && apt-get -qq install --yes redis-server mosquitto >/dev/null; } || \
		echo "Tests of streams are skipped; for them, install: sudo apt-get install redis-server mosquitto"; }

$(VENV)/.python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "redescend needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(OLDEST)/.ready: $(RECIPE) constraints-oldest.txt
	@echo "Setting up $(OLDEST) for the oldest versions ..."
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt \
		--editable ".[cli,sklearn]" pandas polars pytest pytest-randomly hypothesis sybil
	touch $@

$(VENV)/.demo $(VENV)/.test $(VENV)/.clients $(VENV)/.docs $(VENV)/.torch $(VENV)/.bench: $(VENV)/.%: $(VENV)/.python $(RECIPE)
	@echo "Setting up $(VENV) for 'make $*' ..."
	$(PIP) "pip>=25.1"
	$(PIP) --editable . --group $*
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) $(filter-out results/soak.md,$(wildcard results/*)) docs/_build docs/api/generated docs/gallery
