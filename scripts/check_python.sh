#!/bin/sh
# Where PYTHON=path asks for an interpreter, says so and exits 1 if .venv was made by one of another
# version: it would be used as it is.
set -eu

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

[ -n "${PYTHON:-}" ] && [ ! -f .venv/installing ] && present=$(version_of .venv/bin/python) || exit 0
asked=$(version_of "$(sh scripts/find_python.sh)") || exit 1 # one line of reason is printed already
if [ "$asked" != "$present" ]; then
    echo "tfmann: .venv has Python $present, and PYTHON=$PYTHON is Python $asked: remove .venv" \
        "(rm -rf .venv), or leave out PYTHON." >&2
    exit 1
fi
