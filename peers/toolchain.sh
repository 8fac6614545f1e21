#!/bin/sh
# Prints the value of GOTOOLCHAIN for a go.mod: `local` if the installed Go is new enough, otherwise the toolchain that the file names.
set -eu
needed=$(sed -n 's/^go \([0-9.]*\)$/\1/p' "$1")
present=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
if [ "$(printf '%s\n' "$needed" "${present#go}" | sort -V | head -n 1)" = "$needed" ]; then
	echo local
else
	named=$(sed -n 's/^toolchain \(go[0-9.]*\)$/\1/p' "$1")
	echo "${named:-go$needed}"
fi
