# For developers: make -f dev.mk env|lint|lock|mutants|hooks|clean
PYTHON := .venv/bin/python
JOBS   ?= 2
export PYTHONPATH := $(CURDIR)
.PHONY: env lint lock mutants hooks clean

env:  ## make the environment in .venv with all that the tests and these commands need
	@$(MAKE) --no-print-directory -f Makefile .venv/.dev

# What no page may say, even in quotation marks: that a number protects somebody by law, or that a risk is gone.
CLAIMS := hipaa[ -]*compliant|near(ly)?[ -]*compliant|records? +protected|100 *(%|percent|per cent) *elimination
lint: env  ## check style, format, plain English, that notebooks carry no outputs, and that no page claims what it cannot
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/nbstripout --keep-id --verify notebooks/*.ipynb assignments/*/*.ipynb
	@.venv/bin/python tests/plain_english.py
	@! grep -niErI '$(CLAIMS)' notebooks book privhelpers privaudit README.md

mutants: env  ## put faults into the private training one at a time, and say which test notices each: build/mutants.md
	@PYTHONPATH="$$PWD:$$PWD/tests" exec $(PYTHON) tests/mutants/count.py --jobs="$(JOBS)"

hooks:  ## check style before every commit (git's core.hooksPath)
	git config core.hooksPath .githooks

# torch keeps its CUDA packages out of the locks. Its builds for processors alone (2.13.0+cpu, Linux on x86-64) come
# from PyTorch's own index, so that the hash of the one for Python 3.11 stands here.
TORCH_CPU := 6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
# Every package has one version, whichever Python of ours it is for.
COMPILE := uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --no-annotate --no-header
# A marker stays only where it tells our Pythons apart.
MARKED := sed -E "s/ and sys_platform == 'linux'//; /python_full_version [<>=!]+ '3\.1[123]/! s/ ;[^\\\\]*[^\\\\ ]//"
LOCKS := audit lab book dev
lock:  ## renew requirements.txt from pyproject.toml, and the locks with the hash of every file (needs uv)
	@command -v uv >/dev/null || { echo "make: lock needs uv (pip install uv)" >&2; exit 1; }
	mkdir -p build
	@# What need not change stays: to renew a package, delete its line from requirements.txt.
	cp requirements.txt build/lock.txt
	$(COMPILE) --extra dev pyproject.toml --no-emit-package torch --output-file build/lock.txt
	{ echo "# Every package at one version, made by 'make -f dev.mk lock' from pyproject.toml."; \
	  { $(MARKED) build/lock.txt | grep -vE '^(nvidia-|triton|cuda-|#)'; grep -o 'torch==[0-9.]*' pyproject.toml; } | \
	  LC_ALL=C sort; } > build/requirements.txt
	set -e; for extra in $(LOCKS); do \
	  $(COMPILE) --extra $$extra pyproject.toml --constraint build/requirements.txt --generate-hashes \
	    --output-file build/$$extra.txt; \
	  { echo "# The hash of every file that may be installed for '.[$$extra]' but torch, made by 'make -f dev.mk lock'."; \
	    $(MARKED) build/$$extra.txt | awk '/^[^ ]/ { torch = /^(torch==|nvidia-|triton|cuda-)/ } !torch'; \
	  } > build/requirements-$$extra.lock; \
	done
	{ echo "# The hash of every build of torch that may be installed, made by 'make -f dev.mk lock'."; \
	  awk '/^[^ ]/ { torch = /^torch==/ } torch' build/dev.txt | $(MARKED) | \
	  sed 's/^torch==.*/&\n    --hash=sha256:$(TORCH_CPU) \\/'; } > build/requirements-torch.lock
	$(COMPILE) --group pyproject.toml:grading --constraint build/requirements.txt --generate-hashes \
	  --output-file build/grading.txt
	{ echo "# The hash of every file that may be installed to grade submissions, made by 'make -f dev.mk lock'."; \
	  $(MARKED) build/grading.txt; } > build/requirements-grading.lock
	mv build/requirements.txt build/requirements-*.lock .

clean:  ## remove every run, site and cache; the environment stays
	rm -rf runs build _build .snakemake .ruff_cache
