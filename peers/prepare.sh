#!/bin/sh
# Makes target/peers ready to build the programs that look inside upstream packages: a workspace file in which the modules
# named under _overlay are reached through links into the module cache, and the overlay that adds our files to them.
# (The go command refuses an overlay below GOMODCACHE itself; through a link nothing is copied and nothing is changed.)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: prepare.sh OUTPUT-DIRECTORY}
mkdir -p "$out/src"
out=$(cd "$out" && pwd)
cd "$here"

export GOWORK=off GOFLAGS=-mod=mod
work="$out/go.work.new"
overlay="$out/overlay.json.new"
{
	echo "// Made by peers/prepare.sh."
	echo "go $(go list -m -f '{{.GoVersion}}')"
	echo "use $here"
} >"$work"

modules=$(cd _overlay && for domain in *; do (cd "$domain" && for module in *; do echo "$domain/$module"; done); done)
entries=
for module in $modules; do
	source=$(go mod download -json "$module@$(go list -m -f '{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}' "$module")" |
		sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	link="$out/src/$(echo "$module" | tr / _)"
	rm -f "$link"
	ln -s "$source" "$link"
	echo "replace $module => $link" >>"$work"
	for file in $(cd "_overlay/$module" && find . -name '*.go'); do
		entries="$entries${entries:+,}
    \"$link/${file#./}\": \"$here/_overlay/$module/${file#./}\""
	done
done
printf '{\n  "Replace": {%s\n  }\n}\n' "$entries" >"$overlay"

# Kept as they are if nothing changed, so that make does not rebuild.
for name in go.work overlay.json; do
	if cmp -s "$out/$name.new" "$out/$name"; then rm "$out/$name.new"; else mv "$out/$name.new" "$out/$name"; fi
done
