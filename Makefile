# `make` lists the targets. The first target that needs .venv installs everything into it.

# Hides TensorFlow's messages at start, such as that CUDA libraries are registered twice; 0 shows them.
export TF_CPP_MIN_LOG_LEVEL ?= 3

VENV := .venv
PY := $(VENV)/bin/python
# This file is written when an installation has succeeded; one that was killed is repeated.
INSTALLED := $(VENV)/installed
# Additional arguments for pytest: make test PYTEST_ARGS="-x tests/repository/test_bootstrap.py".
PYTEST_ARGS ?=

# Rejects unknown variables: a typo would otherwise be ignored in a training of hours.
VARIABLES := CELLS CORPUS_DIR DOMAIN JOBS OURS_OUT_DIR OUTPUT OUT_DIR PAIRS PEERS_DIR PYTEST_ARGS STEPS \
	PYTHON ROWS SCALE SEEDS SIZES TENSORFLOW TF_CPP_MIN_LOG_LEVEL THREADS TORCH WHAT
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(VARIABLES) PY MAKE% -%,$(GIVEN))
$(if $(UNKNOWN),$(error there is no variable $(UNKNOWN): expected some of $(VARIABLES)))

.DEFAULT_GOAL := help
.PHONY: help install install-gpu check-python test test-thorough test-avx2 test-slow test-next lint format check docs package demo \
	reproduce-vi-en reproduce-ro-en \
	reproduce-zh-en reproduce-de-en reproduce-en-de reproduce-en-ja reproduce-en-ja-ntcir \
	reproduce-en-ja-aspec reproduce-multi30k reproduce-synthetic reproduce-synthetic-long \
	reproduce-synthetic-adequacy reproduce-synthetic-tense reproduce-synthetic-senses reproduce-alignment \
	reproduce-cache \
	reproduce-bcontrast-de-en reproduce-bcontrast-en-de report figures play-models learning-tasks bench \
	bench-peers bench-marian lock audit clean

help: ## prints this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-28s %s\n", $$1, $$2 }' Makefile

$(INSTALLED): setup.cfg requirements.lock | check-python
	@sh scripts/install.sh
	@touch $@

check-python:
	@sh scripts/check_python.sh

install: $(INSTALLED) ## installs into .venv, as other targets do first; PYTHON=path chooses the interpreter

install-gpu: $(INSTALLED) ## adds the CUDA libraries, for an NVIDIA GPU
	$(PY) -m pip freeze --exclude-editable >$(VENV)/pins.txt
	$(PY) -m pip install --quiet -c $(VENV)/pins.txt --no-build-isolation \
		--config-settings editable_mode=compat -e '.[gpu]'

# pytest caches the compiled tests, whatever the environment says: without the cache, each of the two
# processes compiles them again, which doubles the time before the first test.
test test-thorough test-avx2: export PYTHONDONTWRITEBYTECODE =
# Each of the two processes has a core: more threads in an operation only take processor time (8 %).
test test-thorough test-avx2: export TF_NUM_INTRAOP_THREADS = 1
test: $(INSTALLED) ## runs the quick tests, in about 20 minutes
	$(PY) -m pytest -m "not slow and not thorough" -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-thorough: $(INSTALLED) ## runs quick tests with further cells and settings, and longer tests
	$(PY) -m pytest -m "thorough and not slow" -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# AVX2 sums products in a different order than AVX-512 or AMX.
test-avx2: export ONEDNN_MAX_CPU_ISA = AVX2
test-avx2: $(INSTALLED) ## repeats tests of cells, searches and updates with AVX2 instructions only
	$(PY) -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder tests/cells/test_cells.py tests/cells/test_family.py \
		tests/cells/test_memory_cells.py tests/decoding/test_search.py tests/training/test_train_step.py \
		tests/cli/test_cli_documents.py tests/decoding/test_translator.py $(PYTEST_ARGS)

test-slow: $(INSTALLED) ## runs the tests that train models
	$(PY) -m pytest -m slow --timeout=3600 $(PYTEST_ARGS)

test-next: ## runs the tests on another Python, PYTHON=python3.12, or a TensorFlow from 2.16 on, TENSORFLOW=2.19.0
	sh scripts/next/run.sh $(or $(TENSORFLOW),lock) $(PYTEST_ARGS)

lint: $(INSTALLED) ## checks the format and the source with ruff
	$(PY) -m ruff format --check --quiet --diff
	$(PY) -m ruff check --output-format=concise

format: $(INSTALLED) ## formats the source with ruff
	$(PY) -m ruff format

check: lint ## lint, and mypy
	$(PY) -m mypy

docs: ## builds the documentation into build/site, with warnings as errors
	sh scripts/docs.sh

package: $(INSTALLED) ## builds sdist and wheel in dist/, installs the wheel and uses it in an empty folder
	sh scripts/package.sh

demo: $(INSTALLED) ## trains, translates and scores on the synthetic corpus, in five minutes
	$(PY) -m tfmann demo

