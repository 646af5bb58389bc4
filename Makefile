# `make demo` and `make test` do all the set-up: they need Python 3.11 or later and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Hundreds of tests start a process of their own; without bytecode on disk, each of them would
# compile all that it imports, which takes longer than most of them run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-runtimes soak docs lint types layers wheel pure-wheel sdist check-certificates clean

demo: $(VENV)/run
	$(BIN)/optpart warm-up
	$(BIN)/optpart gap --time-limit 10
	$(BIN)/optpart gap convolutional_network-7 --time-limit 10
	$(BIN)/optpart solve heft-10 -o demo.json
	$(BIN)/optpart plot demo.json -o demo.png
	@echo "demo.png shows the optimal schedule of heft-10"

test: $(VENV)/develop
	$(BIN)/optpart warm-up
	$(BIN)/pytest -n 2 --dist worksteal

# Plans that the runtimes themselves load and run, in an environment of their own.
RUNTIMES := .venv-runtimes

test-runtimes: $(RUNTIMES)/ready
	$(RUNTIMES)/bin/optpart warm-up
	$(RUNTIMES)/bin/pytest tests/runtimes

$(RUNTIMES)/ready: pyproject.toml tests/runtimes/requirements.txt
	$(PYTHON) -I -m venv $(RUNTIMES)
	$(RUNTIMES)/bin/python -P -m pip install --quiet --disable-pip-version-check -e . pytest hypothesis safetensors
	grep -v '^#' tests/runtimes/requirements.txt | while read -r package; do \
	  $(RUNTIMES)/bin/python -P -m pip install --quiet --disable-pip-version-check "$$package" \
	    || echo "no $$package: its tests are skipped"; done
	PATH="$(CURDIR)/$(RUNTIMES)/bin:$$PATH" tests/runtimes/build_llama_cpp $(RUNTIMES)/llama.cpp \
	  || echo "llama.cpp cannot be built: its tests are skipped"
	touch $@

# A minute of the soak: random files, commands, schedules, instances, plans, certificates and kills.
soak: $(VENV)/develop
	$(BIN)/python -P bench/soak --minute

# The site, in docs/_build/html: without network, and with warnings as errors.
docs: $(VENV)/docs
	$(BIN)/python -P -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	$(BIN)/python -P docs/check_site.py docs/_build/html

lint: $(VENV)/develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/develop
	$(BIN)/mypy

layers: $(VENV)/develop
	$(BIN)/lint-imports

# The judge alone, without optpart's other parts: it needs Python and nothing else.
check-certificates:
	$(PYTHON) -I -S optpart/certificates/check.py instances/certificates/*

# A wheel with machine code, for this version of Python on this kind of processor.
wheel: $(VENV)/develop
	rm -rf dist
	$(BIN)/optpart warm-up
	OPTPART_WITH_MACHINE_CODE=1 $(BIN)/python -P -m build --wheel --outdir dist .

# A wheel for every Python, which compiles behind its first run.
pure-wheel: $(VENV)/develop
	rm -rf dist
	$(BIN)/python -P -m build --wheel --outdir dist .

sdist: $(VENV)/develop
	$(BIN)/python -P -m build --sdist --outdir dist .

$(VENV)/run: pyproject.toml
	$(PYTHON) -I -m venv $(VENV)
	$(BIN)/python -P -m pip install --quiet --disable-pip-version-check --no-compile -e .
	touch $@

$(VENV)/develop: $(VENV)/run
	$(BIN)/python -P -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev]'
	touch $@

$(VENV)/docs: $(VENV)/run
	$(BIN)/python -P -m pip install --quiet --disable-pip-version-check --no-compile -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) $(RUNTIMES) dist build docs/_build demo.json demo.png
