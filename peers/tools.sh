#!/bin/sh
# Builds the programs of tools.list, each in a module of its own so that its dependencies stay its own, and says which did not install.
# A program that is there in its version already is left alone.
set -u
list=$(dirname "$0")/tools.list
out=${1:?usage: tools.sh OUTPUT-DIRECTORY}
flags=${PEERS_GOFLAGS:-}
mkdir -p "$out/src"
export GOWORK=off GOFLAGS=-mod=mod
missing=0
table=$(printf '%-28s %-38s %s' program version result)
while read -r name package module version further; do
	case $name in '#'* | '') continue ;; esac
	stamp="$out/src/$name/built-$version"
	if [ -x "$out/$name" ] && [ -e "$stamp" ]; then
		result="there already"
	else
		rm -rf "$out/src/$name"
		mkdir -p "$out/src/$name"
		{
			printf 'module tool\n\ngo 1.26\n\nrequire %s %s\n' "$module" "$version"
			for each in $further; do printf 'require %s %s\n' "${each%@*}" "${each#*@}"; done
		} >"$out/src/$name/go.mod"
		# shellcheck disable=SC2086 # the flags are words
		if (cd "$out/src/$name" && nice -n 10 go build -trimpath $flags -ldflags "-s -w" -o "$out/$name" "$package") >"$out/src/$name/log" 2>&1; then
			touch "$stamp"
			result=built
		else
			result="does not install: $(grep -v '^go: downloading' "$out/src/$name/log" | sed 's|reading https*://[^ ]*: ||' | head -1 | cut -c1-120)"
			missing=$((missing + 1))
		fi
	fi
	table="$table
$(printf '%-28s %-38s %s' "$name" "$version" "$result")"
done <"$list"
echo "$table"
[ "$missing" -eq 0 ] || echo "$missing not installed; what needs them is skipped."
