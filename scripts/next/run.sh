#!/bin/sh
# Runs tests on another Python or TensorFlow than those of .venv.
#
#     sh scripts/next/run.sh lock [pytest arguments]
#     sh scripts/next/run.sh 2.19.0 [pytest arguments]
#
# lock: the packages that requirements.lock has for the Python. A version, 2.16 to 2.21: this
# TensorFlow with the newest packages that go with it, Keras 2, and no tensorflow-addons. PYTHON=path
# in the environment chooses the interpreter: 3.11 for every version, 3.12 and 3.13 from 2.19 and
# 2.21 on. Installs into .venv-next/VERSION-PYTHON, once. Without arguments for pytest it runs all
# tests that are not slow.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: sh scripts/next/run.sh lock|TENSORFLOW_VERSION [pytest arguments]" >&2
    exit 2
fi
version=$1
shift
base=${PYTHON:-$(sh scripts/find_python.sh)}
venv=.venv-next/$version-$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
python=$venv/bin/python

install() {
    rm -rf "$venv"
    "$base" -m venv "$venv"
    "$python" -m pip install --quiet "$@"
}

if [ "$version" = lock ]; then
    if ! cmp -s requirements.lock "$venv/installed"; then
        install --require-hashes -r requirements.lock
        cp requirements.lock "$venv/installed"
    fi
elif [ ! -f "$venv/installed" ]; then
    minor=$(echo "$version" | cut -d. -f1,2)
    # what setup.cfg says of Python 3.12 and later, for any Python
    install "tensorflow==$version" "tf-keras==$minor.*" "tensorflow-text==$minor.*" \
        'setuptools>=65,<81' 'absl-py<3' 'sacrebleu>=2.3,<3' 'sentencepiece<0.3' \
        'subword-nmt<0.4' 'matplotlib<4' 'tqdm<5' 'jinja2<4' 'tensorboard>=2.15,<2.22' \
        'sacremoses<0.3' 'starlette<2' 'uvicorn<1' hypothesis pytest pytest-timeout pytest-xdist
    touch "$venv/installed"
fi

export PYTHONPATH="$PWD" TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-3}"
# Warnings of the other versions are theirs: not errors here.
exec "$python" -m pytest -q -W ignore -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder "$@"
