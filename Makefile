PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-thorough test-kind bench-engine bench-elastic bench-namespaces check format crds lock clean

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Admitter needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: $(VENV)/.ready          ## a local control plane, a dozen Jobs, and how they are admitted
	$(BIN)/admitter demo $(if $(KEEP),--keep)

test: check                   ## the checks, and every ring of tests: no cluster, then a real API server
	bash tests/run.sh

test-thorough: $(VENV)/.ready ## the engine's properties with many more examples (hours)
	ADMITTER_EXAMPLES=20000 $(BIN)/pytest -q tests/engine --timeout 0

bench-engine: $(VENV)/.ready  ## speed and memory of the engine; saved in benchmarks/results
	$(BIN)/python -m benchmarks.engine

bench-elastic: $(VENV)/.ready ## elastic quotas at scale, engine and API server; saved in benchmarks/results
	$(BIN)/python -m benchmarks.elastic

bench-namespaces: $(VENV)/.ready ## 5,000 namespaces that bring their quota; saved in benchmarks/results
	$(BIN)/python -m benchmarks.namespaces

test-kind: $(VENV)/.ready     ## the cluster tests on a cluster that kind makes (needs Docker)
	bash tests/kind.sh

check: $(VENV)/.ready         ## format, lint, types, import contracts, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m admitter.api.crds --check

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

crds: $(VENV)/.ready          ## write crds/*.yaml from the models
	$(BIN)/python -m admitter.api.crds

lock: $(VENV)/.ready          ## compile requirements/*.txt with hashes (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header \
		--annotation-style line -o requirements/base.txt
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-header \
		--annotation-style line -o requirements/dev.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
