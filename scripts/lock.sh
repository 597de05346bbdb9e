#!/bin/sh
# Writes requirements.lock: the newest versions that setup.cfg allows, with every package they need
# and the SHA-256 of each file, so that an installation uses those files or none.
#
#     sh scripts/lock.sh [python3.13 ...]
#
# The versions are resolved and installed with each of the Pythons given (default: all five). A Python
# that is not given keeps its versions in the lock, and the others get its tools for tests and checks.
# A version that only some of the Pythons use is marked with theirs.
set -eu

versions="3.9 3.10 3.11 3.12 3.13"
tools="hypothesis|mypy|pytest|pytest-timeout|pytest-xdist|ruff"
[ $# -gt 0 ] || set -- python3.9 python3.10 python3.11 python3.12 python3.13
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

"$(sh scripts/find_python.sh)" -m venv "$work/uv"
"$work/uv/bin/python" -m pip install --quiet 'uv>=0.9,<1'
compile() { "$work/uv/bin/uv" pip compile --quiet --no-deps --no-header --no-annotate "$@"; }

given=
for python in "$@"; do
    given="$given $(version_of "$python")"
done
: >"$work/tools"
for version in $versions; do
    case "$given " in *" $version "*) continue ;; esac
    compile --python-version "$version.2" requirements.lock >"$work/kept"
    grep -E "^($tools)==" "$work/kept" >"$work/tools" # those of the newest Python remain
    sed "s/^/$version /" "$work/kept" >>"$work/frozen"
done

for python in "$@"; do
    version=$(version_of "$python")
    echo "Resolving for Python $version ..." >&2
    "$python" -m venv "$work/$version"
    "$work/$version/bin/python" -m pip install --quiet --upgrade pip 'setuptools>=65,<81'
    "$work/$version/bin/python" -m pip install --quiet --no-build-isolation -c "$work/tools" '.[test]'
    "$work/$version/bin/python" -m pip check
    "$work/$version/bin/python" -m pip freeze --all --exclude tfmann |
        sed "s/^/$version /" >>"$work/frozen"
done

awk -v pythons="$(echo "$versions" | wc -w)" '
    {
        split($2, parts, "==")
        gsub(/[-_.]+/, "-", parts[1])
        pin = tolower(parts[1]) "==" parts[2]
        count[pin]++
        marker[pin] = marker[pin] (marker[pin] ? " or " : " ; ") "python_version == \"" $1 "\""
    }
    END {
        for (pin in count) print pin (count[pin] == pythons ? "" : marker[pin])
    }' "$work/frozen" | LC_ALL=C sort >"$work/pins.txt"

{
    echo "# All packages, with the hashes of their files. Written by scripts/lock.sh; do not edit."
    # 3.9.2: the first 3.9 that all packages support.
    compile --generate-hashes --universal --python-version 3.9.2 "$work/pins.txt"
} >"$work/requirements.lock"
mv "$work/requirements.lock" requirements.lock
