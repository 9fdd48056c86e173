#!/bin/sh
# Renew constraints.txt: the newest versions that fit together, names and versions only;
# and scripts/build-tools.txt: the tools that make what is published, with hashes.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
uv=$(command -v uv || echo .venv/bin/uv)

set --
for each in lighter-*/; do
    set -- "$@" --editable "./${each%/}"
done
"$uv" venv --quiet --python "${PYTHON:-python3}" "$scratch"
"$uv" pip install --quiet --python "$scratch/bin/python" "$@" \
    --group bench --group check --group package hatchling editables uv
{
    echo "# Versions that make and continuous integration use: names and versions only."
    echo "# Renew: scripts/pin.sh"
    "$uv" pip freeze --quiet --python "$scratch/bin/python" --exclude-editable
} >constraints.txt.new
mv constraints.txt.new constraints.txt

{
    echo "# What makes wheels and sdists, with hashes: nothing else runs in a release's build."
    echo "# Renew: scripts/pin.sh"
    "$uv" pip compile --quiet --group package --python-version 3.11 --generate-hashes \
        --constraints constraints.txt --no-header --no-annotate
} >scripts/build-tools.txt.new
mv scripts/build-tools.txt.new scripts/build-tools.txt
