// This file is added to the package by `go build -overlay` (see peers/prepare.sh): it opens what the reference needs
// and the package keeps to itself. It changes nothing that is there.

package oidc

import (
	"context"
	"net/http"

	"github.com/coreos/go-oidc/v3/oidc"
)

// WithKeySet returns the same options with a key set that is fetched with a client, as one of a discovered issuer is.
func (o Options) WithKeySet(ctx context.Context, client *http.Client, url string) Options {
	o.KeySet = oidc.NewRemoteKeySet(oidc.ClientContext(ctx, client), url)
	return o
}
