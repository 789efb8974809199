# Each target sets up what it needs; nothing has to be installed or started first.
#
#   make book     measure the story, execute what changed, write _build/html/index.html   (the
#                 default); the laboratory is shown as another machine measured it
#                 ALL=1: measure the laboratory, too
#                 STRICT=1: exit with 1 when a finding came out otherwise
#                 MACHINE=FILE: the book of a machine file (data/machines/); measures nothing
#                 PROGRAM=report.json: a page about your program, from doctor.py run --json
#   make fresh    the same, and measure again whatever is stored
#   make test     the tests (ARGS="-k book" selects), which look at the built book if it is of
#                 these files, and build none
#   make test-all the same and what takes minutes, on the book brought up to date;
#                 make test-nightly: everything there is
#   make mutants  changes what decides in many small ways, and counts what no test notices (long:
#                 by night; ROOMS="laboratory findings" selects)
#   make pythons  Python 2.7 and 3.7 into .casebook/, for the cells that show a recorded run without
#   make lab      JupyterLab on the notebooks (as root, in a container: ARGS=--allow-root)
#   make record   the reference run into data/ (long: full mode)
#   make lint     ruff, the types (mypy), shell scripts, and where actionlint is, the workflows
#   make publish-check  look at the built book as whoever publishes it does; builds nothing
#   make archive  the built book as one file, which opens from a folder
#   make teacher  slides and answers for a teacher, into _build/teacher.zip (needs npm)
#   make dist     the cure and the doctor as packages, requests-shared-context and tls-doctor,
#                 into _build/dist; make products: the single files made from them
#   make release-check  can all of it be released? TAG=v1.2.3 also asks whether that is its version;
#                 make release gathers what is released into _build/release, with digests
#   make audit    look what readers install up in the list of known vulnerabilities, and name licences
#   make lock     resolve requirements.txt, env/test.lock and env/locks again
#   make clean    throw away the built book; make distclean: all that was made here
#
# make PYTHON=/path/to/python3 ... chooses the Python of the book, 3.11 or newer.

PYTHONS := python3.13 python3.12 python3.11 python3.14 python3 \
	$(wildcard $(HOME)/.pyenv/versions/3.1[1-9]*/bin/python3)
BIN := .venv/bin
INSTALLERS := $(BIN)/python -m casebook.stacks.installers
BOOK := .venv/book.stamp
TESTS := .venv/tests.stamp
# Several at a time, each file by one: what its tests share is made once. At the end, what is slow.
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder \
	--durations 15 --durations-min 2
# What is slow waits more than it computes.
ALL_TESTS := $(PYTEST) -n 4 -m "not nightly"
# A shell may forbid Python to keep what it has compiled. Here hundreds of processes would compile
# the same packages, each for seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: book fresh test test-all test-nightly mutants lab record pythons lint \
	publish-check archive teacher dist products release release-check audit lock clean distclean

book: $(BOOK)
	@$(BIN)/python -m casebook book $(if $(STRICT),--strict) $(if $(ALL),--all) \
	  $(if $(MACHINE),--machine "$(MACHINE)") $(if $(PROGRAM),--program "$(PROGRAM)")

fresh: $(BOOK)
	@$(BIN)/python -m casebook book --fresh $(if $(STRICT),--strict) $(if $(ALL),--all)

test: $(TESTS)
	@$(PYTEST) -n 2 $(ARGS)

# What each took says which are slow: tests/support/slow.py.
test-all: $(TESTS)
	@$(ALL_TESTS) --junitxml _build/tests.xml $(ARGS)

# What test-all has; every release, two at a time, which only counts; and then one after the other
# what builds real sizes or compares clocks. pytest says 5 where ARGS select nothing.
test-nightly: $(TESTS)
	@$(ALL_TESTS) $(ARGS); all=$$?; \
	$(BIN)/python -m pytest -n 2 -m breadth $(ARGS); breadth=$$?; \
	$(BIN)/python -m pytest -n 0 -m "nightly and not breadth" $(ARGS); sizes=$$?; \
	[ $$all$$breadth$$sizes != 555 ] || exit 5; \
	for code in $$all $$breadth $$sizes; do [ $$code = 0 ] || [ $$code = 5 ] || exit $$code; done

# Its tool is for the night alone, so that it is in no lock and in nobody's set-up.
mutants: $(TESTS)
	@$(INSTALLERS) uv pip install --quiet --python $(BIN)/python \
	  -c requirements.txt -c env/test.lock mutmut==3.8.1 && \
	$(BIN)/python tests/support/mutants.py $(ROOMS)

