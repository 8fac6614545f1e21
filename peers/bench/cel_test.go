package bench

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/cel-go/interpreter"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// expressions are the eight that rules are made of; bench/src/cel.rs has the same.
var expressions = []struct{ row, text string }{
	{"cel-claim", "claims.sub"},
	{"cel-and", "claims.email_verified == true && claims.email.endsWith('@example.com')"},
	{"cel-exists", "claims.roles.split(',').exists(r, r == 'admin')"},
	{"cel-map", "dyn(claims.groups).map(g, 'oidc:' + g)"},
	{"cel-all", "user.groups.all(g, !g.startsWith('system:'))"},
	{"cel-has", "claims.exp - claims.nbf <= 86400.0 && has(claims.a.b)"},
	{"cel-matches", "claims.email.matches('^[a-z]+@example[.]com$')"},
	{"cel-optional", "claims.?missing.orValue('dflt') == 'dflt'"},
}

// claims are those of bench/src/cel.rs.
const claims = `{
	"iss": "https://issuer.example.com", "sub": "1234567890", "aud": ["foo", "bar"], "azp": "foo",
	"email": "alice@example.com", "email_verified": true, "name": "Alice Liddell",
	"preferred_username": "alice", "roles": "admin,dev,ops",
	"groups": ["team-a", "team-b", "platform"], "exp": 1800086400.0, "nbf": 1800000000.0,
	"iat": 1800000000.0, "level": 3.0, "foo.bar": "dotted", "a": {"b": {"c": "deep"}, "n": null},
	"realm_access": {"roles": ["offline_access", "uma_authorization", "admin"]},
	"ip": "10.20.30.40", "ver": "1.24.3", "mem": "1.5Gi"
}`

func init() {
	for _, expression := range expressions {
		add(expression.row, func(b *testing.B) { evaluate(b, expression.text) })
	}
}

// evaluate runs a compiled program over claims that are there, as the API server's mapper does. Claims that were looked at once are
// decoded: what remains is the evaluation.
func evaluate(b *testing.B, text string) {
	compiler := authenticationcel.NewDefaultCompiler()
	var input variable
	var compiled authenticationcel.CompilationResult
	var err error
	accessor := &authenticationcel.ClaimMappingExpression{Expression: text}
	if text[:len("user")] == "user" {
		compiled, err = compiler.CompileUserExpression(accessor)
		input = variable{"user", oidc.UserValue(&user.DefaultInfo{
			Name: "oidc:alice", UID: "u-1", Groups: []string{"oidc:team-a", "oidc:team-b"},
			Extra: map[string][]string{"example.com/tenant": {"t1"}},
		})}
	} else {
		compiled, err = compiler.CompileClaimsExpression(accessor)
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(claims), &members); err != nil {
			b.Fatal(err)
		}
		input = variable{"claims", oidc.ClaimsValue(members)}
	}
	program := must(b, compiled, err).Program
	once := func() {
		if value, _, err := program.ContextEval(context.Background(), &input); err != nil {
			b.Fatal(value, err)
		}
	}
	once()
	measure(b, once)
}

// variable is the only one that expressions see.
type variable struct {
	name  string
	value any
}

func (v *variable) ResolveName(name string) (any, bool) { return v.value, name == v.name }

func (v *variable) Parent() interpreter.Activation { return nil }
