#!/bin/sh
# Build the sdist and the wheel of each distribution, and check what came out.
#
#   scripts/build.sh PYTHON DIRECTORY [DISTRIBUTION …]
#
# PYTHON has the group `package` of pyproject.toml; nothing is fetched. The wheel is built
# from the sdist. With the same SOURCE_DATE_EPOCH the files are the same, byte for byte.
set -eu

python=$1
directory=$2
shift 2
[ $# -gt 0 ] || set -- lighter-*/

rm -rf "$directory"
for each in "$@"; do
    "$python" -m build --no-isolation --quiet --outdir "$directory" "$each"
done
"$python" -m twine --no-color check --strict "$directory"/*
"$(dirname "$python")/check-wheel-contents" "$directory"/*.whl
