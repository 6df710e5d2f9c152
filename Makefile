# One virtual environment, made once; every target works from a fresh clone.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

# Hundreds of processes import the same modules; each would compile them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint unit wheel checkout quiet hosts fleet hosts-runtime soak bench clean

# The main job on this machine: plan, apply, four ranks joined, how to go on from there.
demo: $(VENV)/.installed
	@$(BIN)/rlxdeploy apply inventories/local.toml --yes
	@echo
	@$(BIN)/rlxdeploy status inventories/local.toml
	@echo
	@printf '%s\n' 'The group stays up. From here:' \
	  '  $(BIN)/rlxdeploy logs    inventories/local.toml        # what the ranks said' \
	  '  $(BIN)/rlxdeploy plan    inventories/local.toml        # nothing to change, until you edit it' \
	  '  $(BIN)/rlxdeploy stop    inventories/local.toml        # stop the ranks, keep the files' \
	  '  $(BIN)/rlxdeploy destroy inventories/local.toml --yes  # stop and remove every trace'

# Both long parts mostly wait, for processes the one and for hosts the other: side by side they take
# the time of the longer.
test: lint
	@echo 'The tests of the wheel and those on hosts run side by side; each says how it went when it ends.'
	@$(MAKE) --no-print-directory -j3 --output-sync=target wheel hosts checkout
	@$(MAKE) --no-print-directory quiet

# The house rules: style, types (the runtime's for Python 3.9 too), import directions.
lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/runtime/mypy39.ini --cache-dir .mypy_cache/39 \
	  rlxdeploy/__init__.py rlxdeploy/runtime tests/runtime
	$(BIN)/lint-imports

# For work on the code: every test that needs no hosts, from the checkout.
unit: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 5 --dist worksteal -m "not fleet and not soak and not quiet"
	$(BIN)/python -m pytest -q -m "quiet and not fleet"

# The same tests from another folder against the built wheel, which alone has the package …
wheel: $(VENV)/.dev
	$(BIN)/python tests/wheel.py

# … and those of them that need the repository around them.
checkout: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "checkout and not quiet"

# Those that measure time, with nothing beside them.
quiet: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m quiet

# Real hosts; these tests skip with their reason where there can be no fleet.  Four files at a
# time, the longest first: most of them wait for hosts, each file for hosts of its own.
FLEET_AT_ONCE = -n 4 --dist loadfile --no-loadscope-reorder
hosts: $(VENV)/.dev
	$(BIN)/python -m pytest -q $(FLEET_AT_ONCE) -m "fleet and not soak and not quiet" tests/fleet

fleet: $(VENV)/.dev
	FLEET=required $(BIN)/python -m pytest -q $(FLEET_AT_ONCE) -m "fleet and not soak and not quiet" tests/fleet
	FLEET=required $(BIN)/python -m pytest -q -m "fleet and quiet" tests/fleet

# The runtime's own tests inside a Debian 11 and a Debian 13: the oldest and newest Python and numpy.
hosts-runtime: $(VENV)/.dev
	FLEET=required $(BIN)/python -m pytest -q -s -m soak --timeout 0 tests/fleet/test_runtime_on_hosts.py

# Hours.  Groups that are done leave a row in soak.md; started again, it goes on after them.
soak: $(VENV)/.dev
	SOAK_RECORD=$${SOAK_RECORD:-soak.md} $(BIN)/python -m pytest -q -m soak --timeout 0 tests

bench: $(VENV)/.dev
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "rlxdeploy needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.11 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
