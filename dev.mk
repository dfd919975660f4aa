# For developers: make -f dev.mk lint|lock|mutants|hooks|clean, after make env.
PYTHON := .venv/bin/python
JOBS   ?= 2
export PYTHONPATH := $(CURDIR)
.PHONY: lint lock mutants hooks clean

# What no page may say, even in quotation marks: that a number protects somebody by law, or that a risk is gone.
CLAIMS := hipaa[ -]*compliant|near(ly)?[ -]*compliant|records? +protected|100 *(%|percent|per cent) *elimination
lint:  ## check style, format, plain English, that notebooks carry no outputs, and that no page claims what it cannot
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/nbstripout --keep-id --verify notebooks/*.ipynb assignments/*/*.ipynb
	@.venv/bin/python tests/plain_english.py
	@! grep -niErI '$(CLAIMS)' notebooks book privhelpers privaudit README.md

mutants:  ## put faults into the private training one at a time, and say which test notices each: build/mutants.md
	@PYTHONPATH="$$PWD:$$PWD/tests" exec $(PYTHON) tests/mutants/count.py --jobs="$(JOBS)"

hooks:  ## check style before every commit (git's core.hooksPath)
	git config core.hooksPath .githooks

# torch keeps its CUDA packages out of the lock. Its build for processors alone (2.13.0+cpu, Linux on x86-64) comes
# from PyTorch's own index, so that its hash stands here.
TORCH_CPU := 6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
lock:  ## renew requirements.txt from pyproject.toml, and the locks with the hash of every file (needs uv)
	@command -v uv >/dev/null || { echo "make: lock needs uv (pip install uv)" >&2; exit 1; }
	mkdir -p build
	uv pip compile --quiet --python-version 3.11 --extra dev pyproject.toml --no-annotate --no-header \
	  --no-emit-package torch --output-file build/lock.txt
	{ echo "# Every package at one version, made by 'make -f dev.mk lock' from pyproject.toml."; \
	  { grep -vE '^(nvidia-|triton|cuda-|#)' build/lock.txt; grep -o 'torch==[0-9.]*' pyproject.toml; } | LC_ALL=C sort; \
	} > build/requirements.txt
	uv pip compile --quiet --python-version 3.11 --no-deps --generate-hashes build/requirements.txt --no-annotate \
	  --no-header --output-file build/hashes.txt
	{ echo "# The hash of every file that may be installed for requirements.txt but torch, made by 'make -f dev.mk lock'."; \
	  awk '/^[^ ]/ { torch = /^torch==/ } !torch' build/hashes.txt; } > build/requirements.lock
	{ echo "# The hash of every build of torch that may be installed, made by 'make -f dev.mk lock'."; \
	  awk '/^[^ ]/ { torch = /^torch==/ } torch' build/hashes.txt | \
	  sed 's/^torch==.*/&\n    --hash=sha256:$(TORCH_CPU) \\/'; } > build/requirements-torch.lock
	uv pip compile --quiet --python-version 3.11 --group pyproject.toml:grading --constraint requirements.txt \
	  --generate-hashes --no-annotate --no-header --output-file build/grading.txt
	{ echo "# The hash of every file that may be installed to grade submissions, made by 'make -f dev.mk lock'."; \
	  cat build/grading.txt; } > build/requirements-grading.lock
	uv pip compile --quiet --python-version 3.11 --extra audit pyproject.toml --constraint build/requirements.txt \
	  --generate-hashes --no-annotate --no-header --no-emit-package torch --output-file build/audit.txt
	{ echo "# The hash of every file that may be installed for the audit but torch, made by 'make -f dev.mk lock'."; \
	  awk '/^[^ ]/ { cuda = /^(nvidia-|triton|cuda-)/ } !cuda' build/audit.txt; } > build/requirements-audit.lock
	mv build/requirements.txt build/requirements.lock build/requirements-*.lock .

clean:  ## remove every run, site and cache; the environment stays
	rm -rf runs build _build .snakemake .ruff_cache
