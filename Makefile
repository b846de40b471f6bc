# `make up` and `make test` are all that a newcomer needs; both make .venv first.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PACKAGES := protocol storage actors cluster loadtest
# As pip does for what it copies: else sixteen actors each compile every module at each start
# wherever PYTHONDONTWRITEBYTECODE is set.
COMPILE  := $(BIN)/python -m compileall -q $(PACKAGES)

.PHONY: up test check format docs versus growth loadtest record-kafka clean help

help:
	@echo "make up      start three brokers on this machine (ARGS='--name two --port 19092' for another)"
	@echo "make test    check the code and run every test"
	@echo "make check   ruff, mypy, import-linter"
	@echo "make format  format the code"
	@echo "make versus  compare with Apache Kafka on this machine (ARGS=--quick takes 3 minutes)"
	@echo "make growth  what partitions, connections and brokers cost (12 minutes)"
	@echo "make loadtest  half a minute of locust on a cluster of its own, and its report"
	@echo "make record-kafka  ask Apache Kafka the conformance scenarios anew (needs Java and Maven)"
	@echo "make docs    write the generated pages of docs/, and the README's table"
	@echo "make clean   remove .venv and what tools left behind"

up: $(VENV)/.installed
	@$(BIN)/mobula up $(ARGS)

test: check
	$(BIN)/pytest $(ARGS)

check: $(VENV)/.installed-dev $(VENV)/.names
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd $(VENV)/.names && MYPYPATH=. ../bin/mypy --config-file ../../pyproject.toml
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

versus: $(VENV)/.installed-dev
	$(BIN)/python -m mobula.loadtest.versus $(ARGS)

growth: $(VENV)/.installed-dev
	$(BIN)/python -m mobula.loadtest.growth $(ARGS)

loadtest: $(VENV)/.installed-dev
	$(BIN)/python -m mobula.loadtest.headless $(ARGS)

record-kafka: $(VENV)/.installed-dev
	$(BIN)/python -m tests.conformance.record $(ARGS)

docs: $(VENV)/.installed
	$(BIN)/python -m docs.generate

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	PYTHONWARNINGS=ignore $(BIN)/pip install --quiet -e .
	$(COMPILE)
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	PYTHONWARNINGS=ignore $(BIN)/pip install --quiet -e '.[dev]'
	$(COMPILE)
	touch $@ $(VENV)/.installed

# mypy does not follow the import hook of an editable install: it is shown the folders
# under their installed names.
$(VENV)/.names: Makefile | $(VENV)/bin/python
	mkdir -p $@/mobula
	for package in $(PACKAGES); do ln -sfn ../../../$$package $@/mobula/$$package; done
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache loadtest/kafka/target
