#!/bin/sh
# Builds the documentation into build/site, with warnings as errors. mkdocs and its plugins are in
# .venv-docs, in the versions of the extra `docs` of setup.cfg: they only read the source, so
# TensorFlow is not needed.
set -eu

venv=.venv-docs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=$(sh scripts/find_python.sh)
"$python" - >"$work/requirements.txt" <<'END'
import configparser

setup = configparser.ConfigParser()
setup.read("setup.cfg", encoding="utf-8")
print(setup["options.extras_require"]["docs"])
END
# The copy of the requirements is made last, so an installation that was killed is repeated.
if ! cmp -s "$work/requirements.txt" "$venv/requirements.txt"; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        -r "$work/requirements.txt"
    cp "$work/requirements.txt" "$venv/requirements.txt"
fi
# mkdocs-material would praise its successor at every start.
NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m mkdocs build --strict
