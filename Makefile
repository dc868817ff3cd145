# make demo    set up, then publish one day of the example job and write its report
# make test    set up, then run the tests
#
# What users need is installed into .venv from requirements.lock, whose hashes pip checks. Four more locks in .ci/:
# dev.lock adds what tests and pages need, engines.lock PySpark and Ibis; duckdb1.lock is .venv-duckdb1, with
# DuckDB 1.5 and dbt, whose requirements exclude newer versions of what .venv has; schedulers.lock is another,
# .venv-schedulers, with Dagster and Airflow: beside Airflow, dp-accounting falls back to a version of its first days.

PYTHON ?= python3
WORKERS ?= auto
# Only these files, with make test TESTS=….
TESTS ?=
BIN := .venv/bin
READY := .venv/.ready
DEV := .venv/.dev
ENGINES := .venv/.engines
BIN1 := .venv-duckdb1/bin
DUCKDB1 := .venv-duckdb1/.ready
BIN2 := .venv-schedulers/bin
SCHEDULERS := .venv-schedulers/.ready
# What needs other programs (PostgreSQL, Java, dbt, Chromium, schedulers) has targets of its own.
PROGRAMS := postgres or spark or ibis or dbt or browser
# A lock names all that is needed, so nothing is resolved again; of so much, little is imported, and compiled then.
LOCKED := --no-compile --no-deps --require-hashes
space := $(subst ,, )
ALONE := not slow and not ($(PROGRAMS) or dagster or airflow)

.DEFAULT_GOAL := help
# Tests start hundreds of processes: what they import is compiled once, also where the environment says otherwise.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo test test-docs test-processors slow lint types proofs bench docs reports engines duckdb1 test-duckdb1 test-programs schedulers \
	test-recipes test-schedulers lock clean

help:
	@echo "make demo    publish 2013-01-02 of examples/daily_flights.toml, and write its report"
	@echo "make test    run the tests, all but those of the targets below"
	@echo "make test-docs  run the documentation's tests: the site, every snippet, the notebook"
	@echo "make test-processors  read documents as other processors write them"
	@echo "make slow    run the slow campaigns, and all cases of every property"
	@echo "make lint    check style and formatting (ruff)"
	@echo "make types   check types (mypy --strict)"
	@echo "make proofs  check the proofs in proofs/ with Coq and MathComp"
	@echo "make bench   run the benchmarks"
	@echo "make docs    build the documentation's site in build/site"
	@echo "make reports write the example reports in docs/reports anew"
	@echo "make engines add PySpark and Ibis to .venv (Spark also needs Java)"
	@echo "make duckdb1 set up .venv-duckdb1, with DuckDB 1.5 and dbt"
	@echo "make test-duckdb1  run the tests of engines and SQL with DuckDB 1.5"
	@echo "make test-programs  run the tests with PostgreSQL, Spark, Ibis, dbt and Chromium"
	@echo "make schedulers  set up .venv-schedulers, with Dagster and Airflow"
	@echo "make test-schedulers  run the tests of Dagster and Airflow"
	@echo "make test-recipes  run the recipes of marimo, Prefect and SQLMesh in .venv-recipes"
	@echo "make lock    renew requirements.lock and the locks in .ci (needs uv)"
	@echo "make clean   remove the environments, caches and what the examples wrote"

# The stamp makes a second call quick; a changed lock or pyproject.toml sets up again.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet $(LOCKED) --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): .ci/dev.lock $(READY)
	$(BIN)/python -m pip install --quiet $(LOCKED) --requirement .ci/dev.lock
	@touch $@

engines: $(ENGINES)

# PySpark comes as a source archive: it is built with the setuptools of dev.lock.
$(ENGINES): .ci/engines.lock $(DEV)
	$(BIN)/python -m pip install --quiet $(LOCKED) --no-build-isolation --requirement .ci/engines.lock
	@touch $@

duckdb1: $(DUCKDB1)

$(DUCKDB1): .ci/duckdb1.lock pyproject.toml
	$(PYTHON) -m venv .venv-duckdb1
	$(BIN1)/python -m pip install --quiet $(LOCKED) --requirement .ci/duckdb1.lock
	$(BIN1)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

schedulers: $(SCHEDULERS)

$(SCHEDULERS): .ci/schedulers.lock pyproject.toml
	$(PYTHON) -m venv .venv-schedulers
	$(BIN2)/python -m pip install --quiet $(LOCKED) --only-binary :all: --requirement .ci/schedulers.lock
	$(BIN2)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)
	$(BIN)/pkdp run examples/daily_flights.toml --date 2013-01-02
	$(BIN)/pkdp report examples/daily_flights.toml --date 2013-01-02 --out examples/out/2013-01-02/report.html

test: $(DEV)
	$(BIN)/python -m pytest -n $(WORKERS) -m "$(ALONE) and not (docs or processors)" $(TESTS)

