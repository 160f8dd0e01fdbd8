# Everything works from a bare clone with Python 3.11 or newer and make; uv is used when it is there.
#   make chat                a conversation (installs the small embedded model the first time)
#   make ask Q="…"           one turn
#   make test                the tests, as CI runs them
#   make test-servers        … and with a real Matrix server beside them
#   make docs                the site of docs/, into site/
#   make check               format, lint, types, then the tests
#   make install             only the program
# PYTHON=python3.12 chooses another interpreter, ARGS="…" is passed on to pytest or limpet.

VENV := .venv
BIN := $(VENV)/bin
INSTALL = sh scripts/with-python.sh scripts/install.py --venv $(VENV)
INPUTS := pyproject.toml constraints.txt scripts/install.py
# Not expanded by make and passed by the environment, so that a question may hold quotes and dollars.
export LIMPET_ASK := $(value Q)
export PYTHON

.PHONY: help chat ask test test-servers check format install servers docs clean

help:
	@sed -n '2,10s/^# \{0,1\}//p' Makefile

chat: $(VENV)/.stamp-local
	@$(BIN)/limpet chat $(ARGS)

ask: $(VENV)/.stamp-local
	@if [ -z "$$LIMPET_ASK" ]; then echo 'usage: make ask Q="your question"' >&2; exit 2; fi
	@$(BIN)/limpet agent -m "$$LIMPET_ASK" $(ARGS)

test: $(VENV)/.stamp-dev
	@$(BIN)/python -m pytest $(ARGS)

test-servers: $(VENV)/.stamp-dev $(VENV)-servers/.stamp-servers
	@$(BIN)/python -m tests.channel.synapse $(BIN)/python -m pytest $(ARGS)

check: $(VENV)/.stamp-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/python -m pytest $(ARGS)

format: $(VENV)/.stamp-dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

install: $(VENV)/.stamp-core

$(VENV)/.stamp-core: $(INPUTS)
	@$(INSTALL) core

$(VENV)/.stamp-local: $(INPUTS)
	@$(INSTALL) local

$(VENV)/.stamp-dev: $(INPUTS)
	@$(INSTALL) dev

servers: $(VENV)-servers/.stamp-servers

$(VENV)-servers/.stamp-servers: $(INPUTS)
	@sh scripts/with-python.sh scripts/install.py --venv $(VENV)-servers servers

docs: $(VENV)-docs/.stamp-docs
	@NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet --strict

$(VENV)-docs/.stamp-docs: $(INPUTS)
	@sh scripts/with-python.sh scripts/install.py --venv $(VENV)-docs docs

clean:
	rm -rf $(VENV) $(VENV)-servers $(VENV)-docs site dist build .pytest_cache .ruff_cache .hypothesis
