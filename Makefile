# Every target creates its own environment, so `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test coverage check bench docs extras oldest audit clean

$(VENV)/user: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "unmet needs Python 3.11 or later: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	@test -x $(BIN)/python || { echo "Creating the environment in $(VENV) ..." >&2; $(PYTHON) -m venv $(VENV); }
	@echo "Installing unmet and its dependencies (a minute the first time) ..." >&2
	@$(INSTALL) -e '.[app,forecast,study]'
	@touch $@

$(VENV)/dev: $(VENV)/user
	@echo "Installing the dependencies of the tests ..." >&2
	@$(INSTALL) -e '.[dev]'
	@touch $@

demo: $(VENV)/user
	@$(BIN)/unmet demo --out demo --overwrite

# Two workers, each of which runs whole files, so that what the tests of a file share is made once.
TWO := -n 2 --dist loadfile --no-loadscope-reorder

test: $(VENV)/dev
	@$(BIN)/pytest $(TWO)

# Lines and branches that the tests run, with a page for each file in htmlcov/. Fails below 90 %.
coverage: $(VENV)/dev
	@$(BIN)/pytest $(TWO) --cov --cov-report=term:skip-covered --cov-report=html

check: $(VENV)/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(VENV)/dev
	@$(BIN)/python -m benchmarks

# The documentation site, in site/. Warnings are errors.
$(VENV)/docs: $(VENV)/user
	@echo "Installing the dependencies of the documentation ..." >&2
	@$(INSTALL) -e '.[docs]'
	@touch $@

docs: $(VENV)/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "site/index.html"

# The wheel, built twice, in empty environments: the bare package, and every extra alone.
extras: $(VENV)/dev
	@.ci/extras $(BIN)/python $(VENV)-extras

# The oldest versions that pyproject.toml allows, except torch, whose older builds bring gigabytes for graphics cards.
oldest: $(VENV)/user
	@test -x $(VENV)-oldest/bin/python || $(BIN)/python -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/pip install --quiet --disable-pip-version-check uv
	@grep '^torch==' constraints.txt > $(VENV)-oldest/override.txt
	@$(VENV)-oldest/bin/uv pip install --quiet --python $(VENV)-oldest/bin/python --resolution lowest-direct \
		--override $(VENV)-oldest/override.txt -e '.[dev]'
	@$(VENV)-oldest/bin/python -m pytest -n 2 --dist worksteal -W default

# Known vulnerabilities in the pinned versions, by PyPI's records of each version. Fails if those cannot be read for any of
# them, as at a mirror of PyPI, which need not have them: without --strict, that would pass as "no known vulnerabilities".
audit: $(VENV)/user
	@test -x $(VENV)-audit/bin/python || $(BIN)/python -m venv $(VENV)-audit
	@$(VENV)-audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	@$(VENV)-audit/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-audit $(VENV)-extras demo dist site htmlcov .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
