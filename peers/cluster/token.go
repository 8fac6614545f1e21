package main

import (
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"os"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
)

const (
	audience        = "navicert-peers"
	defaultLifetime = 10 * time.Minute
)

// tokenRequest is what a token shall say.
type tokenRequest struct {
	Subject  string
	Groups   []string
	Audience string
	Lifetime time.Duration
	Bare     bool
}

// printToken is the exec credential plugin of the cluster's kubeconfig.
func printToken(settings settings) error {
	description, err := readDescription(settings.directory)
	if err != nil {
		return err
	}
	key, err := readSigningKey(description.IssuerKey)
	if err != nil {
		return err
	}
	request := settings.token
	if len(request.Groups) == 0 {
		request.Groups = []string{"developers"}
	}
	now := time.Now()
	token, err := mint(key, description.Issuer, request, now)
	if err != nil {
		return err
	}
	if request.Bare {
		fmt.Println(token)
		return nil
	}
	version, err := askedVersion()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"apiVersion": version,
		"kind":       "ExecCredential",
		"status": map[string]any{
			"token":               token,
			"expirationTimestamp": now.Add(request.Lifetime).UTC().Format(time.RFC3339),
		},
	})
}

func mint(key *ecdsa.PrivateKey, issuer string, request tokenRequest, now time.Time) (string, error) {
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", keyID)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss":    issuer,
		"aud":    request.Audience,
		"sub":    request.Subject,
		"groups": request.Groups,
		"iat":    now.Unix(),
		"nbf":    now.Unix(),
		"exp":    now.Add(request.Lifetime).Unix(),
		"jti":    fmt.Sprintf("%s-%d", request.Subject, now.UnixNano()),
	})
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// askedVersion is the version the client asks for; without a client it is v1.
func askedVersion() (string, error) {
	const newest = "client.authentication.k8s.io/v1"
	text := os.Getenv("KUBERNETES_EXEC_INFO")
	if text == "" {
		return newest, nil
	}
	var asked struct {
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal([]byte(text), &asked); err != nil {
		return "", fmt.Errorf("KUBERNETES_EXEC_INFO: %w", err)
	}
	return asked.APIVersion, nil
}
