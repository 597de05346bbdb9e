#!/bin/sh
# Builds the source distribution, and from it the wheel, into dist/; then installs the wheel into an
# environment of its own and uses it in an empty folder, without the other files of a checkout. The
# packages that tfmann needs are those of .venv, so that nothing is downloaded.
set -eu

unset PYTHONPATH # the checkout on it would count as an installed tfmann
python=$PWD/.venv/bin/python
dist=$PWD/dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Does what pip does (PEP 517), with the setuptools of .venv.
build() { (cd "$1" && "$python" -c "from setuptools import build_meta as b; b.$2('$dist')"); }

rm -rf "$dist" build
mkdir -p "$dist" "$work/source" "$work/empty"
build . build_sdist >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
tar -xzf "$dist"/tfmann-*.tar.gz -C "$work/source"
# The documentation, the tests and what they read come with it.
git ls-files | LC_ALL=C sort >"$work/tracked"
(cd "$work"/source/tfmann-* && find . -type f | cut -c 3- | LC_ALL=C sort) >"$work/packed"
missing=$(comm -23 "$work/tracked" "$work/packed")
[ -z "$missing" ] || { echo "not in the source distribution: $missing" >&2; exit 1; }
build "$work"/source/tfmann-* build_wheel >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

"$python" -m venv --without-pip "$work/venv"
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
own=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" -m pip --python "$work/venv/bin/python" --disable-pip-version-check install --quiet \
    --no-deps --no-index "$dist"/tfmann-*.whl
echo "$packages" >"$own/dependencies.pth" # its .pth files, and with them the checkout, are left out

walk=$PWD/scripts/walk_package.py
cd "$work/empty"
PATH=$work/venv/bin:$PATH
python -c 'from tfmann.utils import resources; assert resources.INSTALLED'
python "$walk"
cd / # before the folder goes
ls -l "$dist" | awk 'NR > 1 { print $5, $9 }'
