# make demo and make test set up all they need in .venv, on a machine with Python 3.11 or newer and make.

PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
BIN := $(VENV)/bin
SOURCES := src tests docs benchmarks

# Python keeps its byte code, even where it is told not to: otherwise each process compiles the source again, and
# tests start many.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help

.PHONY: help
help:
	@echo "make demo      fit simulated typists, identify one, show hidden states; results in demo/"
	@echo "make serve     the verification service on this machine; SERVE_OPTIONS='--port 9000' for others"
	@echo "make test      lint, type checks and all tests but the slow ones"
	@echo "make test-all  the slow ones too, and all others with bounds checked at every access of compiled code"
	@echo "make system-packages  PostgreSQL and Chromium from Debian, which some tests need; they are left out without"
	@echo "make fuzz      model files, manifests, recordings and raw logs changed at random, for an hour; FUZZ_SECONDS=60 for less"
	@echo "make mutation  small changes made to a copy of the source: which do the tests notice? MUTATION_OPTIONS='--changes 60'"
	@echo "make bench     speed, side by side with other libraries; results in out/bench/"
	@echo "make bench BENCH_OPTIONS='--against REVISION'  the same rows with another revision's code, in turns"
	@echo "make bench-million  a million users through fit and scoring; results in out/bench-million/"
	@echo "make bench-page     the results of make bench into the documentation"
	@echo "make bench-service  the service under load: live sessions, verifications, 10,000 people; results in out/bench-service/"
	@echo "make house     files, lines, names and parameters of the source; HOUSE_OPTIONS='--against REVISION' beside another's"
	@echo "make lint      ruff, mypy and import-linter only"
	@echo "make results   all studies, more than two hours; writes docs/results.md and docs/results/"
	@echo "make population     learn the population that comes with the package again, from fable and essay"
	@echo "make docs      build the documentation in docs/_build/html"
	@echo "make dist      wheel, source distribution and bill of materials in dist/, each package tried in an empty environment"
	@echo "make clean     remove everything that was made, the environment too"

