#!/bin/sh
# Prints the path of the newest Python that can install tfmann (3.13 to 3.9, on x86_64), or says on
# one line of standard error what is missing and exits 1.
#
# PYTHON=path in the environment asks for that interpreter and no other: results/ was recorded on
# 3.11, the last Python that tensorflow-addons is for. pyenv's Pythons are found whether or not they
# are activated. Where no installed Python fits and uv is there, uv is asked for one.
#
# Uses nothing but the shell and uname, so that a test can replace PATH.
set -u

newest=3.13
versions="3.13 3.12 3.11 3.10 3.9"

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
    *) refuse "this machine is $machine, and tensorflow-text has wheels for x86_64 only: use an x86_64 machine." ;;
esac

unfit=
without_venv=

# Prints the first of the candidates $2, $3, ... that is a Python $1 with venv, and ends the search.
# Keeps what was wrong with the others.
search() {
    wanted=$1
    shift
    for candidate in "$@"; do
        path=$(command -v "$candidate") || continue
        version=$(version_of "$path") || continue
        case " $versions " in
            *" $version "*) ;;
            *) unfit=" ($path is Python $version, for which TensorFlow has no wheels that fit)" ;;
        esac
        [ "$version" = "$wanted" ] || continue
        if has_venv "$path"; then
            printf '%s\n' "$path"
            exit 0
        fi
        without_venv=${without_venv:-$version}
    done
}

for number in $versions; do
    if [ -n "${PYTHON:-}" ]; then
        search "$number" "$PYTHON"
    else
        search "$number" "python$number" python3 \
            "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$number".*/bin/python
    fi
done

if [ -z "${PYTHON:-}" ] && command -v uv >/dev/null; then
    # Only uv's own: one of the system's, if there is one, was just found to be unfit.
    uvs_python() { uv python find --python-preference only-managed "$newest" 2>/dev/null; }
    uvs_python && exit
    uv python install "$newest" >/dev/null 2>&1 && uvs_python && exit
    refuse "no Python 3.9 to 3.13 is installed$unfit, and uv could not install one: see what \
'uv python install $newest' says."
fi
if [ -n "$without_venv" ]; then
    refuse "Python $without_venv is here without its venv module: install it (on Debian: apt \
install python$without_venv-venv)."
fi
if [ -n "${PYTHON:-}" ]; then
    refuse "PYTHON=$PYTHON is not a Python 3.9 to 3.13$unfit."
fi
refuse "Python 3.9 to 3.13 is missing$unfit: install Python $newest, or uv \
(https://docs.astral.sh/uv)."
