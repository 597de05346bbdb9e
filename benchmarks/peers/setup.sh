#!/bin/sh
# Installs the peers, each into a virtual environment of its own:
#
#   $PEERS_DIR/joey     JoeyNMT 2.3.0 on PyTorch (CPU build)
#   $PEERS_DIR/onmt     OpenNMT-tf 2.32.0 on TensorFlow 2.13.1 (the last it supports)
#   $PEERS_DIR/marian   Marian 1.12.42 as pymarian, a wheel of 604 MB
#   $PEERS_DIR/dnc      the DNC for PyTorch, dnc 1.1.0
#
# usage: [PEERS_DIR=dir] [PYTHON=python3.11] sh benchmarks/peers/setup.sh [joey|onmt|marian|dnc ...]
#
# Without arguments the first two are installed. An environment that already passes its check is
# left alone, so that running this twice costs nothing; one that does not is rebuilt. Packages are
# installed as published: what the peers need on today's machines is done in our drivers.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
envs=${PEERS_DIR:-$here/.envs}
python=${PYTHON:-python3.11}

# PyPI's own torch for Linux carries several GB of CUDA. For the CPU build, let pip find it first:
#   PIP_EXTRA_INDEX_URL=<the CPU index named on pytorch.org>  sh benchmarks/peers/setup.sh
# Any torch from 2.7 on behaves the same here; the version is part of every line compare.py prints.
torch=${TORCH:-torch==2.13.0}

case $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>&1) in
    3.10 | 3.11) ;;
    *)
        echo "setup.sh: $python is not Python 3.10 or 3.11 (TensorFlow 2.13 has no wheels for" \
            "later ones); name one with PYTHON=path" >&2
        exit 1
        ;;
esac

# fresh NAME: an empty environment; its pip stays the one that Python brought.
fresh() {
    rm -rf "${envs:?}/$1"
    mkdir -p "$envs"
    "$python" -m venv "$envs/$1"
}

pip_install() {
    env=$1
    shift
    "$envs/$env/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

# check NAME: imports what the driver imports, and so finds a half-made environment.
check() {
    case $1 in
        joey) code='import torch, joeynmt.prediction, joeynmt.training' ;;
        onmt) code='import opennmt, tensorflow_addons' ;;
        marian) code='import _pymarian' ;;
        dnc) code='import dnc' ;;
    esac
    TF_CPP_MIN_LOG_LEVEL=3 "$envs/$1/bin/python" -W ignore -c "$code" >/dev/null
}

install_joey() {
    fresh joey
    # importlib_metadata is imported by JoeyNMT 2.3.0 but missing from its requirements.
    pip_install joey "$torch" joeynmt==2.3.0 importlib_metadata
}

install_onmt() {
    fresh onmt
    # NumPy 1.24.3 is the newest that TensorFlow 2.13 allows; setuptools 65 still has
    # pkg_resources, which tensorboard imports without requiring it. OpenNMT-tf asks for no
    # TensorFlow by itself, and uses tensorflow-text only for SentencePiece: left out.
    pip_install onmt "setuptools==65.*" numpy==1.24.3 tensorflow-cpu==2.13.1 \
        tensorflow-addons==0.21.0 OpenNMT-tf==2.32.0
}

install_marian() {
    fresh marian
    # Its dependencies are for downloads and scores, which are not used.
    pip_install marian --no-deps pymarian==1.12.42
}

install_dnc() {
    fresh dnc
    # Its dependency flann is for the sparse memories, which are not used.
    pip_install dnc "$torch" numpy
    pip_install dnc --no-deps dnc==1.1.0
}

[ $# -gt 0 ] || set -- joey onmt
for name in "$@"; do
    case $name in joey | onmt | marian | dnc) ;; *)
        echo "setup.sh: no peer is called '$name' (there are: joey, onmt, marian, dnc)" >&2
        exit 2
        ;;
    esac
    if [ -x "$envs/$name/bin/python" ] && check "$name" 2>/dev/null; then
        echo "$name: already in $envs/$name"
        continue
    fi
    echo "$name: installing into $envs/$name"
    "install_$name"
    check "$name"
done