# The stamp is newer than pyproject.toml when the environment is up to date: a second run is quick. Byte code is
# made by two processes, and not for the tests of other packages: pip would take twice as long by itself.
define install
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "keydyn needs Python 3.11 or newer; set PYTHON=")'
@echo "Setting up $(VENV): a minute or two the first time"
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
@echo "Installing keydyn and what it needs"
$(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --no-compile --editable '.$(1)'
@echo "Preparing what was installed: about a quarter of a minute"
@$(BIN)/python -m compileall -qq -j 2 -x '/tests/' $(VENV)/lib || true
touch $@
endef

$(VENV)/.run: pyproject.toml
	$(call install)

$(VENV)/.dev: pyproject.toml
	$(call install,[dev])
	touch $(VENV)/.run $(VENV)/.service $(VENV)/.docs

$(VENV)/.service: pyproject.toml
	$(call install,[service])
	touch $(VENV)/.run

$(VENV)/.docs: pyproject.toml
	$(call install,[docs])
	touch $(VENV)/.run

.PHONY: demo
demo: $(VENV)/.run
	$(BIN)/keydyn demo

.PHONY: serve
serve: $(VENV)/.service
	$(BIN)/keydyn serve $(SERVE_OPTIONS)

.PHONY: population
population: $(VENV)/.run
	$(BIN)/python -m keydyn.lab.shipped
	$(BIN)/python -m keydyn.lab.typed_or_forged

.PHONY: lint
lint: $(VENV)/.dev
	$(BIN)/ruff check $(wildcard $(SOURCES))
	$(BIN)/ruff format --check $(wildcard $(SOURCES))
	$(BIN)/mypy --strict
	$(BIN)/lint-imports --no-cache

# Beside the linters, and once: two processes of tests would each compile all of it for themselves.
COMPILED := compiled-people compiled-models
.PHONY: $(COMPILED)
$(COMPILED): compiled-%: $(VENV)/.dev
	$(BIN)/python -m tests.compiled $*

.PHONY: checked
checked: $(VENV)/.dev
	$(MAKE) --jobs=3 lint $(COMPILED)

# One process more than two cores: tests of the service wait for sockets, databases and browsers.
# Each has a processor's worth of work: threads for algebra of their own would only wait for each other.
TEST_PROCESSES ?= 3
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal

.PHONY: test
test: checked
	$(PYTEST) --hypothesis-profile short -m "not slow"

# Both runs, whatever the first one finds; one table of both at the end.
SUMMARIES := out/tests

.PHONY: test-all
test-all: checked
	rm -rf $(SUMMARIES)
	KEYDYN_TESTS_SUMMARY=$(SUMMARIES)/all.json $(PYTEST); one=$$?; \
	KEYDYN_TESTS_SUMMARY=$(SUMMARIES)/bounds.json NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/boundscheck \
	  $(PYTEST) -m "not slow"; other=$$?; \
	$(BIN)/python -m tests.summary "all tests=$(SUMMARIES)/all.json" "bounds checked=$(SUMMARIES)/bounds.json"; \
	exit $$((one + other))

# What tests need beyond Python, as Debian has it. Tests run without, and say what they left out.
SYSTEM_PACKAGES := postgresql chromium
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: system-packages
system-packages:
	@if dpkg --status $(SYSTEM_PACKAGES) >/dev/null 2>&1; then \
	  echo "$(SYSTEM_PACKAGES): installed already"; \
	elif command -v apt-get >/dev/null; then \
	  $(SUDO) apt-get update -qq && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $(SYSTEM_PACKAGES); \
	else \
	  echo "There is no apt-get here: install PostgreSQL and Chromium yourself, or do without the tests that need them."; \
	fi

FUZZ_SECONDS ?= 3600

.PHONY: fuzz
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz.run --seconds $(FUZZ_SECONDS)

# What was done is kept in out/mutation/changes.csv: a run that was stopped goes on where it was.
.PHONY: mutation
mutation: $(VENV)/.dev
	$(BIN)/python -m tests.mutation.run $(MUTATION_OPTIONS)

.PHONY: bench
bench: $(BENCH)/.peers
	$(BENCH)/bin/python benchmarks/speed.py $(BENCH_OPTIONS)

.PHONY: bench-million
bench-million: $(BENCH)/.peers
	$(BENCH)/bin/python benchmarks/speed.py --cases stream --users 1000000 --out out/bench-million

.PHONY: bench-service
bench-service: $(VENV)/.service
ifeq ($(findstring --against,$(BENCH_OPTIONS)),)
	$(BIN)/python benchmarks/service_live.py
	$(BIN)/python benchmarks/service_parts.py
endif
	$(BIN)/python benchmarks/service.py $(BENCH_OPTIONS)

.PHONY: house
house: $(VENV)/.service
	$(BIN)/python benchmarks/house.py $(HOUSE_OPTIONS)

.PHONY: bench-page
bench-page:
	$(PYTHON) benchmarks/paste.py out/bench

# Other libraries in an environment of their own: one that cannot be installed is left out, and said to be.
$(BENCH)/.peers: pyproject.toml
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[distributed]'
	for peer in hmmlearn dynamax; do \
	  $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check $$peer \
	    || echo "$$peer cannot be installed here: it is left out of the benchmark"; \
	done
	touch $@

# Needs the paper's datasets: KEYDYN_DATA names a folder that has them, or keydyn data fetch downloads them.
.PHONY: results
results: $(VENV)/.run
	$(BIN)/python docs/results_page.py out --run

.PHONY: docs
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# What is built is installed where nothing else is, and does the main job there.
SMOKE := $(VENV)/smoke

.PHONY: dist
dist: $(VENV)/.dev
	rm -rf dist build
	$(BIN)/python -m build --outdir dist
	for file in dist/*.whl dist/*.tar.gz; do \
	  echo "Trying $$file in an empty environment"; \
	  rm -rf $(SMOKE) && $(PYTHON) -m venv $(SMOKE) \
	  && $(SMOKE)/bin/python -m pip install --quiet --disable-pip-version-check $$file \
	  && $(SMOKE)/bin/python tests/smoke.py $(SMOKE) || exit 1; \
	done
	@echo "Listing what the service is made of, and looking for known holes"
	$(SMOKE)/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[service]"
	$(SMOKE)/bin/python tests/bill_of_materials.py dist/keydyn.cdx.json --extra service
	rm -rf $(SMOKE)
	@echo "In dist/:" && ls dist

.PHONY: clean
clean:
	rm -rf $(VENV) $(BENCH) build dist docs/_build docs/gallery demo out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf src/*.egg-info
