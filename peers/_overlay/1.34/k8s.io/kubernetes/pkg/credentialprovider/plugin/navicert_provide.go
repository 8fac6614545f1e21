// This file is added to the package by `go build -overlay` (see peers/prepare.sh): the method's results differ between
// versions of Kubernetes.

package plugin

import (
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/credentialprovider"
)

// provided asks a provider for the credentials of a pod without a service account. In this version the provider logs an
// error and goes on without credentials.
func provided(provider *pluginProvider, image string) (credentialprovider.DockerConfig, error) {
	sink := &errorSink{}
	klog.SetLogger(logr.New(sink))
	defer klog.SetLogger(logr.Discard())
	config, _ := provider.provide(image, "", "", "", "")
	return config, sink.err
}

// errorSink keeps the last error that is logged.
type errorSink struct{ err error }

func (s *errorSink) Init(logr.RuntimeInfo)                {}
func (s *errorSink) Enabled(int) bool                     { return false }
func (s *errorSink) Info(int, string, ...any)             {}
func (s *errorSink) Error(_ error, text string, _ ...any) { s.err = errors.New(text) }
func (s *errorSink) WithValues(...any) logr.LogSink       { return s }
func (s *errorSink) WithName(string) logr.LogSink         { return s }
