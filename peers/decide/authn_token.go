package decide

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// TokenInput is a bearer token, the configuration that judges it, and the world at that moment: either key sets that count
// as discovered (`jwks`) or a small web that discovery, key sets and distributed claims are fetched from (`web`).
type TokenInput struct {
	Config string            `json:"config"`
	JWKS   json.RawMessage   `json:"jwks"`
	Web    map[string]Answer `json:"web"`
	Token  string            `json:"token"`
	Now    int64             `json:"now"`
}

// TokenDecision is what the API server makes of a token.
type TokenDecision struct {
	Outcome string `json:"outcome"`
	User    *User  `json:"user,omitempty"`
	Error   string `json:"error,omitempty"`
}

// User is who the token's bearer is.
type User struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// Authenticator is a configuration's chain of issuers with a clock that can be set.
type Authenticator struct {
	chain  authenticator.Token
	now    atomic.Int64
	cancel context.CancelFunc
}

// Lines of a run mostly share few configurations, and compiling one takes milliseconds.
var (
	recent      = map[[sha256.Size]byte]*Authenticator{}
	recentLimit = 512
)

func authnToken(input TokenInput) (TokenDecision, error) {
	if input.Web != nil {
		chain, err := NewAuthenticatorOnWeb(input.Config, input.Web)
		if err != nil {
			return TokenDecision{}, err
		}
		defer chain.cancel()
		return chain.Judge(input.Token, input.Now), nil
	}
	key := sha256.Sum256(append([]byte(input.Config+"\x00"), input.JWKS...))
	chain, known := recent[key]
	if !known {
		var err error
		if chain, err = NewAuthenticator(input.Config, input.JWKS); err != nil {
			return TokenDecision{}, err
		}
		if len(recent) >= recentLimit {
			for old, entry := range recent {
				entry.cancel()
				delete(recent, old)
			}
		}
		recent[key] = chain
	}
	return chain.Judge(input.Token, input.Now), nil
}

// NewAuthenticator makes the chain of a configuration whose issuers all count as discovered.
func NewAuthenticator(config string, jwks json.RawMessage) (*Authenticator, error) {
	bodies, err := keySets(jwks)
	if err != nil {
		return nil, err
	}
	return build(config, func(ctx context.Context, options *oidc.Options) {
		body := bodies(options.JWTAuthenticator.Issuer.URL)
		client := &http.Client{Transport: everywhere(body)}
		*options = options.WithKeySet(ctx, client, "https://keys.invalid/")
		// Not looked at with a key set, and refused beside one.
		options.JWTAuthenticator.Issuer.DiscoveryURL = ""
	})
}

// NewAuthenticatorOnWeb makes the chain of a configuration and waits until every issuer was looked for once.
func NewAuthenticatorOnWeb(config string, pages map[string]Answer) (*Authenticator, error) {
	oidc.WaitForClaimSources()
	web := &web{pages: pages}
	chain, err := build(config, func(_ context.Context, options *oidc.Options) {
		web.configured = append(web.configured, options.JWTAuthenticator.Issuer.URL)
		options.Client = &http.Client{Transport: web}
	})
	if err != nil {
		return nil, err
	}
	web.giveUp = chain.cancel
	return chain, nil
}

// SetClock sets the clock that tokens are judged by, in Unix seconds.
func (a *Authenticator) SetClock(now int64) { a.now.Store(now) }

// AuthenticateToken implements authenticator.Token.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return a.chain.AuthenticateToken(ctx, token)
}

// Judge gives the decision for one token at one moment.
func (a *Authenticator) Judge(token string, now int64) TokenDecision {
	a.SetClock(now)
	response, ok, err := a.AuthenticateToken(context.Background(), token)
	switch {
	case err != nil:
		return TokenDecision{Outcome: "rejected", Error: err.Error()}
	case !ok:
		return TokenDecision{Outcome: "no-opinion"}
	}
	user := &User{
		Username: response.User.GetName(),
		UID:      response.User.GetUID(),
		Groups:   response.User.GetGroups(),
		Extra:    response.User.GetExtra(),
	}
	if user.Groups == nil {
		user.Groups = []string{}
	}
	if user.Extra == nil {
		user.Extra = map[string][]string{}
	}
	return TokenDecision{Outcome: "authenticated", User: user}
}

// build makes one authenticator per issuer and joins them as the API server does: the first error ends the search.
func build(text string, world func(context.Context, *oidc.Options)) (*Authenticator, error) {
	if err := unbounded(text); err != nil {
		return nil, err
	}
	config, err := DecodeAuthentication(text)
	if err != nil {
		return nil, fmt.Errorf("the configuration does not decode: %w", err)
	}
	if complaints := validation.ValidateAuthenticationConfiguration(compiler(), config, nil); len(complaints) > 0 {
		return nil, fmt.Errorf("the configuration is not valid: %w", complaints.ToAggregate())
	}
	ctx, cancel := context.WithCancel(context.Background())
	chain := &Authenticator{cancel: cancel}
	clock := func() time.Time { return time.Unix(chain.now.Load(), 0) }
	var members []authenticator.Token
	for _, issuer := range config.JWT {
		member, err := newMember(ctx, issuer, clock, world)
		if err != nil {
			cancel()
			return nil, err
		}
		members = append(members, member)
	}
	chain.chain = tokenunion.NewFailOnError(members...)
	return chain, nil
}

func newMember(ctx context.Context, issuer apiserver.JWTAuthenticator, clock func() time.Time, world func(context.Context, *oidc.Options)) (authenticator.Token, error) {
	options := oidc.Options{
		JWTAuthenticator:     issuer,
		Compiler:             compiler(),
		SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
	}.WithClock(clock)
	world(ctx, &options)
	member, err := oidc.New(ctx, options)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(20 * time.Second); !oidc.Attempted(member); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return nil, errors.New("the issuer was not looked for in time")
		}
	}
	return member, nil
}

// keySets reads a vector's `jwks`: one set for all issuers, a map of issuer to set, or a raw body.
func keySets(jwks json.RawMessage) (func(issuer string) []byte, error) {
	var raw string
	if json.Unmarshal(jwks, &raw) == nil {
		return func(string) []byte { return []byte(raw) }, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(jwks, &members); err != nil {
		return nil, fmt.Errorf("`jwks` is neither an object nor a text: %w", err)
	}
	if _, one := members["keys"]; one || len(members) == 0 {
		return func(string) []byte { return jwks }, nil
	}
	return func(issuer string) []byte {
		if set, named := members[issuer]; named {
			return set
		}
		return []byte(`{"keys":[]}`)
	}, nil
}
