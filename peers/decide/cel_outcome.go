package decide

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// Outcome is what Kubernetes' base environment makes of an expression. Unlike CELDecision it has the static type, and values carry
// their kind.
type Outcome struct {
	Value map[string]any `json:"value,omitempty"`
	// Phase is `compile` or `eval` if there is no value; Stage says where in it: `parse`, `check`, `program` or `eval`.
	Phase string  `json:"phase,omitempty"`
	Stage string  `json:"stage,omitempty"`
	Error string  `json:"error,omitempty"`
	Type  string  `json:"type,omitempty"`
	Cost  *uint64 `json:"cost,omitempty"`
}

var baseEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return environment.BaseEnvSet(kube()).Env(environment.NewExpressions)
})

// PlainExpression evaluates an expression over claims that are bound as a plain map, declared `map(string, any)`.
func PlainExpression(expression string, claims map[string]any) (out Outcome, fault error) {
	defer recovered(&fault)
	if err := unbounded(expression); err != nil {
		return Outcome{}, err
	}
	env, err := plainEnvironment()
	if err != nil {
		return Outcome{}, err
	}
	return outcome(env, expression, map[string]any{"claims": claims}), nil
}

var plainEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	base, err := baseEnvironment()
	if err != nil {
		return nil, err
	}
	return base.Extend(cel.Variable("claims", cel.MapType(cel.StringType, cel.AnyType)))
})

// AuthenticationExpression evaluates an expression as the API server does: in the environment of claims, or in that of users.
func AuthenticationExpression(expression string, ofUser bool, claims json.RawMessage, person User) (out Outcome, fault error) {
	defer recovered(&fault)
	accessor := &authenticationcel.ClaimMappingExpression{Expression: expression}
	var compiled authenticationcel.CompilationResult
	var err error
	var name string
	var variable traits.Mapper
	if ofUser {
		compiled, err = outcomeCompiler().CompileUserExpression(accessor)
		name, variable = "user", oidc.UserValue(&user.DefaultInfo{Name: person.Username, UID: person.UID, Groups: person.Groups, Extra: person.Extra})
	} else {
		compiled, err = outcomeCompiler().CompileClaimsExpression(accessor)
		var members map[string]json.RawMessage
		if err := json.Unmarshal(claims, &members); err != nil {
			return Outcome{}, err
		}
		name, variable = "claims", oidc.ClaimsValue(members)
	}
	if err != nil {
		return refusal("check", err), nil
	}
	return evaluated(compiled.Program, compiled.AST.OutputType(), map[string]any{name: variable}), nil
}

var outcomeCompiler = sync.OnceValue(func() authenticationcel.Compiler {
	return authenticationcel.NewCompiler(environment.BaseEnvSet(kube()))
})

// SuiteTest is the part of a test of the published CEL suite that decides its outcome.
type SuiteTest struct {
	ID            string                    `json:"id"`
	Expression    string                    `json:"expr"`
	Container     string                    `json:"container"`
	DisableMacros bool                      `json:"disable_macros"`
	DisableCheck  bool                      `json:"disable_check"`
	CheckOnly     bool                      `json:"check_only"`
	TypeEnv       []SuiteDeclaration        `json:"type_env"`
	Bindings      map[string]map[string]any `json:"bindings"`
	NeedsProto    bool                      `json:"needs_proto"`
}

// SuiteDeclaration is a variable, or a function with its overloads.
type SuiteDeclaration struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Overloads []struct {
		ID     string   `json:"id"`
		Params []string `json:"params"`
		Result string   `json:"result"`
		Member bool     `json:"member"`
	} `json:"overloads"`
}

