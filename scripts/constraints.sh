#!/bin/sh
# Writes constraints.txt: the newest versions that setup.cfg allows, resolved and installed with
# each of the Pythons given (default: python3.9 python3.10 python3.11), every package they need
# included. A version that only some of the Pythons took is marked with theirs.
set -eu

[ $# -gt 0 ] || set -- python3.9 python3.10 python3.11
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for python in "$@"; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "Resolving for Python $version ..." >&2
    "$python" -m venv "$work/$version"
    "$work/$version/bin/python" -m pip install --quiet --upgrade pip 'setuptools>=65,<81'
    "$work/$version/bin/python" -m pip install --quiet --no-build-isolation '.[test]'
    "$work/$version/bin/python" -m pip check
    "$work/$version/bin/python" -m pip freeze --all --exclude tfmann |
        sed "s/^/$version /" >>"$work/frozen"
done

{
    echo "# The whole tested resolve. Written by scripts/constraints.sh; do not edit."
    awk -v pythons=$# '
        {
            count[$2]++
            marker[$2] = marker[$2] (marker[$2] ? " or " : " ; ") "python_version == \"" $1 "\""
        }
        END {
            for (pin in count) print pin (count[pin] == pythons ? "" : marker[pin])
        }' "$work/frozen" | LC_ALL=C sort -f
} >"$work/constraints.txt"
mv "$work/constraints.txt" constraints.txt
