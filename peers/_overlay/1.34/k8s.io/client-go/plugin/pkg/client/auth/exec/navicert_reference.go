// This file is added to the package by `go build -overlay` (see peers/prepare.sh): it opens what the reference needs
// and the package keeps to itself. It changes nothing that is there.

package exec

import (
	"io"
	"time"

	"k8s.io/client-go/pkg/apis/clientauthentication"
	"k8s.io/client-go/tools/clientcmd/api"
)

// NewIsolated returns an authenticator outside the process-wide cache, without a terminal, that drops the plugin's
// stderr. A nil clock is the real one.
func NewIsolated(config *api.ExecConfig, cluster *clientauthentication.Cluster, now func() time.Time) (*Authenticator, error) {
	a, err := newAuthenticator(newCache(), func(int) bool { return false }, config, cluster)
	if err != nil {
		return nil, err
	}
	a.stderr = io.Discard
	if now != nil {
		a.now = now
	}
	return a, nil
}

// Credential is what a request would carry.
type Credential struct {
	Token          string
	HasCertificate bool
	// Expires is the zero time if the plugin gave none.
	Expires time.Time
}

// Credential gives the credential a request sent now would carry, running the plugin if need be.
func (a *Authenticator) Credential() (Credential, error) {
	creds, err := a.getCreds()
	if err != nil {
		return Credential{}, err
	}
	return Credential{Token: creds.token, HasCertificate: creds.cert != nil, Expires: a.exp}, nil
}

// Refresh runs the plugin whatever is cached.
func (a *Authenticator) Refresh() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refreshCredsLocked()
}
