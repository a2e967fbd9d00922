# `make help` lists the targets. Everything they need is set up by themselves, below .venv and the lab's cache.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml scripts/venv.sh
	@sh scripts/venv.sh "$(PYTHON)" $(VENV)
	@touch $@

.PHONY: install
install: $(STAMP) ## Make the virtual environment with everything the other targets need

.PHONY: demo
demo: $(STAMP) ## Show the main job on a real fleet on this machine (simulated where there is no root or no Linux)
	@$(BIN)/python -m examples.demo

.PHONY: demo-simulated
demo-simulated: $(STAMP) ## The same story on simulated nodes
	@$(BIN)/python -m examples.demo --simulated

.PHONY: test
test: $(STAMP) ## Run all tests: unit, property, lifecycle, contract and lab
	@$(BIN)/python scripts/run_tests.py

.PHONY: test-fast
test-fast: $(STAMP) ## Run the tests that need no lab
	@$(BIN)/python -m pytest -q -m "not lab and not vllm"

.PHONY: test-vllm
test-vllm: $(STAMP) ## Have a real vLLM (CPU build, once 3.5 GB) serve on two nodes of a lab; says why where it cannot
	@$(BIN)/python -m pytest -q tests/vllm

SEEDS ?= 10000
FIRST ?= 1

.PHONY: simulate
simulate: $(STAMP) ## Play random stories and check the invariants at every event (SEEDS=10000, SEED=n alone, FIRST=n)
	@$(BIN)/python -m tests.simulate --seeds $(SEEDS) --first $(FIRST) $(if $(SEED),--seed $(SEED))

.PHONY: test-mutants
test-mutants: $(STAMP) ## Break the planner and the apply machine on purpose: each fault has to be caught
	@$(BIN)/python -m tests.mutants

.PHONY: check
check: $(STAMP) ## Lint, format, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/unit/test_layers.py

.PHONY: format
format: $(STAMP) ## Format the code
	@$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format .

.PHONY: spec-reference
spec-reference: $(STAMP) ## Write docs/spec.md, docs/checks.md and docs/schemas anew
	@$(BIN)/python scripts/spec_reference.py
	@$(BIN)/python -m scripts.check_reference
	@$(BIN)/python -m scripts.event_reference

.PHONY: bench
bench: $(STAMP) ## Measure against named baselines; writes bench/results.json
	@$(BIN)/python -m bench

.PHONY: lab-up
lab-up: $(STAMP) ## Have a fleet of four real nodes on this machine, and a spec for it
	@$(BIN)/python -m tests.lab up --spec .cache/lab

.PHONY: lab-down
lab-down: $(STAMP) ## Take that fleet away
	@$(BIN)/python -m tests.lab down

.PHONY: clean
clean: ## Remove what the targets made in this folder (.cache/lab with its spec, too; not the lab's cache)
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
