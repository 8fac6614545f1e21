package decide

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	jose "gopkg.in/go-jose/go-jose.v2"
)

const webConfig = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "https://one.example", audiences: [kube]}
  claimMappings:
    username: {claim: sub, prefix: ""}
    groups: {claim: groups, prefix: ""}
`

// signer signs claims and publishes its key.
type signer struct {
	key *ecdsa.PrivateKey
}

func newSigner(t *testing.T) signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key}
}

func (s signer) sign(t *testing.T, claims string) string {
	made, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: s.key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := made.Sign([]byte(claims))
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (s signer) pages(t *testing.T, issuer string) map[string]Answer {
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: s.key.Public(), Algorithm: "ES256"}}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Answer{
		issuer + discoveryPath: {Body: json.RawMessage(`{"issuer":"` + issuer + `","jwks_uri":"` + issuer + `/keys"}`)},
		issuer + "/keys":       {Body: keys},
	}
}

func judged(t *testing.T, pages map[string]Answer, token string) TokenDecision {
	decision, err := authnToken(TokenInput{Config: webConfig, Web: pages, Token: token, Now: 1_800_000_000})
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

const plainClaims = `{"iss":"https://one.example","aud":"kube","exp":1800000060,"sub":"ann"}`

func TestAnIssuerIsDiscoveredOnTheWeb(t *testing.T) {
	one := newSigner(t)
	got := judged(t, one.pages(t, "https://one.example"), one.sign(t, plainClaims))
	if got.Outcome != "authenticated" || got.User.Username != "ann" {
		t.Errorf("got %+v", got)
	}
}

func TestAnIssuerThatIsNotThereLeavesTheTokenRejected(t *testing.T) {
	one := newSigner(t)
	got := judged(t, map[string]Answer{}, one.sign(t, plainClaims))
	if got.Outcome != "rejected" || !strings.Contains(got.Error, "not initialized") {
		t.Errorf("got %+v", got)
	}
}

func TestADistributedGroupsClaimIsFetched(t *testing.T) {
	one, two := newSigner(t), newSigner(t)
	pages := one.pages(t, "https://one.example")
	maps.Copy(pages, two.pages(t, "https://two.example"))
	body, err := json.Marshal(two.sign(t, `{"iss":"https://two.example","aud":"kube","exp":1800000060,"groups":["dev"]}`))
	if err != nil {
		t.Fatal(err)
	}
	pages["https://two.example/groups"] = Answer{Body: body}
	token := one.sign(t, `{"iss":"https://one.example","aud":"kube","exp":1800000060,"sub":"ann","_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"https://two.example/groups"}}}`)

	got := judged(t, pages, token)
	if got.Outcome != "authenticated" || len(got.User.Groups) != 1 || got.User.Groups[0] != "dev" {
		t.Errorf("got %+v", got)
	}

	delete(pages, "https://two.example"+discoveryPath)
	got = judged(t, pages, token)
	if got.Outcome != "rejected" || !strings.Contains(got.Error, "verifier not initialized") {
		t.Errorf("without the claim's issuer: %+v", got)
	}
}
