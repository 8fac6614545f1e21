// This file is added to the package by `go build -overlay` (see peers/prepare.sh): it opens what the reference needs
// and the package keeps to itself. It changes nothing that is there.

package oidc

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/authentication/user"
)

// WithClock returns the same options with another clock.
func (o Options) WithClock(now func() time.Time) Options {
	o.now = now
	return o
}

// WaitForClaimSources makes the first look at a distributed claim wait until its issuer is discovered, or until the
// authenticator's context ends. In production that look fails and a later one succeeds.
func WaitForClaimSources() {
	synchronizeTokenIDVerifierForTest = true
}

// Attempted says whether discovery has succeeded or failed at least once.
func Attempted(a AuthenticatorTokenWithHealthCheck) bool {
	inner := a
	if wrapped, ok := a.(*instrumentedAuthenticator); ok {
		inner = wrapped.delegate
	}
	authenticator, ok := inner.(*jwtAuthenticator)
	if !ok {
		return true
	}
	if _, ready := authenticator.idTokenVerifier(); ready {
		return true
	}
	// Before the first attempt the holder says just this, and no later one does.
	holder := authenticator.healthCheck.Load()
	return holder.err == nil || !strings.HasSuffix(holder.err.Error(), "is not initialized")
}

// ClaimsValue is what expressions see as `claims`.
func ClaimsValue(members map[string]json.RawMessage) traits.Mapper {
	return newClaimsValue(members)
}

// UserValue is what expressions see as `user`.
func UserValue(info user.Info) traits.Mapper {
	return newUserInfoValue(info)
}
