#!/bin/sh
# Runs the go command on the programs of this directory with the modules of one version of Kubernetes, as prepare.sh laid them out:
#
#   go.sh OUTPUT-DIRECTORY VERSION build ./reference
#
# The go command does not choose a toolchain by a -modfile, so that this does: Go itself if it is new enough, otherwise the one that
# the module file names, which the module proxy serves.
set -eu
modules=$1/$2
shift 2
cd "$(dirname "$0")"
GOTOOLCHAIN=$(./toolchain.sh "$modules/go.mod")
flags="-modfile=$modules/go.mod -overlay=$modules/overlay.json"
# Without the kubelet's module the kinds of images are left out.
grep -q '^	k8s.io/kubernetes v' "$modules/go.mod" || flags="$flags -tags=without_kubelet"
export GOTOOLCHAIN GOWORK=off GOFLAGS="${GOFLAGS:-} $flags"
exec nice -n "${PEERS_NICE:-10}" go "$@"
