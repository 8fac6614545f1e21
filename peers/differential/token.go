package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"sync"

	"navicert/peers/decide"

	jose "gopkg.in/go-jose/go-jose.v2"
)

const tokenNow = 1_800_000_000

// authnTokenTree draws a valid configuration, claims that mostly fit, and now and then something wrong about the token.
func authnTokenTree(r *random) any {
	config := r.authentication(2)
	// Only the questions of authn-config are about refused configurations; a plain one stands in.
	if !takes(config) {
		config = map[string]any{
			"apiVersion": "apiserver.config.k8s.io/v1",
			"kind":       "AuthenticationConfiguration",
			"jwt": []any{map[string]any{
				"issuer":        map[string]any{"url": issuerURLs[0], "audiences": []any{"kube"}},
				"claimMappings": map[string]any{"username": map[string]any{"claim": "sub", "prefix": ""}, "groups": map[string]any{"claim": "groups", "prefix": pick(r, "", "g:")}},
			}},
		}
	}
	algorithm := pick(r, "ES256", "ES256", "RS256", "RS256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS384", "RS512")
	tree := map[string]any{
		"config": map[string]any{"tree": config, "style": "yaml"},
		"alg":    algorithm,
		"header": map[string]any{"kid": algorithm, "typ": "JWT"},
		"claims": r.tokenClaims(),
		"now":    tokenNow,
	}
	if r.chance(15) {
		r.forge(tree)
	}
	return tree
}

// takes says whether the reference takes a configuration.
func takes(config map[string]any) bool {
	kind, _ := decide.Find("authn-config")
	line, err := json.Marshal(map[string]string{"config": yamlText(config)})
	if err != nil {
		return false
	}
	decision, err := kind.Decide(line)
	return err == nil && decision.(decide.ConfigDecision).Valid
}

func (r *random) tokenClaims() map[string]any {
	claims := r.claims()
	claims["iss"] = usually(r, 12, issuerURLs[0], issuerURLs[1], issuerURLs[1], "https://nobody.example", issuerURLs[0]+"/", nil, 5)
	claims["aud"] = usually(r, 25, "kube", []any{"kube"}, []any{"kube", "x"}, []any{"x", "other"}, "nope", []any{}, nil, 5)
	claims["exp"] = usually(r, 15, tokenNow+300, tokenNow, tokenNow-1, tokenNow+0.5, "x", nil, 1e19, -5)
	claims["nbf"] = usually(r, 15, tokenNow-10, tokenNow, tokenNow+60, tokenNow+61, tokenNow+299, tokenNow+300, tokenNow+301, tokenNow+100000, "x", nil)
	claims["email"] = "ann@example.com"
	claims["hd"] = "example.com"
	claims["name"] = pick[any](r, "Ann", "", nil, 5)
	for _, optional := range []struct {
		name   string
		values []any
	}{
		{"email_verified", []any{true, true, true, false, "true"}},
		{"oid", []any{"7", "", 7}},
		{"jti", []any{"j1", "", 7}},
		{"tenant", []any{"a", "", []any{"a", ""}}},
	} {
		if r.chance(60) {
			claims[optional.name] = pick(r, optional.values...)
		}
	}
	if r.chance(8) {
		claims["_claim_names"] = pick[any](r, map[string]any{"groups": "s"}, map[string]any{"x": "s"}, "no")
		claims["_claim_sources"] = pick[any](r, map[string]any{"s": map[string]any{"JWT": "x"}}, map[string]any{}, map[string]any{"t": map[string]any{}})
	}
	return claims
}

// forge makes the token itself wrong.
func (r *random) forge(tree map[string]any) {
	header := tree["header"].(map[string]any)
	switch r.IntN(6) {
	case 0:
		header["kid"] = pick[any](r, "nope", "", nil, 5, "ES256")
	case 1:
		header["alg"] = pick[any](r, "none", "HS256", "RS256", "ES256", "es256", "", nil, "EdDSA")
	case 2:
		header[pick(r, "crit", "b64", "jwk", "x5c", "typ", "cty", "zip", "exp", "x", "nonce", "jku", "kid")] = pick[any](r, []any{"b64"}, true, "x", map[string]any{}, []any{}, r.number(), []any{r.number()}, map[string]any{"a": []any{r.number()}})
	case 3:
		tree["signature"] = pick(r, "", "AAAA", "!", "other")
	case 4:
		tree["cut"] = []any{r.IntN(2000), r.IntN(3), pick(r, "", ".", "=", " ", "\n", "A", "é", "{")}
	case 5:
		tree["keys"] = pick(r, "none", "all", "no-kid", "broken", "odd", "odd", "odd")
		if tree["keys"] == "odd" {
			tree["odd"] = pick(r, oddKeys...)
		}
	}
}

// number is one that is not in range of every type.
func (r *random) number() any {
	return json.Number(pick(r, "1", "1.5", "1e308", "1e309", "-1e400", "1e-400", "9223372036854775808", "0.1e310", "123456789012345678901234567890", "1E99999999999"))
}

