package main

import (
	"crypto/ecdsa"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
)

// keyID names the issuer's one key.
const keyID = "peers"

// startIssuer serves discovery and keys over TLS on a free loopback port and gives its URL. It lives as long as the process.
// Tokens are not to be had from it: whoever may read the cluster's directory mints them with `cluster token`.
func startIssuer(key *ecdsa.PrivateKey, serving pair) (string, error) {
	certificate, err := tls.LoadX509KeyPair(serving.certificate, serving.key)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	url := "https://" + listener.Addr().String()
	pages := http.NewServeMux()
	pages.HandleFunc("GET /.well-known/openid-configuration", document(map[string]any{
		"issuer":                                url,
		"jwks_uri":                              url + "/keys",
		"authorization_endpoint":                url + "/authorize",
		"response_types_supported":              []string{"id_token"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"},
	}))
	pages.HandleFunc("GET /keys", document(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: key.Public(), KeyID: keyID, Algorithm: "ES256", Use: "sig"},
	}}))
	server := &http.Server{
		Handler:           pages,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}},
		ReadHeaderTimeout: 10 * time.Second,
	}
	go server.ServeTLS(listener, "", "")
	return url, nil
}

func document(value any) http.HandlerFunc {
	return func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		json.NewEncoder(response).Encode(value)
	}
}