// Suite gives the outcome of a test in the base environment.
func Suite(test SuiteTest) (out Outcome, fault error) {
	defer recovered(&fault)
	base, err := baseEnvironment()
	if err != nil {
		return Outcome{}, err
	}
	options, err := test.options()
	if err != nil {
		return Outcome{}, err
	}
	env, err := base.Extend(options...)
	if err != nil {
		return Outcome{}, err
	}
	variables := map[string]any{}
	for name, bound := range test.Bindings {
		if variables[name], err = readValue(bound); err != nil {
			return Outcome{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if !test.DisableCheck {
		if test.CheckOnly {
			ast, refused := compileStaged(env, test.Expression)
			if refused != nil {
				return *refused, nil
			}
			return Outcome{Type: staticType(ast.OutputType())}, nil
		}
		return outcome(env, test.Expression, variables), nil
	}
	ast, issues := env.Parse(test.Expression)
	if issues.Err() != nil {
		return refusal("parse", issues.Err()), nil
	}
	program, err := env.Program(ast)
	if err != nil {
		return refusal("program", err), nil
	}
	return evaluated(program, nil, variables), nil
}

func (test SuiteTest) options() ([]cel.EnvOption, error) {
	options := []cel.EnvOption{cel.Container(test.Container)}
	if test.DisableMacros {
		options = append(options, cel.ClearMacros())
	}
	for _, declared := range test.TypeEnv {
		if len(declared.Overloads) == 0 {
			kind, err := parseType(declared.Type)
			if err != nil {
				return nil, err
			}
			options = append(options, cel.Variable(declared.Name, kind))
			continue
		}
		var overloads []cel.FunctionOpt
		for _, each := range declared.Overloads {
			result, err := parseType(each.Result)
			if err != nil {
				return nil, err
			}
			var params []*cel.Type
			for _, text := range each.Params {
				param, err := parseType(text)
				if err != nil {
					return nil, err
				}
				params = append(params, param)
			}
			if each.Member {
				overloads = append(overloads, cel.MemberOverload(each.ID, params, result))
			} else {
				overloads = append(overloads, cel.Overload(each.ID, params, result))
			}
		}
		options = append(options, cel.Function(declared.Name, overloads...))
	}
	return options, nil
}

func outcome(env *cel.Env, expression string, variables map[string]any) Outcome {
	ast, refused := compileStaged(env, expression)
	if refused != nil {
		return *refused
	}
	program, err := env.Program(ast)
	if err != nil {
		out := refusal("program", err)
		out.Type = staticType(ast.OutputType())
		return out
	}
	return evaluated(program, ast.OutputType(), variables)
}

// compileStaged parses and checks apart, so that it can say which of the two refused.
func compileStaged(env *cel.Env, expression string) (*cel.Ast, *Outcome) {
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		out := refusal("parse", issues.Err())
		return nil, &out
	}
	// Compiled from the text: that also runs the validators of the environment.
	ast, issues := env.Compile(expression)
	if issues.Err() != nil || parsed == nil {
		out := refusal("check", issues.Err())
		return nil, &out
	}
	return ast, nil
}

func refusal(stage string, err error) Outcome {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return Outcome{Phase: "compile", Stage: stage, Error: text}
}

func evaluated(program cel.Program, kind *cel.Type, variables map[string]any) Outcome {
	value, details, err := program.ContextEval(context.Background(), variables)
	out := Outcome{}
	if kind != nil {
		out.Type = staticType(kind)
	}
	if details != nil {
		out.Cost = details.ActualCost()
	}
	if err != nil {
		out.Phase, out.Stage, out.Error = "eval", "eval", err.Error()
		return out
	}
	out.Value = kindValue(value)
	return out
}

// shortTypes are the types that the language itself has another name for.
var shortTypes = strings.NewReplacer("google.protobuf.Timestamp", "timestamp", "google.protobuf.Duration", "duration", "google.protobuf.Any", "any")

func staticType(kind *cel.Type) string { return shortTypes.Replace(kind.String()) }

var typePattern = regexp.MustCompile(`^([^()]+)\((.*)\)$`)

// parseType reads a type as the suite's files write it.
func parseType(text string) (*cel.Type, error) {
	if kind, ok := simpleTypes[text]; ok {
		return kind, nil
	}
	if name, ok := strings.CutPrefix(text, "~"); ok {
		return cel.TypeParamType(name), nil
	}
	parts := typePattern.FindStringSubmatch(text)
	if parts == nil {
		return cel.ObjectType(text), nil
	}
	var params []*cel.Type
	for _, each := range splitTypes(parts[2]) {
		param, err := parseType(each)
		if err != nil {
			return nil, err
		}
		params = append(params, param)
	}
	want := map[string]int{"list": 1, "map": 2, "type": 1, "wrapper": 1, "optional_type": 1}
	if count, ok := want[parts[1]]; ok && count != len(params) {
		return nil, fmt.Errorf("`%s` has %d parameters", text, len(params))
	}
	switch parts[1] {
	case "list":
		return cel.ListType(params[0]), nil
	case "map":
		return cel.MapType(params[0], params[1]), nil
	case "type":
		return types.NewTypeTypeWithParam(params[0]), nil
	case "wrapper":
		return cel.NullableType(params[0]), nil
	case "optional_type":
		return cel.OptionalType(params[0]), nil
	}
	return cel.OpaqueType(parts[1], params...), nil
}

var simpleTypes = map[string]*cel.Type{
	"int": cel.IntType, "uint": cel.UintType, "double": cel.DoubleType, "bool": cel.BoolType, "string": cel.StringType, "bytes": cel.BytesType,
	"dyn": cel.DynType, "any": cel.AnyType, "null_type": cel.NullType, "timestamp": cel.TimestampType, "duration": cel.DurationType,
	"google.protobuf.Timestamp": cel.TimestampType, "google.protobuf.Duration": cel.DurationType,
}

// splitTypes splits at commas outside parentheses.
func splitTypes(text string) []string {
	var out []string
	depth, start := 0, 0
	for index, symbol := range text {
		switch {
		case symbol == '(':
			depth++
		case symbol == ')':
			depth--
		case symbol == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[start:index]))
			start = index + 1
		}
	}
	return append(out, strings.TrimSpace(text[start:]))
}

// sortedEntries makes the order of a map's entries the same in every recording.
func sortedEntries(entries [][2]any) [][2]any {
	text := func(entry [2]any) string { return fmt.Sprint(entry[0]) }
	slices.SortFunc(entries, func(a, b [2]any) int { return strings.Compare(text(a), text(b)) })
	return entries
}
