package decide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types/traits"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// CELInput is an expression and what it looks at: `claims`, the same as raw text, or `user`.
type CELInput struct {
	Expression string          `json:"expr"`
	Claims     json.RawMessage `json:"claims"`
	ClaimsText *string         `json:"claims_json"`
	User       *User           `json:"user"`
	// Rule asks for an expression of static type bool.
	Rule bool `json:"rule"`
}

// CELDecision is whether the expression compiles, and what it gives.
type CELDecision struct {
	Compiled     bool    `json:"compiled"`
	CompileError string  `json:"compile_error,omitempty"`
	OK           *bool   `json:"ok,omitempty"`
	Type         string  `json:"type,omitempty"`
	Value        any     `json:"value,omitempty"`
	Error        string  `json:"error,omitempty"`
	Cost         *uint64 `json:"cost,omitempty"`
}

func celExpression(input CELInput) (CELDecision, error) {
	if err := unbounded(input.Expression); err != nil {
		return CELDecision{}, err
	}
	name, variable, err := input.variable()
	if err != nil {
		return CELDecision{}, err
	}
	compiled, err := input.compile()
	if err != nil {
		return CELDecision{CompileError: err.Error()}, nil
	}
	decision := CELDecision{Compiled: true, OK: new(bool)}
	value, details, err := compiled.Program.ContextEval(context.Background(), map[string]any{name: variable})
	if details != nil {
		decision.Cost = details.ActualCost()
	}
	if err != nil {
		decision.Error = err.Error()
		return decision, nil
	}
	*decision.OK = true
	decision.Type = typeName(value)
	decision.Value = topValue(value)
	return decision, nil
}

func (input CELInput) compile() (authenticationcel.CompilationResult, error) {
	if input.User != nil {
		if input.Rule {
			return compiler().CompileUserExpression(&authenticationcel.UserValidationCondition{Expression: input.Expression})
		}
		return compiler().CompileUserExpression(&authenticationcel.ClaimMappingExpression{Expression: input.Expression})
	}
	if input.Rule {
		return compiler().CompileClaimsExpression(&authenticationcel.ClaimValidationCondition{Expression: input.Expression})
	}
	return compiler().CompileClaimsExpression(&authenticationcel.ClaimMappingExpression{Expression: input.Expression})
}

func (input CELInput) variable() (string, traits.Mapper, error) {
	if input.User != nil {
		return "user", oidc.UserValue(&user.DefaultInfo{
			Name:   input.User.Username,
			UID:    input.User.UID,
			Groups: input.User.Groups,
			Extra:  input.User.Extra,
		}), nil
	}
	text := []byte(input.Claims)
	if input.ClaimsText != nil {
		text = []byte(*input.ClaimsText)
	}
	if text == nil {
		return "", nil, errors.New("one of `claims`, `claims_json` and `user` is needed")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return "", nil, fmt.Errorf("claims are not an object: %w", err)
	}
	return "claims", oidc.ClaimsValue(members), nil
}