# The site, also in Chromium: it is built once; snippets, notebook and example reports of the documentation.
test-docs: $(DEV)
	$(BIN)/python -m pytest -n $(WORKERS) -m "docs and ($(ALONE) or browser and not slow)" $(shell grep -rl --include='test_*.py' 'mark\.docs' tests)

# What one kind of processor writes is read on another: a minute of two cores, so not one of the suite.
test-processors: $(DEV)
	$(BIN)/python -m pytest -m "not slow" tests/test_other_processors.py

# What meets DuckDB most, with DuckDB 1.5. The rest of the package does not know which DuckDB there is, a gate's client
# neither; frames of other libraries meet it as those of pandas do.
test-duckdb1: $(DUCKDB1)
	$(BIN1)/python -m pytest -n $(WORKERS) -m "$(ALONE)" -k "not (polars or pyarrow or narwhals)" \
		$(wildcard tests/sql/test_*.py) $(addprefix tests/extras/gate/test_,gate.py escapes.py) tests/engines \
		$(addprefix tests/jobs/test_source,.py _columns.py _duckdb.py _files.py _nanoseconds.py) \
		$(addprefix tests/jobs/test_outputs,.py _duckdb.py) tests/releases/test_release.py

# Test files give their marks themselves; those of jobs and of the contract of engines have them from others there.
test-programs: $(ENGINES) $(DUCKDB1)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and ($(PROGRAMS)) and not (docs and browser)" tests/jobs tests/engines/contract \
		$(shell grep -rlE --include='test_*.py' --exclude-dir=jobs --exclude-dir=contract \
			'mark\.($(subst $(space)or$(space),|,$(PROGRAMS)))' tests)

# These start programs of .venv-schedulers.
test-schedulers: $(DEV) $(SCHEDULERS)
	$(BIN)/python -m pytest -n $(WORKERS) -m "dagster or airflow" tests/extras/connect/schedulers

# The newest marimo, Prefect and SQLMesh, without a lock: nothing else is run with them.
test-recipes: $(DEV)
	test -d .venv-recipes || $(PYTHON) -m venv .venv-recipes
	.venv-recipes/bin/python -m pip install --quiet marimo prefect sqlmesh polars --editable .
	$(BIN)/python -m pytest -m "not slow" tests/extras/connect/test_recipes.py

slow: $(DEV)
	PKDP_HYPOTHESIS=full $(BIN)/python -m pytest -n $(WORKERS) -m "slow or hypothesis and $(ALONE)"

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)
	$(BIN)/mypy --strict

# No gap and no axiom is accepted.
proofs:
	.ci/check_proofs.sh

# Every warning is an error. Pages that are made from the code are made anew each time (-E).
docs: $(DEV)
	$(BIN)/sphinx-build -W --keep-going -n -E -q -b html -d build/doctrees docs build/site

# Of the example job, in a folder of its own: a day, when nothing else was published yet, and the whole year.
EXAMPLE := cd build/reports/examples && ../../../$(BIN)/pkdp

reports: $(READY)
	rm -rf build/reports
	mkdir -p build/reports docs/reports
	cp -r examples build/reports/examples
	rm -rf build/reports/examples/out
	$(EXAMPLE) run daily_flights.toml --date 2013-01-02
	$(EXAMPLE) report daily_flights.toml --date 2013-01-02 --out ../../../docs/reports/flights_2013-01-02.html
	$(EXAMPLE) backfill daily_flights.toml --from 2013-01-01 --to 2013-12-31
	$(EXAMPLE) report daily_flights.toml --out ../../../docs/reports/flights_2013.html

bench: $(DEV)
	@set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file; done

# The build backend is locked too: the package is then built without fetching anything that has no hash. The other
# locks start from the versions of the first and change what their own requirements exclude.
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet
BACKEND := $(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], 'editables', sep='\n')"
EXTRA := $(PYTHON) -c "import sys, tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; print(*(line for name in sys.argv[1:] for line in extras[name]), sep='\n')"

lock:
	$(BACKEND) | $(COMPILE) --upgrade --group dev pyproject.toml - --output-file .ci/dev.lock
	cp .ci/dev.lock requirements.lock
	$(BACKEND) | $(COMPILE) --extra report pyproject.toml - --output-file requirements.lock
	cp .ci/dev.lock .ci/engines.lock
	{ $(EXTRA) spark ibis; echo 'ibis-framework[duckdb]'; } \
		| $(COMPILE) --constraint .ci/dev.lock - --output-file .ci/engines.lock
	cp .ci/dev.lock .ci/duckdb1.lock
	{ $(BACKEND); echo 'duckdb<2'; } \
		| $(COMPILE) --no-strip-extras --extra dbt --extra gate --extra polars --group duckdb1 pyproject.toml - --output-file .ci/duckdb1.lock
	cp .ci/dev.lock .ci/schedulers.lock
	$(BACKEND) | $(COMPILE) --extra dagster --extra airflow pyproject.toml - --output-file .ci/schedulers.lock

clean:
	rm -rf .venv .venv-duckdb1 .venv-schedulers .venv-recipes .mypy_cache .ruff_cache .hypothesis build dist examples/out
