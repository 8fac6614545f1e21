package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func init() {
	add("kubeconfig-load", kubeconfigLoad)
}

// kubeconfigLoad reads a kubeconfig of a thousand contexts and resolves the one in the middle.
func kubeconfigLoad(b *testing.B) {
	path := filepath.Join(b.TempDir(), "config")
	if err := os.WriteFile(path, []byte(kubeconfigText()), 0o600); err != nil {
		b.Fatal(err)
	}
	measure(b, func() {
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
		if err != nil {
			b.Fatal(err)
		}
		if config.Host != "https://server-500.example:6443" || len(config.CertData) == 0 {
			b.Fatal(config.Host)
		}
	})
}

// kubeconfigText is the file both sides load; the other side makes its own, from the same recipe.
func kubeconfigText() string {
	const contexts = 1000
	// As long as base64 of a certificate in PEM.
	data := strings.Repeat("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t", 40)
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: context-500\nclusters:\n")
	for number := range contexts {
		fmt.Fprintf(&text, "- cluster:\n    certificate-authority-data: %s\n    server: https://server-%d.example:6443\n  name: cluster-%d\n", data, number, number)
	}
	text.WriteString("contexts:\n")
	for number := range contexts {
		fmt.Fprintf(&text, "- context:\n    cluster: cluster-%d\n    user: user-%d\n    namespace: default\n  name: context-%d\n", number, number, number)
	}
	text.WriteString("users:\n")
	for number := range contexts {
		fmt.Fprintf(&text, "- name: user-%d\n  user:\n    client-certificate-data: %s\n    client-key-data: %s\n", number, data, data)
	}
	return text.String()
}

func TestBothSidesLoadTheSameKubeconfig(t *testing.T) {
	// The same sum is in bench/src/client/kubeconfig.rs.
	const agreed = "b75c4935a51f212f45e71be74bffae740bddec67dad0c481667c741e89dddad3"
	sum := sha256.Sum256([]byte(kubeconfigText()))
	if got := hex.EncodeToString(sum[:]); got != agreed {
		t.Errorf("the text has become another: %s", got)
	}
}
