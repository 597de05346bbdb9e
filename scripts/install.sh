#!/bin/sh
# Makes .venv in the current folder and installs tfmann into it, with the packages that
# requirements.lock has for its Python: a file whose hash is not in there is refused. An environment
# that is there already keeps its Python.
#
# Prints one line; pip's own output goes to .venv.log. The marker .venv/installing is there while
# the installation runs: one that was killed leaves it behind, and the next starts from nothing,
# because a half-copied package can look installed.
set -eu

marker=.venv/installing
log=.venv.log

if [ -f "$marker" ]; then
    if kill -0 "$(cat "$marker")" 2>/dev/null; then
        echo "tfmann: process $(cat "$marker") is installing .venv: wait for it to end." >&2
        exit 1
    fi
    rm -rf .venv
fi
# The Python that .venv was made from may be gone.
.venv/bin/python -c '' 2>/dev/null || rm -rf .venv

if [ -x .venv/bin/python ]; then
    python=.venv/bin/python
else
    # One line of reason is on standard error already where this fails.
    python=$(sh scripts/find_python.sh)
fi
echo "Installing tfmann into .venv with $python, once: 2 GB, a few minutes" \
    "(progress in $log) ..."

install() {
    [ -x .venv/bin/python ] || "$python" -m venv .venv || return
    pip="env PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip install"
    $pip --require-hashes -r requirements.lock || return
    # setuptools is there, so building needs no environment of its own.
    # The older kind of editable installation works in the folder above the checkout, too, where
    # the checkout's own folder could be taken for the package.
    $pip --no-deps --no-build-isolation --config-settings editable_mode=compat -e . || return
    .venv/bin/python -m pip check
}

mkdir -p .venv
echo $$ >"$marker"
if ! install >"$log" 2>&1; then
    rm -f "$marker"
    tail -n 5 "$log" >&2
    echo "tfmann: the installation failed; all of its output is in $log." >&2
    exit 1
fi
rm -f "$marker"
