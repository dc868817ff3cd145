# make demo    set up, then publish one day of the example job
# make test    set up, then run the tests
#
# Everything is installed into .venv from requirements.lock, whose hashes pip checks.

PYTHON ?= python3
WORKERS ?= auto
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test slow lint types bench lock clean

help:
	@echo "make demo    publish 2013-01-02 of examples/daily_flights.toml"
	@echo "make test    run the tests, all but the slow campaigns"
	@echo "make slow    run the slow campaigns only"
	@echo "make lint    check style and formatting (ruff)"
	@echo "make types   check types (mypy --strict)"
	@echo "make bench   run the benchmarks"
	@echo "make lock    renew requirements.lock (needs uv)"
	@echo "make clean   remove .venv, caches and what the examples wrote"

# The stamp makes a second call quick; a changed lock or pyproject.toml sets up again.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)
	$(BIN)/pkdp run examples/daily_flights.toml --date 2013-01-02

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

slow: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy --strict

bench: $(READY)
	@set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file; done

# The build backend is locked too: the package is then built without fetching anything that has no hash.
lock:
	$(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], 'editables', sep='\n')" \
		| uv pip compile --upgrade --universal --python-version 3.11 --generate-hashes \
			--no-header --no-annotate --quiet --group dev pyproject.toml - --output-file requirements.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis build dist examples/out
