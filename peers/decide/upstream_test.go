package decide

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// The tests of this file reproduce defects that docs/upstream describes. Each prints what it sees; one that fails says that this
// version of Kubernetes no longer has the defect, or has it for the first time.

// counted counts the requests for a key set.
type counted struct {
	*web
	keySets atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.URL.Path, "/keys") {
		c.keySets.Add(1)
	}
	return c.web.RoundTrip(request)
}

// Since 1.38 the server means to limit its requests for a key set to 6 per minute after a burst of 3.
func TestUpstreamKeySetRequestsAreNotLimited(t *testing.T) {
	const tokens = 200
	issuer, stranger := newSigner(t), newSigner(t)
	network := &counted{web: &web{pages: issuer.pages(t, "https://one.example")}}
	chain, err := build(webConfig, func(_ context.Context, options *oidc.Options) { options.Client = &http.Client{Transport: network} })
	if err != nil {
		t.Fatal(err)
	}
	defer chain.cancel()
	token := stranger.sign(t, plainClaims)
	for range tokens {
		if got := chain.Judge(token, 1_800_000_000); got.Outcome != "rejected" {
			t.Fatalf("got %+v", got)
		}
	}
	requests := network.keySets.Load()
	t.Logf("Kubernetes %s: %d tokens with an unknown key: %d requests for the key set", Kube, tokens, requests)
	// Some tokens share a request that is in flight. A limiter would let four or five through in this time.
	if requests < tokens/4 {
		t.Errorf("%d requests", requests)
	}
}

// Each further `optMap` of a chain multiplies the time that the expression takes to compile.
func TestUpstreamChainedOptMapCompilesInExponentialTime(t *testing.T) {
	took := func(links int) time.Duration {
		expression := "claims.?a" + strings.Repeat(".optMap(x, x)", links) + ".hasValue()"
		start := time.Now()
		decision, err := celExpression(CELInput{Expression: expression, Claims: json.RawMessage(`{"a": 1}`)})
		if err != nil || !decision.Compiled {
			t.Fatalf("%d links: %+v %v", links, decision, err)
		}
		return time.Since(start)
	}
	took(1) // makes the environment
	few, many := took(4), took(8)
	t.Logf("Kubernetes %s: 4 links take %v, 8 links %v", Kube, few, many)
	if many < 8*few {
		t.Errorf("8 links take %v, 4 links %v", many, few)
	}
}

// Before 1.37 the elements of `lists.range` are allocated before their cost is counted.
func TestUpstreamListsRangeAllocatesBeforeItsCostCounts(t *testing.T) {
	const elements = 5_000_000
	limited := kube().AtLeast(rangeLimited)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	decision, err := celExpression(CELInput{Expression: fmt.Sprintf("lists.range(%d).size()", elements), Claims: json.RawMessage("{}")})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("Kubernetes %s: lists.range(%d): %d MiB, %s", Kube, elements, allocated, decision.Error)
	if limited != (allocated < 64) {
		t.Errorf("%d MiB", allocated)
	}
}

// A plain value as an optional element of a list panics while the expression is compiled.
func TestUpstreamOptionalElementWithAPlainValuePanics(t *testing.T) {
	config := strings.Replace(webConfig, `groups: {claim: groups, prefix: ""}`, `groups: {expression: "[?claims.sub]"}`, 1)
	for _, question := range []struct {
		kind  string
		input map[string]any
	}{
		{"cel", map[string]any{"expr": "[?claims.sub]", "claims": map[string]any{}}},
		{"cel", map[string]any{"expr": "{?'a': claims.sub}", "claims": map[string]any{}}},
		{"authn-config", map[string]any{"config": config}},
	} {
		kind, _ := Find(question.kind)
		decision, fault := kind.Decide(json.RawMessage(text(question.input)))
		t.Logf("Kubernetes %s: %s: %v %v", Kube, text(question.input), text(decision), fault)
		if fault == nil || !strings.HasPrefix(fault.Error(), Panicked) {
			t.Errorf("%v %v", text(decision), fault)
		}
	}
	t.Logf("Kubernetes %s: panics in %s", Kube, panickedIn(config))
}

// The direct result of split() is a list of strings by its type and is refused as groups.
func TestUpstreamListFromSplitIsRefusedAsGroups(t *testing.T) {
	issuer := newSigner(t)
	pages := issuer.pages(t, "https://one.example")
	token := issuer.sign(t, `{"iss":"https://one.example","aud":"kube","exp":1800000060,"sub":"ann","roles":"a,b"}`)
	for expression, refused := range map[string]bool{
		"claims.roles.split(',')":                    true,
		"claims.roles.split(',').map(role, role)":    false,
		"claims.roles.findAll('[a-z]')":              true,
		"claims.roles.split(',').filter(r, r != '')": false,
	} {
		config := strings.Replace(webConfig, `groups: {claim: groups, prefix: ""}`, fmt.Sprintf("groups: {expression: %q}", expression), 1)
		got, err := authnToken(TokenInput{Config: config, Web: pages, Token: token, Now: 1_800_000_000})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("Kubernetes %s: %s: %s %s", Kube, expression, got.Outcome, got.Error)
		if (got.Outcome == "rejected") != refused {
			t.Errorf("%s: %+v", expression, got)
		}
	}
}

// panickedIn gives the function of upstream that panics on a configuration.
func panickedIn(config string) (name string) {
	defer func() {
		if recover() == nil {
			return
		}
		var callers [32]uintptr
		frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
		for frame, more := frames.Next(); more && name == ""; frame, more = frames.Next() {
			if strings.Contains(frame.Function, "cel-go") {
				name = frame.Function
			}
		}
	}()
	_, _ = authnConfig(ConfigInput{Config: config})
	return ""
}

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
