// This file is added to the package by `go build -overlay` (see peers/prepare.sh): it opens what the reference needs
// and the package keeps to itself. It changes nothing that is there.

package plugin

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	credentialproviderapi "k8s.io/kubelet/pkg/apis/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// DecodeConfig reads the text of one configuration file.
func DecodeConfig(text []byte) (*kubeletconfig.CredentialProviderConfig, error) {
	return decode(text)
}

// ReadConfig reads a file, or all files of a directory, and merges them.
func ReadConfig(path string) (*kubeletconfig.CredentialProviderConfig, error) {
	config, _, err := readCredentialProviderConfig(path)
	return config, err
}

// ValidateConfig checks a merged configuration, service account tokens being on.
func ValidateConfig(config *kubeletconfig.CredentialProviderConfig) field.ErrorList {
	return validateCredentialProviderConfig(config, true)
}

// Provider is one configured provider with its cache.
type Provider struct{ inner *pluginProvider }

// NewProvider makes the provider as the kubelet does at start.
func NewProvider(directory string, config kubeletconfig.CredentialProvider) (*Provider, error) {
	if config.DefaultCacheDuration == nil {
		config.DefaultCacheDuration = &metav1.Duration{Duration: time.Minute}
	}
	inner, err := newPluginProvider(directory, config, nil, nil)
	if err != nil {
		return nil, err
	}
	return &Provider{inner}, nil
}

// Run runs the plugin for an image and gives its checked answer.
func (p *Provider) Run(image string) (*credentialproviderapi.CredentialProviderResponse, error) {
	return p.inner.plugin.ExecPlugin(context.Background(), image, "", nil)
}

// DecodeAnswer is the decoding step of Run alone, for the reason that Run hides.
func (p *Provider) DecodeAnswer(text []byte) error {
	_, err := p.inner.plugin.(*execPlugin).decodeResponse(text)
	return err
}

// Provide gives the credentials for an image of a pod without a service account, from the cache or the plugin.
func (p *Provider) Provide(image string) (credentialprovider.DockerConfig, error) {
	return provided(p.inner, image)
}

// Accept gives what Provide would make of an answer, without running anything.
func (p *Provider) Accept(image string, answer *credentialproviderapi.CredentialProviderResponse) error {
	ran := p.inner.plugin
	p.inner.plugin = given{answer}
	defer func() { p.inner.plugin = ran }()
	_, err := provided(p.inner, image)
	return err
}

type given struct {
	answer *credentialproviderapi.CredentialProviderResponse
}

func (g given) ExecPlugin(context.Context, string, string, map[string]string) (*credentialproviderapi.CredentialProviderResponse, error) {
	return g.answer, nil
}
