PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Hundreds of processes load the same modules: what one has compiled is there for the others.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: console demo wheel image test test-long test-versions test-thorough test-faults test-abuse test-abuse-mutated test-kinds test-kind bench-engine bench-elastic bench-namespaces bench-jobs bench-kinds bench-pods bench-scale bench-insight bench-journal bench-estimates bench-hour bench-turnaround bench-console check types contents format crds docs lock clean

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Admitter needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

console: $(VENV)/.ready       ## the console on a made-up, busy cluster, without any Kubernetes
	$(BIN)/admitter web --demo

demo: $(VENV)/.ready          ## a local control plane, a dozen Jobs, and how they are admitted
	$(BIN)/admitter demo $(if $(KEEP),--keep)

wheel: $(VENV)/.ready         ## dist/admitter-0.1.0-py3-none-any.whl: the command and all that it installs
	$(BIN)/python -m hatchling build --target wheel --directory dist

image:                        ## the controller's image; IMAGE=registry.example.com/admitter:0.1.0 ENGINE=podman
	$(or $(ENGINE),docker) build --file Containerfile --tag $(or $(IMAGE),admitter:0.1.0) .

test: check                   ## the checks, and both rings of tests, without a cluster and on a real API server; not those that take long
	bash tests/run.sh "not long" 5

test-long: $(VENV)/.ready     ## the tests of both rings that take long: faults, floods, large clusters, kinds with operators, the console in a browser, the commands of the docs that need a cluster
	bash tests/run.sh long 4

test-versions: $(VENV)/.ready ## what must hold on the oldest Kubernetes that is supported, on a real API server of it
	ADMITTER_TEST_KUBERNETES=1.33 $(BIN)/pytest -q -n 2 --dist load @tests/versions.txt

SCALED = $(shell grep -rl "^from tests.scale import" tests --include="test_*.py")
test-thorough: $(VENV)/.ready ## all tests with a number of tests/scale.py: random examples by the thousand, and the large scale (hours); EXAMPLES=20000
	ADMITTER_EXAMPLES=$(or $(EXAMPLES),20000) $(BIN)/pytest -q $(SCALED) --timeout 0

test-faults: $(VENV)/.ready   ## faults of all kinds under load; SECONDS=1800 JOBS=20000 SEED=1; saved in benchmarks/results
	$(BIN)/python -m tests.faults --seconds $(or $(SECONDS),1800) --jobs $(or $(JOBS),20000) --seed $(or $(SEED),1)

test-abuse: $(VENV)/.ready    ## all that tenants may ask for, and more, watched from outside; OPERATIONS=20000 SEEDS="1 2 3 4 5"; saved in benchmarks/results
	$(BIN)/python -m tests.abuse --operations $(or $(OPERATIONS),20000) --seeds $(or $(SEEDS),1 2 3 4 5)

OPERATORS ?= mpi,appwrapper,training
test-kinds: $(VENV)/.ready    ## objects of each kind with an operator, and of one without a shipped one, while the controller is killed, and all tests of the kinds of OPERATORS=mpi,appwrapper,training, which no other target runs; OBJECTS=50
	ADMITTER_TEST_OPERATORS=$(OPERATORS) ADMITTER_TEST_OBJECTS=$(or $(OBJECTS),50) $(BIN)/pytest -q \
		tests/cluster/test_operated_kinds.py tests/cluster/test_described_kinds.py tests/cluster/test_shown.py -k "runs_once or optional"

test-abuse-mutated: $(VENV)/.ready ## changed objects of every kind that is read; OBJECTS=10000 SEED=1; saved in benchmarks/results
	$(BIN)/python -m tests.abuse.mutated --objects $(or $(OBJECTS),10000) --seed $(or $(SEED),1)

bench-engine: $(VENV)/.ready  ## speed and memory of the engine; saved in benchmarks/results
	$(BIN)/python -m benchmarks.engine

