# Each target is one command on a fresh machine with git, make and Python 3.11 or newer.
# The first run makes a virtual environment; later runs reuse it.
#
#   make demo                     an agent on a small model inside the process: no key
#   make demo PROVIDER=openai     the same agent there, with OPENAI_API_KEY, OPENAI_MODEL
#   make test                     the test suite, on the interpreter at hand
#   make test-all                 the suite on each of Python 3.11, 3.12, 3.13 found
#   make fuzz                     the adapters against 10,000 damaged replies each
#   make torture                  every harness of docs/reliability.md in full; renews its table
#   make shuffle                  ORDERS=50 runs of TESTS, each in another order
#   make coverage                 the suite, and which branches it did not reach
#   make mutation                 whether the tests notice small mistakes in the loop
#   make check                    formatting, linting, types
#   make model                    fetch the small model that `demo` and some tests use
#   make torture-sessions         kill agents with stored conversations 100 times a store
#   make servers                  fetch the independent servers that some tests use
#   make build                    wheels and sdists of all distributions, checked
#   make bench                    CPU beside the official SDKs; writes docs/performance.md
#   make bench PEERS=all          other frameworks too, each in an environment of its own;
#                                 RESUME=1 goes on where it was stopped
#   make bench SCENARIOS="text history-160" PROTOCOLS=responses RUNNERS="sdk lighter"
#                                 measure a part and print it; SAVE=1 keeps it, TURNS=3 is quicker
#   make bench-parts              splitter, codecs, hooks, tools, …, each by itself
#   make bench-growth             whether doubled work costs no more than 2.3 times
#   make bench-instructions       instructions of each hot path, counted by valgrind;
#                                 TREE=../before beside another checkout, SAVE=1 writes it
#   make bench-loopback           the same of whole runs beside the SDKs' loops: 30 minutes
#   make bench-profiles           CPU by layer, Lighter and the SDKs; TREE=, SAVE=1 as above
#   make bench-sessions           what stored conversations cost, against bare JSON
#   make bench-plugins            what finding plugins costs, against a bare read
#   make changelog                what the next release's section will say
#   make release VERSION=0.2.0    set the version everywhere and write that section

VENV ?= .venv
PYTHON ?=
PROVIDER ?= local
PEERS ?=
SCENARIOS ?=
PROTOCOLS ?=
RUNNERS ?=
TURNS ?= 5
PARTS ?=
GROWTH ?=
SAVE ?=
RESUME ?=
TREE ?=
ONLY ?=
TESTS ?= tests
ORDERS ?= 50
# All cores; a file's tests stay together, since they share what is dear to set up.
WORKERS ?= -n auto --dist loadfile
export PYTHON
# Hundreds of processes load the same modules: each compiles them once, not every time.
unexport PYTHONDONTWRITEBYTECODE

inputs := constraints.txt pyproject.toml scripts/venv.sh $(wildcard lighter-*/pyproject.toml)
run := $(VENV)/bin/python
# Files outside tests/torture that take a sample of their cases.
sampled = $(shell grep -rlE --include='test_*.py' 'support.torture import' tests | grep -v tests/torture)
tools := $(VENV)-build

.PHONY: demo test test-all smoke check format fuzz torture shuffle coverage mutation model servers build changelog \
	release clean bench bench-growth bench-instructions bench-loopback bench-parts \
	bench-plugins bench-profiles bench-sessions torture-sessions

demo: $(VENV)/.made
ifeq ($(PROVIDER),local)
	@$(run) -m lighter_local fetch
endif
	@$(run) docs/examples/demo.py $(PROVIDER)

test: $(VENV)/.made-test
	$(run) -m pytest $(WORKERS) $(TESTS)

test-all:
	@scripts/interpreters.sh | while read -r version path; do \
		echo "== Python $$version"; \
		$(MAKE) --no-print-directory test VENV=.venv-$$version PYTHON="$$path" </dev/null || exit 1; \
	done

# A quick run on the interpreters that `make test` does not use.
smoke:
	@here=$$($(run) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); \
	scripts/interpreters.sh | while read -r version path; do \
		[ "$$version" = "$$here" ] && continue; \
		echo "== Python $$version"; \
		$(MAKE) --no-print-directory test VENV=.venv-$$version PYTHON="$$path" \
			TESTS="-q tests/core tests/plugins" </dev/null || exit 1; \
	done