func renderToken(tree any) (map[string]any, bool) {
	members, _ := tree.(map[string]any)
	config, ok := renderDocument(members["config"])
	algorithm, isText := members["alg"].(string)
	header, isHeader := members["header"].(map[string]any)
	claims, isClaims := members["claims"].(map[string]any)
	now, isNow := members["now"].(int)
	key, known := signingKeys()[algorithm]
	if !ok || !isText || !isHeader || !isClaims || !isNow || !known {
		return nil, false
	}
	token, ok := key.token(algorithm, header, claims, members["signature"])
	if !ok {
		return nil, false
	}
	if cut, there := members["cut"].([]any); there {
		if token, ok = cutText(token, cut); !ok {
			return nil, false
		}
	}
	return map[string]any{"config": config, "jwks": keySet(algorithm, members["keys"], members["odd"]), "token": token, "now": now}, true
}

// signingKey signs with one algorithm.
type signingKey struct {
	private crypto.Signer
}

var signingKeys = sync.OnceValue(func() map[string]signingKey {
	out := map[string]signingKey{}
	for algorithm, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			panic(err) // the system has no randomness
		}
		out[algorithm] = signingKey{key}
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // the system has no randomness
	}
	for _, algorithm := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} {
		out[algorithm] = signingKey{key}
	}
	return out
})

// token writes a compact token; the header may lie about the algorithm, and the signature may be replaced.
func (k signingKey) token(algorithm string, header, claims map[string]any, signature any) (string, bool) {
	full := map[string]any{"alg": algorithm}
	for name, value := range header {
		full[name] = value
	}
	encode := func(value any) string { return base64.RawURLEncoding.EncodeToString([]byte(jsonText(value))) }
	signed := encode(full) + "." + encode(claims)
	if replaced, ok := signature.(string); ok && replaced != "other" {
		return signed + "." + replaced, true
	}
	if signature == "other" {
		k = signingKeys()["ES256"]
		if algorithm == "ES256" {
			return signed + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)), true
		}
		algorithm = "ES256"
	}
	bytes, err := k.sign(algorithm, signed)
	return signed + "." + base64.RawURLEncoding.EncodeToString(bytes), err == nil
}

func (k signingKey) sign(algorithm, text string) ([]byte, error) {
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[algorithm[2:]]
	digest := hash.New()
	digest.Write([]byte(text))
	sum := digest.Sum(nil)
	switch key := k.private.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, sum)
		if err != nil {
			return nil, err
		}
		size := (key.Params().BitSize + 7) / 8
		return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...), nil
	case *rsa.PrivateKey:
		if algorithm[0] == 'P' {
			return rsa.SignPSS(rand.Reader, key, hash, sum, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		}
		return rsa.SignPKCS1v15(rand.Reader, key, hash, sum)
	}
	return nil, nil
}

// oddKeys stand beside a good key in a set: versions differ in whether they skip such a key or refuse the set.
var oddKeys = []string{
	`{"kty":"oct","k":"AAAA"}`, `{"kty":"oct","k":"AAAA","alg":"HS256"}`, `{"kty":"oct"}`, `{"kty":"XYZ"}`, `{"kty":"XYZ","alg":"RS256"}`, `{"kty":"AKP","alg":"ML-DSA-44","pub":"AA"}`, `{}`, `null`, `{"alg":5}`, `{"kty":5}`,
	`{"kty":"RSA","e":"AQAB"}`, `{"kty":"RSA","n":"!","e":"AQAB"}`, `{"kty":"RSA","n":"!","e":"AQAB","alg":"RSA-OAEP"}`, `{"kty":"RSA","n":"AQ","e":"AQAB","use":"enc"}`, `{"kty":"RSA","n":"AQ","e":"AA"}`, `{"kty":"RSA","n":"AQ","e":"AQAB","alg":"RSA-OAEP"}`,
	`{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}`, `{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA","alg":"ES256K"}`, `{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`, `{"kty":"EC","crv":"P-224","x":"AA","y":"AA"}`, `{"kty":"EC"}`,
	`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`, `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","alg":"EdDSA"}`, `{"kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`, `{"kty":"OKP","crv":"Ed448","x":"AA"}`, `{"kty":"OKP","crv":"Ed25519","x":"AA"}`, `{"kty":"OKP"}`,
}

// keySet publishes the key of the token's algorithm, or as a forged question wants it.
func keySet(algorithm string, wish, odd any) any {
	var keys []any
	add := func(algorithm string, named bool) {
		key := jose.JSONWebKey{Key: signingKeys()[algorithm].private.Public(), Use: "sig"}
		if named {
			key.KeyID, key.Algorithm = algorithm, algorithm
		}
		text, err := key.MarshalJSON()
		if err == nil {
			keys = append(keys, json.RawMessage(text))
		}
	}
	switch wish {
	case "none":
		keys = []any{}
	case "all":
		for _, each := range []string{"RS256", "ES512", "ES256", "PS384", "RS512", "ES384"} {
			add(each, true)
		}
	case "no-kid":
		add(algorithm, false)
	case "odd":
		text, ok := odd.(string)
		if !ok || !json.Valid([]byte(text)) {
			return nil
		}
		keys = append(keys, json.RawMessage(text))
		add(algorithm, true)
	case "broken":
		return `{"keys":[{"kty":"RSA","n":"AA"}]`
	default:
		add(algorithm, true)
	}
	return map[string]any{"keys": keys}
}
