// This file is added to the package by `go build -overlay` (see peers/prepare.sh): the function's parameters differ between
// versions of Kubernetes.

package environment

import utilversion "k8s.io/apimachinery/pkg/util/version"

// BaseEnvSet is the base environment of a version, with the costs that authentication configurations have.
func BaseEnvSet(version *utilversion.Version) *EnvSet {
	return MustBaseEnvSet(version)
}
