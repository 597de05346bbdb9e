#!/bin/sh
# Writes requirements.lock: the newest versions that setup.cfg allows, with every package they need
# and the SHA-256 of each file, so that an installation uses those files or none.
#
# The versions are resolved and installed with each of the Pythons given (default: python3.9
# python3.10 python3.11). A version that only some of the Pythons use is marked with theirs.
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

awk -v pythons=$# '
    {
        count[$2]++
        marker[$2] = marker[$2] (marker[$2] ? " or " : " ; ") "python_version == \"" $1 "\""
    }
    END {
        for (pin in count) print pin (count[pin] == pythons ? "" : marker[pin])
    }' "$work/frozen" | LC_ALL=C sort -f >"$work/pins.txt"

"$(sh scripts/find_python.sh)" -m venv "$work/uv"
"$work/uv/bin/python" -m pip install --quiet 'uv>=0.9,<1'
{
    echo "# All packages, with the hashes of their files. Written by scripts/lock.sh; do not edit."
    # 3.9.2: the first 3.9 that all packages support.
    "$work/uv/bin/uv" pip compile "$work/pins.txt" --quiet --no-deps --generate-hashes \
        --universal --python-version 3.9.2 --no-header --no-annotate
} >"$work/requirements.lock"
mv "$work/requirements.lock" requirements.lock
