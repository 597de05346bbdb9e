#!/bin/sh
# Runs the tests of cells, decoding and training on another TensorFlow, 2.16 to 2.21, with Keras 2.
#
#     sh scripts/next/run.sh 2.18.1
#
# Experimental: tensorflow-addons was made for 2.15, its custom operations do not load into others,
# and only `sitecustomize.py` beside this file lets it be imported at all. Installs into
# .venv-next/VERSION, once.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: sh scripts/next/run.sh TENSORFLOW_VERSION [pytest arguments]" >&2
    exit 2
fi
version=$1
shift
minor=$(echo "$version" | cut -d. -f1,2)
venv=.venv-next/$version
python=$venv/bin/python

if [ ! -f "$venv/installed" ]; then
    rm -rf "$venv"
    "$(sh scripts/find_python.sh)" -m venv "$venv"
    # tensorflow-text ends at 2.20; without it SentencePiece models cannot be used. From 2.21 on
    # TensorFlow no longer brings TensorBoard.
    text="tensorflow-text==$minor.*"
    [ "$minor" = 2.21 ] && text=
    "$python" -m pip install --quiet "tensorflow==$version" "tf-keras==$minor.*" $text \
        'typeguard>=2.7,<3' 'setuptools<81' 'absl-py<3' 'sacrebleu<3' sentencepiece subword-nmt \
        'matplotlib<4' 'tqdm<5' 'jinja2<4' tensorboard hypothesis pytest pytest-timeout
    "$python" -m pip install --quiet --no-deps tensorflow-addons==0.23.0
    touch "$venv/installed"
fi

export PYTHONPATH="$PWD/scripts/next:$PWD" TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-3}"
# Warnings of the other versions are theirs: not errors here.
exec "$python" -m pytest -q -W ignore "$@" \
    tests/test_search.py tests/test_cells.py tests/test_memory_cells.py tests/test_family.py \
    tests/test_cross_sentence.py tests/test_cache.py tests/test_step.py tests/test_objective.py \
    tests/test_optimizer.py tests/test_translator.py tests/test_forced.py \
    tests/test_document_decoding.py tests/test_document_training.py tests/test_run.py
