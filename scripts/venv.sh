#!/bin/sh
# Make or update a virtual environment with all distributions of this repository.
#
#   scripts/venv.sh DIRECTORY [GROUP]     GROUP: a dependency group of pyproject.toml
#
# The group `package` comes alone, without the distributions and with its hashes checked.
# PYTHON names the interpreter; without it the first of python3, python3.13, … that is
# 3.11 or newer is used. Versions come from constraints.txt. uv is taken from the PATH,
# else installed into the environment.
set -eu

directory=$1
group=${2:-}
UV_PYTHON_DOWNLOADS=never
export UV_PYTHON_DOWNLOADS

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if recent "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    echo "Lighter needs Python 3.11 or newer; ${PYTHON:-python3} is older or missing." >&2
    echo "Install one, or name it: make PYTHON=/path/to/python3.12 …" >&2
    exit 1
}

if [ ! -x "$directory/bin/python" ]; then
    python=$(find_python)
    echo "Making $directory with $("$python" --version) …" >&2
    if command -v uv >/dev/null 2>&1; then
        uv venv --quiet --python "$python" "$directory"
    elif ! "$python" -m venv "$directory" >/dev/null 2>&1; then
        rm -rf "$directory"
        echo "$python cannot make virtual environments: it lacks ensurepip." >&2
        echo "Install it (on Debian the package python3-venv), or install uv." >&2
        exit 1
    fi
fi

uv=$(command -v uv || echo "$directory/bin/uv")
pip() { "$directory/bin/python" -m pip "$@" --quiet --disable-pip-version-check; }

if [ "$group" = package ]; then
    set -- --require-hashes --requirement scripts/build-tools.txt
    if [ -x "$uv" ]; then
        "$uv" pip install --quiet --python "$directory/bin/python" "$@"
    else
        pip install "$@"
    fi
    exit
fi
[ -x "$uv" ] || pip install --constraint constraints.txt uv

set --
for each in lighter-*/; do
    set -- "$@" --editable "./${each%/}"
done
[ -z "$group" ] || set -- "$@" --group "$group"
"$uv" pip install --quiet --python "$directory/bin/python" \
    --constraints constraints.txt --build-constraints constraints.txt "$@"
