# Each target alone does all of its set-up: a fresh clone needs only Python 3.11+ and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)

.PHONY: paper check test style docs bench clean

paper: $(INSTALLED)  ## every synthetic figure of the paper beside ours
	@echo "running the paper's experiments into paper-report; the first time it also compiles"
	$(BIN)/evenhand paper --out paper-report

test: style  ## style, types, arrows, then all tests
	$(BIN)/pytest -n 2

check: style  ## the same with the quick tests only, in under two minutes: for while you work
	$(BIN)/pytest -n 2 -m "not slow" tests

style: $(INSTALLED)  ## style, types, arrows between modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(INSTALLED)  ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(INSTALLED)  ## speed, beside the libraries that you might use instead
	$(BIN)/python -m benchmarks

$(INSTALLED):
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "evenhand needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@echo "making a Python environment in $(VENV), once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@echo "installing evenhand and what it needs into $(VENV), once: this takes some minutes"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@echo "installed"
	rm -f $(VENV)/.installed-*
	touch $@

clean:
	rm -rf $(VENV) site build dist paper-report benchmarks/.venv
