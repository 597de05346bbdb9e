#!/bin/sh
# Prints the path of a Python that can install tfmann (3.9 to 3.13, on x86_64), or says on one line
# of standard error what is missing and exits 1.
#
# A Python that requirements.lock is for, 3.11 or older, is taken before a later one, which installs
# a later TensorFlow without tensorflow-addons. PYTHON=path in the environment asks for that
# interpreter and no other. Where no installed Python fits and uv is there, uv is asked for a 3.11.
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
    *) refuse "this machine is $machine, and tensorflow-text has wheels for x86_64 only: use an x86_64 machine." ;;
esac

if [ -n "${PYTHON:-}" ]; then
    set -- "$PYTHON"
else
    set -- python3.11 python3.10 python3.9 python3 python3.13 python3.12
fi
unfit=
later=
without_venv=
for candidate in "$@"; do
    path=$(command -v "$candidate") || continue
    version=$(version_of "$path") || continue
    case $version in
        3.9 | 3.10 | 3.11 | 3.12 | 3.13) ;;
        *)
            unfit=" ($path is Python $version, for which TensorFlow has no wheels that fit)"
            continue
            ;;
    esac
    if ! has_venv "$path"; then
        without_venv=${without_venv:-$version}
        continue
    fi
    case $version in
        3.12 | 3.13) later=${later:-$path} ;;
        *)
            printf '%s\n' "$path"
            exit 0
            ;;
    esac
done

if [ -n "$later" ]; then
    printf '%s\n' "$later"
    exit 0
fi
if [ -z "${PYTHON:-}" ] && command -v uv >/dev/null; then
    # Only uv's own: a 3.11 of the system's, if there is one, was just found to be unfit.
    uvs_python() { uv python find --python-preference only-managed 3.11 2>/dev/null; }
    uvs_python && exit
    uv python install 3.11 >/dev/null 2>&1 && uvs_python && exit
    refuse "no Python 3.9 to 3.13 is installed$unfit, and uv could not install one: see what \
'uv python install 3.11' says."
fi
if [ -n "$without_venv" ]; then
    refuse "Python $without_venv is here without its venv module: install it (on Debian: apt \
install python$without_venv-venv)."
fi
if [ -n "${PYTHON:-}" ]; then
    refuse "PYTHON=$PYTHON is not a Python 3.9 to 3.13$unfit."
fi
refuse "Python 3.9 to 3.13 is missing$unfit: install Python 3.11, or uv \
(https://docs.astral.sh/uv)."
