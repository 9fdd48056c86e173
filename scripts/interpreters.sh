#!/bin/sh
# Print the interpreters that the suite supports and that are found here, one a line:
# VERSION PATH. Looks at the PATH and at pyenv's versions.
for version in 3.11 3.12 3.13; do
    for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python3; do
        found=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null) || continue
        case $found in
            "$version "*) echo "$found"; break ;;
        esac
    done
done