lab: $(BOOK)
	@[ "$$(id -u)" != 0 ] || case "$(ARGS)" in *--allow-root*) ;; *) \
	  echo "JupyterLab runs as root, in a container say, only if told so: make lab ARGS=--allow-root" >&2; \
	  exit 2;; esac
	@$(BIN)/python -m jupyterlab --config=jupyter_server_config.py --notebook-dir=. start.ipynb $(ARGS)

pythons: $(BOOK)
	@$(BIN)/python -m casebook stacks --get

record: $(BOOK)
	@$(BIN)/python -m casebook record

lint: $(TESTS)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && \
	$(BIN)/mypy --strict shared_context.py && \
	$(BIN)/shellcheck .ci/run .ci/bare binder/postBuild && \
	if PATH="$$PATH:$$HOME/go/bin" command -v actionlint >/dev/null; then \
	  PATH="$$PATH:$$HOME/go/bin" actionlint -shellcheck $(BIN)/shellcheck .github/workflows/*.yml; \
	else echo "actionlint is not on the PATH: nobody looked at the workflows" >&2; fi

publish-check: $(BOOK)
	@$(BIN)/python -m casebook.pages.publishing

ARCHIVE := _build/slow-https-in-python.zip
archive: $(BOOK)
	@$(BIN)/python -m casebook.pages.publishing $(ARCHIVE)

teacher: $(BOOK)
	@$(BIN)/python -m casebook.classroom.archive

# The products: a wheel and a source distribution each.
DIST := _build/dist
dist: products $(BOOK)
	@rm -rf $(DIST) && $(INSTALLERS) uv build --quiet --all-packages --no-build-isolation \
	  --python $(BIN)/python --out-dir $(DIST) && ls $(DIST)/*

# The single files that readers carry away, made from the products' sources and committed.
products: $(BOOK)
	@$(BIN)/python packages/tls-doctor/single_file.py doctor.py && \
	cp packages/requests-shared-context/src/requests_shared_context/__init__.py shared_context.py

# Their pages on an index are rendered; then each is installed where it promises to work.
release-check: $(TESTS) dist
	@$(BIN)/python .ci/release.py check $(TAG) && \
	$(INSTALLERS) uv tool run twine==7.0.0 check --strict $(DIST)/* && \
	$(BIN)/python -m pytest -n 2 -m "" tests/repository/test_release.py \
	  tests/repository/test_products.py \
	  tests/repository/test_distributions.py tests/doctor/test_doctor_installed.py \
	  tests/cure/test_shared_context_installed.py

release: archive dist
	@$(BIN)/python .ci/release.py make

# The licences, of what is installed here; the vulnerabilities, of what is locked.
audit: $(BOOK)
	@$(INSTALLERS) uv tool run pip-licenses==5.5.5 --python $(BIN)/python --order license && \
	$(BIN)/python .ci/audit.py

lock: $(BOOK)
	@$(BIN)/python -m casebook.stacks.locks

clean:
	@rm -rf _build

distclean: clean
	@rm -rf .venv .casebook casebook.egg-info

# A candidate is run, not only looked for: pyenv's shims exist and fail, and some Pythons come
# without what makes a virtual environment. The stamp is written last, so that an interrupted
# set-up starts again from nothing.
$(BOOK): requirements.txt pyproject.toml
	@for python in $(or $(PYTHON),$(PYTHONS)); do \
	  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	     >/dev/null 2>&1; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "No Python 3.11 or newer that can make a virtual environment$(if $(PYTHON), ($(PYTHON)))." \
	    "Install one (Debian: python3 python3-venv), or name it: make PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	echo "setting up .venv with $$("$$found" --version)" >&2; \
	rm -rf .venv && "$$found" -m venv .venv && \
	sed -n '/^uv==/,/[^\]$$/p' requirements.txt >.venv/uv.txt && \
	$(INSTALLERS) pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt && \
	$(INSTALLERS) uv pip install --quiet --python $(BIN)/python --require-hashes \
	  -r requirements.txt && \
	$(INSTALLERS) uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . && \
	touch $@

$(TESTS): $(BOOK) env/test.lock
	@echo "adding what the tests need" >&2
	@$(INSTALLERS) uv pip install --quiet --python $(BIN)/python --require-hashes \
	  -r env/test.lock && touch $@
