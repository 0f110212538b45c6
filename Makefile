# Everything runs in .venv, made from constraints.txt on first use. Needs Python 3.11-3.13, Java 17 or later, and make.
# An active virtual environment and a PYTHONPATH of yours are ignored.
# So is a wish for no bytecode: hundreds of processes under test would each compile our sources and the tests anew.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONSTARTUP PYTHONDONTWRITEBYTECODE
export PYTHONNOUSERSITE := 1
# Compiled kernels by the content of all files they may be made from: numba itself looks at the outermost file only.
KERNELS := fencepost/checkers fencepost/model/explore
export NUMBA_CACHE_DIR := $(CURDIR)/.venv/numba-$(shell find $(KERNELS) -name '*.py' | LC_ALL=C sort | xargs cat | cksum | cut -d ' ' -f 1)
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The interpreter that makes .venv; found by itself when empty.
PYTHON ?=
# Worker processes of tests and campaigns.
JOBS ?= auto
# More arguments: make test ARGS='-k timeline', make demo ARGS='--help'.
ARGS ?=

# What `make measure` runs; it lists the names when empty.
NAME ?=

# Runs of `make selfcheck`.
SEEDS ?= 1000

BIN := .venv/bin
READY := .venv/.ready

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1@\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F@ '{ printf "%-28s %s\n", $$1, $$2 }'

$(READY): constraints.txt pyproject.toml tools/setup.sh
	@tools/setup.sh .venv $(PYTHON)
	@touch $@

.PHONY: setup
setup: $(READY) ## make .venv from the pinned versions, compile the judges' loops (the other targets do it by themselves)

.PHONY: java
java:
	@tools/java.sh

.PHONY: demo
demo: java $(READY) ## a healthy campaign and one with a planted bug, mined together by Spark; one finding explained
	@$(BIN)/fencepost demo $(ARGS)

.PHONY: lint
lint: $(READY) ## ruff (rules and format) and mypy (strict)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: check
check: lint ## lint, then the tests of the folders that changed since the branch left main, as many as take 80 s
	$(BIN)/python -m tools.check --jobs $(JOBS) $(ARGS)

.PHONY: test
test: java lint ## lint, then all tests on all cores; ends with what each test folder took
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile $(ARGS)

.PHONY: selfcheck
selfcheck: $(READY) ## our own brokers from inside in SEEDS runs (1000): recorder, memory against files, steps; all random comparisons
	FENCEPOST_SELFCHECK_SEEDS=$(SEEDS) FENCEPOST_ALL_RUNS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile \
		tests/selfcheck $$(grep -rl --include='test_*.py' 'selfcheck[.]amounts' tests) $(ARGS)

.PHONY: bench
bench: $(READY) ## what this costs against a peer: make bench ARGS='mine --quick'; alone it lists the names, ARGS=all runs all
	@$(BIN)/python -m bench $(ARGS)

.PHONY: measure
measure: $(READY) ## what takes long or needs a foreign toolchain: make measure NAME=exact ARGS='queue'; alone it lists them
	@$(BIN)/python -m tools.measure $(NAME) $(ARGS)

.PHONY: healthy
healthy: $(READY) ## hours, resumable: 100,000 seeds of the unbroken implementation must find nothing (into out/healthy)
	$(BIN)/fencepost campaign --seeds 0:100000 --out out/healthy --resume $(ARGS)

.PHONY: dist
dist: $(READY) ## the wheel and the source distribution, into dist/
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	$(BIN)/python -c "from setuptools.build_meta import build_sdist; build_sdist('dist')" > /dev/null

.PHONY: docs
docs: $(READY) ## the documentation as a site, into out/site (installs the extra `docs` first; serve it with python -m http.server -d out/site)
	@$(BIN)/python -m pip install -q --no-input --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q $(ARGS)
	@echo "out/site/index.html"

.PHONY: format
format: $(READY) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: clean
clean: ## remove what the tools left behind, and out/
	rm -rf build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

.PHONY: clean-environment
clean-environment: clean ## also remove .venv
	rm -rf .venv *.egg-info