check: $(VENV)/.made-check
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy lighter-*/src tests/typing
	$(VENV)/bin/pyright --pythonpath $(run)
	$(VENV)/bin/zizmor --offline --quiet --no-progress --persona pedantic .github

format: $(VENV)/.made-check
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format .

fuzz: $(VENV)/.made-test
	LIGHTER_FUZZ=10000 $(run) -m pytest tests/adapters/test_fuzz.py

torture-sessions: $(VENV)/.made-test
	LIGHTER_KILLS=100 $(run) -m pytest tests/sessions/test_kill.py

torture: $(VENV)/.made-test
	LIGHTER_TORTURE=full $(run) -m pytest -n auto --dist worksteal tests/torture tests/faults $(sampled)

mutation: $(VENV)/.made-test
	$(run) scripts/mutation.py

shuffle: $(VENV)/.made-test
	$(run) scripts/shuffle.py --orders $(ORDERS) $(TESTS)

coverage: $(VENV)/.made-test
	$(run) -m coverage run -m pytest $(TESTS)
	$(run) -m coverage report

model: $(VENV)/.made
	@$(run) -m lighter_local fetch

servers: $(VENV)/.made-test
	@PYTHONPATH=tests $(run) -m support.servers_setup

build: $(tools)/.made
	scripts/build.sh $(tools)/bin/python dist

changelog: $(tools)/.made
	@$(tools)/bin/towncrier build --draft --version "$$($(tools)/bin/python scripts/release.py version)"

release: $(tools)/.made
	$(tools)/bin/python scripts/release.py bump "$(VERSION)"
	$(tools)/bin/towncrier build --yes --version "$(VERSION)"

bench: $(VENV)/.made-bench
	@$(run) -m benchmarks.compare --peers "$(PEERS)" --scenarios "$(SCENARIOS)" \
		--protocols "$(PROTOCOLS)" --runners "$(RUNNERS)" --turns "$(TURNS)" \
		$(if $(SAVE),--save) $(if $(RESUME),--resume)

# PARTS="-k encode" chooses, PARTS=--benchmark-compare=0001 sets beside a run that was kept
# by PARTS=--benchmark-autosave.
bench-parts: $(VENV)/.made-bench
	$(run) -m pytest benchmarks/parts $(PARTS)

# GROWTH="--only history" chooses, GROWTH="--scale 0.1" tries a tenth; both only print.
bench-growth: $(VENV)/.made-bench
	@$(run) -m benchmarks.growth $(GROWTH)

# ONLY="delta history" chooses paths by words of their names.
bench-instructions: $(VENV)/.made-bench
	@$(run) -m benchmarks.instructions $(if $(TREE),--tree "$(TREE)") --only "$(ONLY)" $(if $(SAVE),--save)

bench-loopback: $(VENV)/.made-bench
	@$(run) -m benchmarks.instructions --groups loopback $(if $(TREE),--tree "$(TREE)") \
		--only "$(ONLY)" $(if $(SAVE),--save)

bench-profiles: $(VENV)/.made-bench
	@$(run) -m benchmarks.profiles $(if $(TREE),--tree "$(TREE)") --scenarios "$(SCENARIOS)" \
		--protocols "$(PROTOCOLS)" $(if $(SAVE),--save)

bench-sessions: $(VENV)/.made
	@$(run) benchmarks/sessions.py

bench-plugins: $(VENV)/.made
	@$(run) benchmarks/plugin_scan.py

clean:
	rm -rf .venv .venv-3.* .venv-build .venv-bench-* dist benchmarks/peers/*/node_modules

$(VENV)/.made: $(inputs)
	@scripts/venv.sh $(VENV)
	@touch $@

# What makes the files that are published has an environment with nothing else in it.
$(tools)/.made: scripts/build-tools.txt scripts/venv.sh
	@scripts/venv.sh $(tools) package
	@touch $@

$(VENV)/.made-%: $(inputs)
	@scripts/venv.sh $(VENV) $*
	@touch $@
