# Each target sets up what it needs: a fresh machine with python3, venv and make is enough.
PYTHON ?= python3
BIN := .venv/bin
# uv, where it is at hand, installs in a fifth of the time.
INSTALL := $(if $(shell command -v uv),uv pip install --python $(BIN)/python,$(BIN)/python -m pip install --disable-pip-version-check) --quiet

# kernels that have a scalar twin, and models that stand on them: under a minute each on two cores
TWINS := $(patsubst %,tests/kernels/test_%.py,gaussian_rows emissions grams assignments collapsed)
NOSIMD := $(TWINS) tests/kernels/test_simd.py tests/kernels/test_simd32.py tests/kernels/test_cache.py \
	tests/models/test_multinomial.py tests/models/test_dynamics_model.py
NOJIT := $(TWINS) tests/test_augmentation.py tests/models/test_multinomial.py \
	$(patsubst %,tests/kernels/test_%.py,streams linalg special walks trees)

.PHONY: demo test slow nojit nojit-short nosimd check format bench bench-scores bench-scale docs clean

demo: .venv/.demo
	$(BIN)/polystick demo --out demo

test: .venv/.test
	$(BIN)/python -m pytest -n auto --dist worksteal

slow: .venv/.reference
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow or not slow"

nojit: .venv/.test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto --dist worksteal

nojit-short: .venv/.test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto --dist worksteal $(NOJIT)

nosimd: .venv/.test
	POLYSTICK_SIMD=0 $(BIN)/python -m pytest -n auto --dist worksteal $(NOSIMD)

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.particles
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/mixing.py
	$(BIN)/python benchmarks/association.py
	$(BIN)/python benchmarks/row_scores.py
	$(BIN)/python benchmarks/regression.py

bench-scores: .venv/.bench
	$(BIN)/python benchmarks/topic_accuracy.py
	$(BIN)/python benchmarks/topic_transform.py
	$(BIN)/python benchmarks/topic_scores.py
	$(BIN)/python benchmarks/topic_scale.py
	$(BIN)/python benchmarks/structural_topics.py

bench-scale: .venv/.test
	$(BIN)/python benchmarks/scale.py

docs: .venv/.dev
	$(BIN)/python tools/make_explorer_pictures.py
	$(BIN)/python tools/make_gallery.py
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf .venv docs/_build docs/_extra demo

# It works with the NumPy that it says it does not want.
.venv/.particles: .venv/.bench
	$(INSTALL) --no-deps particles==0.4
	touch $@

# .venv/.EXTRA is the stamp of "polystick with the extra EXTRA is installed, at the pinned versions".
.venv/.%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -c constraints.txt -e ".[$*]"
	touch $@
