#!/bin/sh
# Writes requirements.lock: every version of constraints.txt with the SHA-256 of its files, so that
# an installation takes those files or none.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(sh scripts/find_python.sh)" -m venv "$work"
"$work/bin/python" -m pip install --quiet 'uv>=0.9,<1'
{
    echo "# constraints.txt with the hashes of its files. Written by scripts/lock.sh; do not edit."
    # 3.9.2: the first 3.9 that all packages take.
    "$work/bin/uv" pip compile constraints.txt --quiet --no-deps --generate-hashes --universal \
        --python-version 3.9.2 --no-header --no-annotate
} >"$work/requirements.lock"
mv "$work/requirements.lock" requirements.lock
