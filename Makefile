# `make` lists the targets. Everything is installed into .venv, by the first target that needs it.

# TensorFlow says at every start that CUDA libraries are registered twice; 0 shows what it says.
export TF_CPP_MIN_LOG_LEVEL ?= 3

VENV := .venv
PY := $(VENV)/bin/python
# The stamp is touched when an installation has ended well, so one that was killed is repeated.
INSTALLED := $(VENV)/installed
# More arguments for pytest, as in make test PYTEST_ARGS="-x tests/test_bootstrap.py".
PYTEST_ARGS ?=

# One that no target knows would change nothing, and training takes hours.
VARIABLES := CELLS CORPUS_DIR DOMAIN JOBS OURS_OUT_DIR OUTPUT OUT_DIR PAIRS PEERS_DIR PYTEST_ARGS \
	PYTHON ROWS SCALE SEEDS SIZES TENSORFLOW TF_CPP_MIN_LOG_LEVEL THREADS TORCH WHAT
GIVEN := $(foreach one,$(.VARIABLES),$(if $(filter command,$(origin $(one))),$(one)))
UNKNOWN := $(filter-out $(VARIABLES) PY MAKE% -%,$(GIVEN))
$(if $(UNKNOWN),$(error there is no variable $(UNKNOWN): expected some of $(VARIABLES)))

.DEFAULT_GOAL := help
.PHONY: help install install-gpu test test-avx2 test-slow test-next lint check package demo reproduce-vi-en \
	reproduce-ro-en \
	reproduce-zh-en reproduce-de-en reproduce-en-de reproduce-en-ja reproduce-en-ja-ntcir \
	reproduce-en-ja-aspec reproduce-multi30k reproduce-synthetic reproduce-synthetic-adequacy \
	reproduce-synthetic-tense reproduce-alignment reproduce-cache report figures learning-tasks bench \
	bench-peers constraints audit clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-28s %s\n", $$1, $$2 }' Makefile

$(INSTALLED): setup.cfg requirements.lock
	@sh scripts/install.sh
	@touch $@

install: $(INSTALLED) ## what every other target does first; PYTHON=path chooses the interpreter

install-gpu: $(INSTALLED) ## also the CUDA libraries, for an NVIDIA GPU
	$(PY) -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[gpu]'

# In two processes. What pytest makes of the tests' source is kept, whatever the environment says:
# else each process makes it again, which takes as long as everything else before the first test.
test test-avx2: export PYTHONDONTWRITEBYTECODE =
test: $(INSTALLED) ## the tests that take under ten minutes together
	$(PY) -m pytest -m "not slow" -n 2 --dist loadfile $(PYTEST_ARGS)

# Where products are summed in another order than by AVX-512 or AMX.
test-avx2: export ONEDNN_MAX_CPU_ISA = AVX2
test-avx2: $(INSTALLED) ## cells, searches and updates once more, with the instructions of AVX2
	$(PY) -m pytest -m "not slow" -n 2 --dist loadfile tests/test_cells.py tests/test_family.py \
		tests/test_memory_cells.py tests/test_search.py tests/test_step.py \
		tests/test_cli_documents.py tests/test_translator.py $(PYTEST_ARGS)

test-slow: $(INSTALLED) ## the tests that train models
	$(PY) -m pytest -m slow --timeout=3600 $(PYTEST_ARGS)

test-next: ## the tests on a later TensorFlow, 2.16 to 2.21: TENSORFLOW=2.21.0 PYTHON=python3.13
	sh scripts/next/run.sh $(or $(TENSORFLOW),2.21.0) $(PYTEST_ARGS)

lint: $(INSTALLED) ## ruff
	$(PY) -m ruff check --output-format=concise

check: lint ## ruff, and mypy on the annotated functions
	$(PY) -m mypy

package: $(INSTALLED) ## sdist and wheel in dist/; the wheel is installed and used in an empty folder
	sh scripts/package.sh

demo: $(INSTALLED) ## trains, translates and scores on the synthetic corpus, in five minutes
	$(PY) -m tfmann demo