bench-elastic: $(VENV)/.ready ## elastic quotas at scale, engine and API server; saved in benchmarks/results
	$(BIN)/python -m benchmarks.elastic

bench-namespaces: $(VENV)/.ready ## 5,000 namespaces that bring their quota; saved in benchmarks/results
	$(BIN)/python -m benchmarks.namespaces

bench-jobs: $(VENV)/.ready    ## Jobs through the whole of it, SCALE=0.2 of 15,000; saved in benchmarks/results
	$(BIN)/python -m benchmarks.jobs --scale $(or $(SCALE),0.2) $(if $(FAITHFUL),--faithful)

bench-kinds: $(VENV)/.ready   ## objects of three described kinds among Jobs, SCALE=0.2 of 15,000, beside Jobs alone; saved in benchmarks/results
	$(BIN)/python -m benchmarks.kinds --scale $(or $(SCALE),0.2)

bench-pods: $(VENV)/.ready    ## queued pods and groups, SCALE=1 of 2,000 and 200, and what policies cost other pods; saved in benchmarks/results
	$(BIN)/python -m benchmarks.pods --part queued --scale $(or $(SCALE),1)
	$(BIN)/python -m benchmarks.pods --part unlabelled --scale $(or $(SCALE),1)

bench-turnaround: $(VENV)/.ready ## how soon the next Job has the quota of one that ends, by each way to end, ROUNDS=10; saved in benchmarks/results
	$(BIN)/python -m benchmarks.turnaround --rounds $(or $(ROUNDS),10)

bench-insight: $(VENV)/.ready ## answers of explain and what-if on 10,000 Workloads, and in trees whose future is dear; saved in benchmarks/results
	$(BIN)/python -m benchmarks.insight

bench-journal: $(VENV)/.ready ## Jobs with a journal, SCALE=1 of 15,000, and its replay; saved in benchmarks/results
	$(BIN)/python -m benchmarks.journal --scale $(or $(SCALE),1)

bench-estimates: $(VENV)/.ready ## how true estimates of starts are; saved in benchmarks/results
	$(BIN)/python -m benchmarks.estimates

bench-console: $(VENV)/.ready ## what each view of the console costs a browser, UPDATES=5; saved in benchmarks/results
	$(BIN)/python -m benchmarks.console --updates $(or $(UPDATES),5)

bench-hour: $(VENV)/.ready    ## memory of admitter top and of the page over 3,600 updates; saved in benchmarks/results
	$(BIN)/python -m benchmarks.hour --part top
	$(BIN)/python -m benchmarks.hour --part server
	$(BIN)/python -m benchmarks.hour --part page

bench-scale: $(VENV)/.ready   ## 50,000 Workloads; a restart among 100,000 Jobs; saved in benchmarks/results
	$(BIN)/python -m benchmarks.scale

test-kind: $(VENV)/.ready     ## the cluster tests on a cluster that kind makes (needs Docker)
	bash tests/kind.sh

check: $(VENV)/.ready         ## format, lint, types, import contracts, generated files, words, the site of docs/
	@$(MAKE) --no-print-directory --jobs=2 --output-sync types contents

types:                        # takes as long as all the others
	$(BIN)/mypy

contents:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m admitter.api.crds --check
	$(BIN)/python -m admitter.cli.configuration --check
	$(BIN)/python -m admitter.install.chart --check
	$(BIN)/python -m tools.docs --check
	$(BIN)/python -m tools.words
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

crds: $(VENV)/.ready          ## write crds/*.yaml, docs/configuration.schema.json and docs/reference from the code, the chart from the bundle
	$(BIN)/python -m admitter.api.crds
	$(BIN)/python -m admitter.cli.configuration
	$(BIN)/python -m admitter.install.chart
	$(BIN)/python -m tools.docs

docs: $(VENV)/.ready          ## build the site of docs/ into build/site, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock: $(VENV)/.ready          ## compile requirements/*.txt with hashes (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header \
		--annotation-style line -o requirements/base.txt
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-header \
		--annotation-style line -o requirements/dev.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
