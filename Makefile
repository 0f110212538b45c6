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

# Runs of `make selfcheck`.
SEEDS ?= 1000

# What `make bench` runs, in this order. bench/viewer.py wants a Chromium: run it by itself.
BENCHES ?= $(filter-out bench/viewer.py,$(shell grep -l __main__ bench/*.py))

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

.PHONY: test
test: java lint ## lint, then all tests on all cores; ends with what each test folder took
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile $(ARGS)

.PHONY: selfcheck
selfcheck: $(READY) ## our own brokers from inside in SEEDS runs (1000): recorder, memory against files, steps
	FENCEPOST_SELFCHECK_SEEDS=$(SEEDS) $(BIN)/python -m pytest -q -n $(JOBS) tests/selfcheck $(ARGS)

.PHONY: bench
bench: java $(READY) ## measure simulator, judges and mining (bench/)
	@for script in $(BENCHES); do echo "== $$script"; $(BIN)/python $$script $(ARGS) || exit 1; done

.PHONY: kafka-format
kafka-format: java $(READY) ## real Kafka brokers and this log read, write and recover each other's files (Maven and a JDK; else it skips)
	@$(BIN)/python bench/peers/kafka/compare.py $(ARGS)
	@$(BIN)/python bench/peers/kafka/kraft.py

.PHONY: clients
clients: $(READY) ## what other people's clients do with our brokers, into docs/reference/clients.md (needs their toolchains; else skipped by name)
	$(BIN)/python -m tools.clients --docs docs/reference/clients.md $(ARGS)
	@$(BIN)/python -m tools.clients_control

.PHONY: kafka-programs
kafka-programs: java $(READY) ## half an hour: Kafka's shell tools, kcat and Kafka Streams against our brokers and Apache Kafka's (Maven, a JDK; else skipped by name)
	@$(BIN)/python -m tools.clients_java $(ARGS)

.PHONY: proxy-apps
proxy-apps: java $(READY) ## an hour, resumable: applications of others through the proxy against Apache Kafka, every record compared (into out/proxy-apps; toolchains that are absent are skipped by name)
	$(BIN)/python -m tools.proxy_apps --docs docs/how-to/proxy.md $(ARGS)

.PHONY: sweep
sweep: $(READY) ## hours, resumable: the hunt must find every planted bug, healthy machines nothing (into out/)
	$(BIN)/fencepost bugs hunt --seeds 2000 --out out/sweep-bugs $(ARGS)
	for machine in ClusterMachine ElectionMachine ReassignmentMachine; do \
	  $(BIN)/python -m tools.cluster_hunt --healthy $$machine --examples 2000 --folder out/sweep-machines || exit 1; done

.PHONY: healthy
healthy: $(READY) ## hours, resumable: 100,000 seeds of the unbroken implementation over all profiles must find nothing (into out/healthy)
	$(BIN)/python -m tools.healthy $(ARGS)

.PHONY: fuzz
fuzz: $(READY) ## an hour, resumable: every kind of message with odd fields, to brokers and coordinators (ARGS='--seconds 600 --seed 7')
	$(BIN)/python -m tools.fuzz --seconds 3600 $(ARGS)

.PHONY: docs
docs: $(READY) ## the documentation as a site, into out/site (installs the extra `docs` first; serve it with python -m http.server -d out/site)
	@$(BIN)/python -m pip install -q --no-input --disable-pip-version-check --no-build-isolation -c constraints.txt -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q $(ARGS)
	@echo "out/site/index.html"

.PHONY: viewer-browser
viewer-browser: $(READY) ## the viewer's pages in a real Chromium, moment by moment (else skipped by name)
	FENCEPOST_BROWSER=all $(BIN)/python -m pytest -q tests/viewer/test_browser.py $(ARGS)

.PHONY: track-record
track-record: $(READY) ## an hour, resumable: seeds needed for every planted bug, in five ranges, into docs/explanation/track-record.md
	-$(BIN)/fencepost bugs hunt --seeds 1000 --ranges 5 --no-shrink --out out/track-record $(ARGS)
	$(BIN)/python -m tools.track_record out/track-record

.PHONY: client-record
client-record: $(READY) ## hours, resumable: known bugs of client libraries and their newest releases under the general swarm, into docs/how-to/torture.md (ARGS='sarama --seeds 100')
	@$(BIN)/python -m tools.client_record $(ARGS)

.PHONY: real-record
real-record: java $(READY) ## a day, resumable: campaigns against Apache Kafka's versions, kfake, librdkafka's mock, and controls that must be found, into docs/how-to/real-systems.md (ARGS='4.4.0 --runs 20')
	@$(BIN)/python -m tools.real_record $(ARGS)

.PHONY: marks
marks: $(READY) ## an hour: what 2,000 seeds of each profile of the swarm reach sometimes, and what never (ARGS='chaos --seeds 0:500 --steer')
	$(BIN)/python -m tools.marks $(ARGS)

.PHONY: exact
exact: $(READY) ## an hour, resumable: 200,000 random small histories per model and judge against naive references (into out/exact)
	$(BIN)/python -m tools.exact $(ARGS)

.PHONY: model
model: java $(READY) ## half an hour, resumable: the models' medium configurations through the explorer and TLC, side by side (into out/model)
	@mkdir -p out/model
	@for name in replication controller group; do \
	  $(BIN)/fencepost model matrix --model $$name --size medium --out out/model/$$name.md --resume $(ARGS) || exit 1; done

# Whose rules `make mutation` changes: names of tools/mutation/checkers.py, or all.
CHECKERS ?= all

.PHONY: mutation
mutation: $(READY) ## hours, resumable: small faults in the checkers' rules; their tests must notice 95 % (CHECKERS=log ARGS='--sample 300')
	$(BIN)/python -m tools.mutation $(CHECKERS) $(ARGS)

.PHONY: mutants
mutants: $(READY) ## hours, resumable: small faults all over impl/, each judged by runs of the swarm (ARGS='--sample 50 --seed 7 --json')
	$(BIN)/python -m tools.mutants $(ARGS)

MODEL ?= group

.PHONY: model-mutants
model-mutants: $(READY) ## minutes, resumable: small faults in a model's rules, held against TLC's recorded answers (MODEL=controller ARGS='--sample 100 --seed 7')
	$(BIN)/python -m tools.model_mutants $(MODEL) $(ARGS)

.PHONY: triage-record
triage-record: java $(READY) ## hours, resumable: planted bugs among healthy traces, mined and held against what is known (ARGS='--seed 7 --bugs KIP-101,KIP-279')
	$(BIN)/python -m tools.triage $(ARGS)

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
