package bench

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"navicert/peers/decide"

	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// now lies between every token's nbf and exp.
const now = 1_900_000_000

func init() {
	for _, algorithm := range []string{"rs256", "es256"} {
		for _, config := range []string{"map", "cel"} {
			add("token-"+algorithm+"-"+config, func(b *testing.B) { token(b, algorithm, config) })
		}
	}
	add("verify-rsa2048", verifyRSA)
	add("verify-p256", verifyP256)
	for _, count := range []int{1, 16, 64} {
		add(fmt.Sprintf("load-%d", count), func(b *testing.B) { load(b, count) })
	}
	add("token-cache-hit", cacheHit)
}

func chain(b *testing.B, config string) *decide.Authenticator {
	made, err := decide.NewAuthenticator(input(b, "config-"+config+".yaml"), json.RawMessage(input(b, "jwks.json")))
	made = must(b, made, err)
	made.SetClock(now)
	return made
}

// token is one token through the whole authenticator.
func token(b *testing.B, algorithm, config string) {
	chain, token := chain(b, config), strings.TrimSpace(input(b, algorithm+".jwt"))
	authenticate(b, chain, token)
	measure(b, func() { authenticate(b, chain, token) })
}

func authenticate(b *testing.B, by authenticator.Token, token string) {
	if _, ok, err := by.AuthenticateToken(context.Background(), token); !ok {
		b.Fatalf("not authenticated: %v", err)
	}
}

func verifyRSA(b *testing.B) {
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	key := must(b, made, err)
	digest := sha256.Sum256([]byte("race"))
	signed, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	signature := must(b, signed, err)
	measure(b, func() {
		if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature); err != nil {
			b.Fatal(err)
		}
	})
}

func verifyP256(b *testing.B) {
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key := must(b, made, err)
	digest := sha256.Sum256([]byte("race"))
	signed, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	signature := must(b, signed, err)
	measure(b, func() {
		if !ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature) {
			b.Fatal("not verified")
		}
	})
}

// load reads, checks and builds a configuration with so many issuers, each with the expressions of config-cel.yaml, and notes what
// each keeps on the heap. As in the API server every step makes its own compiler; only the base environment is shared.
func load(b *testing.B, count int) {
	text := issuers(input(b, "config-cel.yaml"), count)
	build(b, text)
	before := heap()
	var last []authenticator.Token
	measure(b, func() { last = build(b, text) })
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/float64(count)/1024, "KiB-each")
	runtime.KeepAlive(last)
}

func build(b *testing.B, text string) []authenticator.Token {
	decoded, err := decide.DecodeAuthentication(text)
	config := must(b, decoded, err)
	if complaints := validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config, nil); len(complaints) > 0 {
		b.Fatal(complaints.ToAggregate())
	}
	var out []authenticator.Token
	for _, issuer := range config.JWT {
		made, err := oidc.New(context.Background(), oidc.Options{
			JWTAuthenticator:     issuer,
			SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
			KeySet:               noKeys{},
		})
		out = append(out, must(b, made, err))
	}
	return out
}

// noKeys stands for a discovered issuer; nothing is verified while loading.
type noKeys struct{}

func (noKeys) VerifySignature(context.Context, string) ([]byte, error) {
	return nil, errors.New("no keys")
}

func issuers(text string, count int) string {
	head, issuer, _ := strings.Cut(text, "jwt:\n")
	var out strings.Builder
	out.WriteString(head + "jwt:\n")
	for index := range count {
		out.WriteString(strings.Replace(issuer, "127.0.0.1:24443", fmt.Sprintf("127.0.0.1:24443/%d", index), 1))
	}
	return out.String()
}

func heap() int64 {
	runtime.GC()
	var statistics runtime.MemStats
	runtime.ReadMemStats(&statistics)
	return int64(statistics.HeapAlloc)
}

// cacheHit is the API server's own cache in front of the authenticator, its time to live as in production.
func cacheHit(b *testing.B) {
	token := strings.TrimSpace(input(b, "rs256.jwt"))
	cached := tokencache.New(chain(b, "cel"), true, 10*time.Second, 0)
	authenticate(b, cached, token)
	measure(b, func() { authenticate(b, cached, token) })
}