reproduce-vi-en: $(INSTALLED) ## Collier & Beel 2019, Table 1; SCALE=paper|cpu CORPUS_DIR= OUT_DIR= SEEDS="1 2" ROWS=luong
reproduce-ro-en: $(INSTALLED) ## the same for its Table 2, on WMT16 Romanian-English
reproduce-zh-en: $(INSTALLED) ## Meng et al. 2018, Table 1; CORPUS_DIR= of your own NIST text
reproduce-alignment: $(INSTALLED) ## its Table 2, alignment error; SCALE=cpu on the Hansards, CORPUS_DIR=
reproduce-de-en: $(INSTALLED) ## its Table 4, on WMT17 German-English
reproduce-en-de: $(INSTALLED) ## the same in the other direction
reproduce-en-ja: $(INSTALLED) ## Mino et al. 2017, Table 2, IWSLT'07; CORPUS_DIR= of your own text
reproduce-en-ja-ntcir: $(INSTALLED) ## the same, NTCIR-10
reproduce-en-ja-aspec: $(INSTALLED) ## the same, ASPEC
reproduce-cache: $(INSTALLED) ## Tu et al. 2018, Tables 2 to 6; DOMAIN=subtitle|news|ted CORPUS_DIR= of your own text
reproduce-multi30k: $(INSTALLED) ## Meng's systems at the size for a CPU, on Multi30k
reproduce-synthetic: $(INSTALLED) ## every cell at its tiny size on the synthetic corpus
reproduce-synthetic-adequacy: $(INSTALLED) ## Meng's systems there, three seeds: AER, adequacy
reproduce-synthetic-tense: $(INSTALLED) ## Tu's systems on documents that tell their tense once, three seeds
reproduce-%: TABLE = $(@:reproduce-%=%)
reproduce-cache: TABLE = cache-$(or $(DOMAIN),subtitle)
reproduce-vi-en reproduce-ro-en reproduce-zh-en reproduce-de-en reproduce-en-de reproduce-en-ja \
reproduce-en-ja-ntcir reproduce-en-ja-aspec reproduce-multi30k reproduce-synthetic \
reproduce-synthetic-adequacy reproduce-synthetic-tense reproduce-alignment reproduce-cache:
	$(PY) -m tfmann reproduce $(TABLE) $(if $(SCALE),--scale="$(SCALE)") \
		$(if $(CORPUS_DIR),--corpus_dir="$(CORPUS_DIR)") $(if $(OUT_DIR),--out_dir="$(OUT_DIR)") \
		$(if $(SEEDS),--seeds="$(SEEDS)") $(if $(ROWS),--rows="$(ROWS)")

report: $(INSTALLED) ## all results, sentences and figures of your runs as one page; OUT_DIR= OUTPUT=
	$(PY) -m tfmann report page $(if $(OUT_DIR),--out_dir="$(OUT_DIR)") \
		$(if $(OUTPUT),--output="$(OUTPUT)")

figures: $(INSTALLED) ## the figures of docs/models.md, of the runs of reproduce-synthetic
	$(PY) -m tfmann report gallery --out_dir=runs/synthetic/tiny --sentence=4 \
		--prefix=runs/synthetic/tiny/corpus/test --output=docs/figures

learning-tasks: $(INSTALLED) ## copy, repeat copy, recall: NTM, DNC, LSTM; SEEDS="1 2 3" JOBS=2, hours
	@for seed in $(or $(SEEDS),1 2 3); do for task in copy repeat_copy associative_recall; do \
	for cell in ntm dnc lstm; do echo "--task=$$task --cell=$$cell --seed=$$seed"; done; done; done \
	| xargs -P $(or $(JOBS),1) -L 1 $(PY) -m benchmarks.tasks --out=runs/learning-tasks
	$(PY) -m benchmarks.tasks.plot runs/learning-tasks/*.jsonl --out=runs/learning-tasks

# What a revision has in results/ is not measured again.
bench: $(INSTALLED) ## every cell's speed, memory, start-up; SIZES=small,paper CELLS= WHAT= PAIRS=5, hours
	$(PY) -m benchmarks.speed --out=results/speed.jsonl $(if $(SIZES),--sizes="$(SIZES)") \
		$(if $(CELLS),--cells="$(CELLS)") $(if $(WHAT),--what="$(WHAT)") \
		$(if $(PAIRS),--pairs="$(PAIRS)")
	$(PY) -m benchmarks.speed scaling --out=results/scaling.jsonl $(if $(PAIRS),--pairs="$(PAIRS)")
	$(PY) -m benchmarks.report

bench-peers: $(INSTALLED) ## beside JoeyNMT and OpenNMT-tf; CORPUS_DIR= OURS_OUT_DIR= PAIRS=5, hours
	sh benchmarks/peers/run.sh

constraints: ## resolves constraints.txt and requirements.lock anew, for Python 3.9, 3.10 and 3.11
	sh scripts/constraints.sh
	sh scripts/lock.sh

audit: ## asks the Python advisory database about every version of constraints.txt
	sh scripts/audit.sh

clean: ## removes caches and build products; keeps .venv and what was trained
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name '.?*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