reproduce-vi-en: $(INSTALLED) ## Collier & Beel 2019, Table 1; SCALE=gpu|paper|cpu CORPUS_DIR= OUT_DIR= SEEDS="1 2" ROWS=luong
reproduce-ro-en: $(INSTALLED) ## the same for its Table 2, on WMT16 Romanian-English
reproduce-zh-en: $(INSTALLED) ## Meng et al. 2018, Table 1; CORPUS_DIR= of your NIST text
reproduce-alignment: $(INSTALLED) ## its Table 2, alignment error; SCALE=cpu on the Hansards, CORPUS_DIR=
reproduce-de-en: $(INSTALLED) ## its Table 4, on WMT17 German-English
reproduce-en-de: $(INSTALLED) ## the same in the other direction
reproduce-en-ja: $(INSTALLED) ## Mino et al. 2017, Table 2, IWSLT'07; CORPUS_DIR= of your text
reproduce-en-ja-ntcir: $(INSTALLED) ## the same, NTCIR-10
reproduce-en-ja-aspec: $(INSTALLED) ## the same, ASPEC
reproduce-cache: $(INSTALLED) ## Tu et al. 2018, Tables 2 to 6; DOMAIN=subtitle|news|ted CORPUS_DIR= of your text
reproduce-bcontrast-de-en: $(INSTALLED) ## Tu's systems on dialogues, with the histories of other documents
reproduce-bcontrast-en-de: $(INSTALLED) ## the same in the other direction
reproduce-multi30k: $(INSTALLED) ## Meng's systems on Multi30k, at a size for a CPU
reproduce-synthetic: $(INSTALLED) ## every cell at its tiny size on the synthetic corpus
reproduce-synthetic-long: $(INSTALLED) ## Collier & Beel's systems there on long sentences, five seeds
reproduce-synthetic-adequacy: $(INSTALLED) ## Meng's systems there, three seeds: AER, adequacy
reproduce-synthetic-tense: $(INSTALLED) ## Tu's systems on documents that state their tense once, three seeds
reproduce-synthetic-senses: $(INSTALLED) ## the same on documents that show the senses of some nouns elsewhere
reproduce-%: TABLE = $(@:reproduce-%=%)
reproduce-cache: TABLE = cache-$(or $(DOMAIN),subtitle)
reproduce-vi-en reproduce-ro-en reproduce-zh-en reproduce-de-en reproduce-en-de reproduce-en-ja \
reproduce-en-ja-ntcir reproduce-en-ja-aspec reproduce-multi30k reproduce-synthetic reproduce-synthetic-long \
reproduce-synthetic-adequacy reproduce-synthetic-tense reproduce-synthetic-senses \
reproduce-alignment reproduce-cache reproduce-bcontrast-de-en reproduce-bcontrast-en-de:
	$(PY) -m tfmann reproduce $(TABLE) $(if $(SCALE),--scale="$(SCALE)") \
		$(if $(CORPUS_DIR),--corpus_dir="$(CORPUS_DIR)") $(if $(OUT_DIR),--out_dir="$(OUT_DIR)") \
		$(if $(SEEDS),--seeds="$(SEEDS)") $(if $(ROWS),--rows="$(ROWS)")

report: $(INSTALLED) ## results/report.html: results, sentences, figures of your runs; OUT_DIR= OUTPUT=
	$(PY) -m tfmann report page $(if $(OUT_DIR),--out_dir="$(OUT_DIR)") \
		--output="$(or $(OUTPUT),results/report.html)"

figures: $(INSTALLED) ## draws the figures of docs/models.md from the runs of reproduce-synthetic
	$(PY) -m tfmann report gallery --out_dir=runs/synthetic/tiny --sentence=4 \
		--prefix=runs/synthetic/tiny/corpus/test --output=docs/figures

# What is trained already in OUT_DIR is packed as it is.
play-models: $(INSTALLED) ## trains and packs the models of `tfmann play`; OUT_DIR=runs/play CELLS=luong,ntm
	$(PY) scripts/play_models.py $(if $(OUT_DIR),--out_dir="$(OUT_DIR)") $(if $(CELLS),--cells="$(CELLS)")

learning-tasks: $(INSTALLED) ## trains NTM, DNC and LSTM to copy and recall; CELLS="ntm dnc-msd" SEEDS="1 2 3" JOBS=2, hours
	@for seed in $(or $(SEEDS),1 2 3); do for task in copy repeat_copy associative_recall; do \
	for cell in $(or $(CELLS),ntm dnc lstm); do echo "--task=$$task --cell=$$cell --seed=$$seed"; done; done; done \
	| xargs -P $(or $(JOBS),1) -L 1 $(PY) -m benchmarks.tasks --out=runs/learning-tasks
	$(PY) -m benchmarks.tasks.plot runs/learning-tasks/*.jsonl --out=runs/learning-tasks

# Skips what results/ already has for this revision.
bench: $(INSTALLED) ## measures speed, memory and start-up; SIZES=small,paper CELLS= WHAT= PAIRS=5, hours
	$(PY) -m benchmarks.speed --out=results/speed.jsonl $(if $(SIZES),--sizes="$(SIZES)") \
		$(if $(CELLS),--cells="$(CELLS)") $(if $(WHAT),--what="$(WHAT)") \
		$(if $(PAIRS),--pairs="$(PAIRS)")
	$(PY) -m benchmarks.speed scaling --out=results/scaling.jsonl $(if $(PAIRS),--pairs="$(PAIRS)")
	$(PY) -m benchmarks.report

bench-peers: $(INSTALLED) ## compares with JoeyNMT and OpenNMT-tf; CORPUS_DIR= OURS_OUT_DIR= PAIRS=5, hours
	sh benchmarks/peers/run.sh

bench-marian: $(INSTALLED) ## compares with Marian, and our DNC with PyTorch's; as bench-peers, hours
	sh benchmarks/peers/run_marian.sh

lock: ## resolves requirements.lock again, for Python 3.9 to 3.13
	sh scripts/lock.sh

audit: ## checks the versions of requirements.lock against the Python advisory database
	sh scripts/audit.sh

.DEFAULT:
	@echo "there is no target $@: make lists them" >&2; exit 2

clean: ## removes caches and build products, but not .venv or trained models
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name '.?*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
