#!/bin/sh
# Prints the path of a Python that can install tfmann (3.11, 3.10 or 3.9, on x86_64), or says on
# one line of standard error what is missing and exits 1.
#
# PYTHON=path in the environment asks for that interpreter and no other. Where no installed Python
# fits and uv is there, uv is asked for a Python 3.11.
#
# Uses nothing but the shell and uname, so that a test can replace PATH.
set -u

refuse() {
    printf 'tfmann: %s\n' "$1" >&2
    exit 1
}

# "3.11" for a Python 3.11; nothing where $1 does not run (pyenv leaves such stubs behind).
version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# Debian packs venv apart from Python.
has_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

machine=$(uname -m)
case $machine in
    x86_64 | amd64) ;;
    *) refuse "this machine is $machine, and tensorflow-addons and tensorflow-text have wheels for \
x86_64 only: use an x86_64 machine." ;;
esac

if [ -n "${PYTHON:-}" ]; then
    set -- "$PYTHON"
else
    set -- python3.11 python3.10 python3.9 python3
fi
unfit=
without_venv=
for candidate in "$@"; do
    path=$(command -v "$candidate") || continue
    version=$(version_of "$path") || continue
    case $version in
        3.9 | 3.10 | 3.11)
            if has_venv "$path"; then
                printf '%s\n' "$path"
                exit 0
            fi
            without_venv=${without_venv:-$version}
            ;;
        *) unfit=" ($path is Python $version, for which TensorFlow 2.15 and tensorflow-addons have \
no wheels)" ;;
    esac
done

if [ -z "${PYTHON:-}" ] && command -v uv >/dev/null; then
    # Only uv's own: a 3.11 of the system's, if there is one, was just found to be unfit.
    uvs_python() { uv python find --python-preference only-managed 3.11 2>/dev/null; }
    uvs_python && exit
    uv python install 3.11 >/dev/null 2>&1 && uvs_python && exit
    refuse "no Python 3.9, 3.10 or 3.11 is installed$unfit, and uv could not install one: see what \
'uv python install 3.11' says."
fi
if [ -n "$without_venv" ]; then
    refuse "Python $without_venv is here without its venv module: install it (on Debian: apt \
install python$without_venv-venv)."
fi
if [ -n "${PYTHON:-}" ]; then
    refuse "PYTHON=$PYTHON is not a Python 3.9, 3.10 or 3.11$unfit."
fi
refuse "Python 3.9, 3.10 or 3.11 is missing$unfit: install Python 3.11, or uv \
(https://docs.astral.sh/uv)."
