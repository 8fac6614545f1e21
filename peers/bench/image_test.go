package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

const image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/app:v1"

func init() {
	for _, count := range []int{1, 10, 100} {
		add(fmt.Sprintf("image-cached-%d", count), func(b *testing.B) { imageCached(b, count) })
	}
	add("image-match-exact", func(b *testing.B) { match(b, "123456789012.dkr.ecr.us-east-1.amazonaws.com") })
	add("image-match-glob", func(b *testing.B) { match(b, "*.dkr.ecr.*.amazonaws.com") })
	add("keyring-1000", keyring)
}

// imageCached asks so many providers that all match the image and all have an answer for it in their cache, as for one pull.
func imageCached(b *testing.B, count int) {
	file := filepath.Join(b.TempDir(), "answer.json")
	const answer = `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image","auth":{"*.dkr.ecr.*.amazonaws.com":{"username":"AWS","password":"secret"}}}`
	if err := os.WriteFile(file, []byte(answer), 0o600); err != nil {
		b.Fatal(err)
	}
	providers := make([]*plugin.Provider, count)
	for index := range providers {
		made, err := plugin.NewProvider("/bin", kubeletconfig.CredentialProvider{
			Name:                 "cat",
			APIVersion:           "credentialprovider.kubelet.k8s.io/v1",
			MatchImages:          []string{"*.dkr.ecr.*.amazonaws.com"},
			DefaultCacheDuration: &metav1.Duration{Duration: time.Hour},
			Args:                 []string{file},
		})
		providers[index] = must(b, made, err)
	}
	pull := func() {
		for _, provider := range providers {
			if credentials, err := provider.Provide(image); len(credentials) != 1 {
				b.Fatalf("%d credentials: %v", len(credentials), err)
			}
		}
	}
	pull()
	measure(b, pull)
}

func match(b *testing.B, pattern string) {
	measure(b, func() {
		if matched, err := credentialprovider.URLsMatchStr(pattern, image); !matched {
			b.Fatal(err)
		}
	})
}

// keyring looks one image up among a thousand stored registries, of which the last matches.
func keyring(b *testing.B) {
	entries := credentialprovider.DockerConfig{}
	for index := range 999 {
		entries[fmt.Sprintf("registry-%d.example.com", index)] = credentialprovider.DockerConfigEntry{Username: "u", Password: "p"}
	}
	entries["123456789012.dkr.ecr.us-east-1.amazonaws.com"] = credentialprovider.DockerConfigEntry{Username: "u", Password: "p"}
	stored := &credentialprovider.BasicDockerKeyring{}
	stored.Add(nil, entries)
	measure(b, func() {
		if _, found := stored.Lookup(image); !found {
			b.Fatal("nothing found")
		}
	})
}
