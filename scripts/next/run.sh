#!/bin/sh
# Runs tests on a later TensorFlow, 2.16 to 2.21, with Keras 2 and without tensorflow-addons.
#
#     sh scripts/next/run.sh 2.21.0 [pytest arguments]
#
# PYTHON=path in the environment chooses the interpreter: 3.11 for every version, 3.12 and 3.13 from
# 2.19 and 2.21 on. Installs into .venv-next/VERSION-PYTHON, once. Without arguments for pytest it
# runs all tests that are not slow.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: sh scripts/next/run.sh TENSORFLOW_VERSION [pytest arguments]" >&2
    exit 2
fi
version=$1
shift
minor=$(echo "$version" | cut -d. -f1,2)
base=${PYTHON:-$(sh scripts/find_python.sh)}
venv=.venv-next/$version-$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
python=$venv/bin/python

if [ ! -f "$venv/installed" ]; then
    rm -rf "$venv"
    "$base" -m venv "$venv"
    # what setup.cfg says of Python 3.12 and later, for any Python
    "$python" -m pip install --quiet "tensorflow==$version" "tf-keras==$minor.*" \
        "tensorflow-text==$minor.*" 'setuptools>=65,<81' 'absl-py<3' 'sacrebleu>=2.3,<3' \
        'sentencepiece<0.3' 'subword-nmt<0.4' 'matplotlib<4' 'tqdm<5' 'jinja2<4' \
        'tensorboard>=2.15,<2.22' 'sacremoses<0.3' 'starlette<2' 'uvicorn<1' \
        hypothesis pytest pytest-timeout pytest-xdist
    touch "$venv/installed"
fi

export PYTHONPATH="$PWD" TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-3}"
# Warnings of the other versions are theirs: not errors here.
exec "$python" -m pytest -q -W ignore -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder "$@"
