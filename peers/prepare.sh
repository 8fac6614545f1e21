#!/bin/sh
# Makes OUTPUT-DIRECTORY/VERSION ready to build the programs that look inside upstream packages, for one version of Kubernetes:
# a copy of that version's go.mod in which the modules named under _overlay are reached through links into the module cache, and the
# overlay that adds our files to them. (The go command refuses an overlay below GOMODCACHE itself; through a link nothing is copied
# and nothing is changed.) _overlay/1.35 is for 1.35 and later; of two files with the same path the later version's counts.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
usage='usage: prepare.sh OUTPUT-DIRECTORY VERSION'
out=${1:?$usage}/${2:?$usage}
kube=$2
mkdir -p "$out/src"
out=$(cd "$out" && pwd)
cd "$here"

module_file=versions/$kube/go.mod
[ -f "$module_file" ] || module_file=go.mod
release=$(sed -n 's|^\tk8s.io/apiserver v0\.\([0-9]*\)\..*|1.\1|p' "$module_file")
if [ "$release" != "$kube" ]; then
	echo "peers: unknown Kubernetes version $kube; known: $(ls versions | tr '\n' ' ')and $release (add one with peers/add-version)" >&2
	exit 1
fi
# Not -nt: the copies carry lines of their own.
cp "$module_file" "$out/new.mod"
cp "${module_file%.mod}.sum" "$out/new.sum"

GOTOOLCHAIN=$(./toolchain.sh "$module_file")
export GOTOOLCHAIN GOWORK=off GOFLAGS="-mod=mod -modfile=$out/new.mod"
layers=$(for layer in _overlay/*; do echo "${layer#_overlay/}"; done | sort -V)
files=$(for layer in $layers; do
	if [ "$(printf '%s\n' "$layer" "$kube" | sort -V | tail -n 1)" = "$kube" ]; then
		(cd "_overlay/$layer" && find . -name '*.go' | sed "s|^\./\(.*\)|\1 $layer|")
	fi
done | awk '{ layer[$1] = $2 } END { for (file in layer) print file, layer[file] }' | sort)
modules=$(echo "$files" | cut -d/ -f1,2 | sort -u)

entries=
# Gives the link through which a module is reached, or nothing if this version does not have it.
link_module() {
	version=$(go list -m -f '{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}' "$1" 2>/dev/null) || return 1
	[ -n "$version" ] || return 1
	source=$(go mod download -json "$1@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	link="$out/src/$(echo "$1" | tr / _)"
	rm -f "$link"
	ln -s "$source" "$link"
	links="${links:-} -replace=$1=$link"
}
for module in $modules; do
	link_module "$module" || continue
	entries="$entries$(echo "$files" | sed -n "s|^$module/\(.*\) \(.*\)|,\n    \"$link/\1\": \"$here/_overlay/\2/$module/\1\"|p")"
done
# Packages that are built with another import path: see versions/*/rewrite.
rm -rf "$out/rewritten"
if [ -f "versions/$kube/rewrite" ]; then
	grep -v '^#' "versions/$kube/rewrite" >"$out/rewrite"
	while read -r package from to; do
		module=$(echo "$package" | cut -d/ -f1,2)
		link_module "$module"
		directory=${package#"$module"/}
		mkdir -p "$out/rewritten/$package"
		for file in "$source/$directory"/*.go; do
			name=$(basename "$file")
			sed "s|\"$from/|\"$to/|" "$file" >"$out/rewritten/$package/$name"
			entries="$entries,
    \"$link/$directory/$name\": \"$out/rewritten/$package/$name\""
		done
	done <"$out/rewrite"
fi
# shellcheck disable=SC2086 # one argument per module
go mod edit $links "$out/new.mod"
printf '{\n  "Replace": {%s\n  }\n}\n' "${entries#,}" >"$out/overlay.json.new"

# Kept as they are if nothing changed, so that make does not rebuild.
mv "$out/new.mod" "$out/go.mod.new"
mv "$out/new.sum" "$out/go.sum.new"
for name in go.mod go.sum overlay.json; do
	if cmp -s "$out/$name.new" "$out/$name"; then rm "$out/$name.new"; else mv "$out/$name.new" "$out/$name"; fi
done
