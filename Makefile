# Each target alone does all of its set-up: a fresh clone needs only Python 3.11+ and make.
# What each needs is installed apart: the paper takes a third of what developers do.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STATE := $(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
FOR_PAPER := $(VENV)/.installed-paper-$(STATE)
FOR_SERVICE := $(VENV)/.installed-serve-$(STATE)
FOR_ALL := $(VENV)/.installed-dev-$(STATE)
# Also where Python is told to write no bytecode: every process would rewrite all tests, for 5 seconds.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest

.PHONY: paper serve load check test style docs bench clean

paper: $(FOR_PAPER)  ## every synthetic figure of the paper beside ours
	@echo "running the paper's experiments into paper-report; the first time it also compiles"
	$(BIN)/evenhand paper --out paper-report

serve: $(FOR_SERVICE)  ## the decision service with real mortgage applications, to look at
	$(BIN)/evenhand serve --demo

load: $(FOR_ALL)  ## how many decisions a second, beside bare endpoints
	$(BIN)/python -m benchmarks.service

test: style  ## style, types, arrows, then all tests
	$(PYTEST) -n 2

check: style  ## the same with the quick tests only, in under two minutes: for while you work
	$(PYTEST) -n 2 -m "not slow" tests

style: $(FOR_ALL)  ## style, types, arrows between modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(FOR_ALL)  ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(FOR_ALL)  ## speed, beside the libraries that you might use instead
	$(BIN)/python -m benchmarks

$(FOR_PAPER):
	$(call install,paper)

$(FOR_SERVICE):
	$(call install,serve)

$(FOR_ALL):
	$(call install,dev)
	@touch $(FOR_PAPER) $(FOR_SERVICE)

# uv takes a fifth of the time of pip, which is asked where uv is not to be had. Nobody else compiles
# the sources ahead, and each process would do it anew where Python is told to write no bytecode: 0.2 s.
define install
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "evenhand needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@test -x $(BIN)/python || { echo "making a Python environment in $(VENV), once"; $(PYTHON) -m venv $(VENV); }
	@echo "installing evenhand[$(1)] and what it needs into $(VENV), once: about a minute"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt uv \
		&& $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --editable '.[$(1)]' \
		|| { echo "without uv, by pip: some minutes"; \
			$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(1)]'; }
	@-$(BIN)/python -m compileall -q src
	@echo "installed"
	@rm -f $(VENV)/.installed-$(if $(filter dev,$(1)),*,$(1)-*)
	@touch $@
endef

clean:
	rm -rf $(VENV) site build dist paper-report benchmarks/.venv
