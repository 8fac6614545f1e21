package decide

import (
	"runtime/debug"

	"k8s.io/apimachinery/pkg/util/version"
	componentversion "k8s.io/component-base/version"
)

// Kube is the minor version of the Kubernetes that decides, for example 1.37.
const Kube = componentversion.DefaultKubeBinaryVersion

func kube() *version.Version { return version.MustParse(Kube) }

// Modules gives the versions of the modules that decide, by module path. A module that is not part of this program is absent.
func Modules() map[string]string {
	out := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/kubernetes", "github.com/google/cel-go", "github.com/coreos/go-oidc", "github.com/coreos/go-oidc/v3":
			out[module.Path] = module.Version
		}
	}
	return out
}
