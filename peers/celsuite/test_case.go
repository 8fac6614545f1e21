package main

import (
	"encoding/json"
	"fmt"
	"regexp"

	"cel.dev/expr"
	"cel.dev/expr/conformance/test"
)

// testCase is one test of the suite.
type testCase struct {
	ID            string            `json:"id"`
	Section       string            `json:"section"`
	Name          string            `json:"name"`
	Description   string            `json:"description,omitempty"`
	Expression    string            `json:"expr"`
	Container     string            `json:"container,omitempty"`
	Locale        string            `json:"locale,omitempty"`
	DisableMacros bool              `json:"disable_macros,omitempty"`
	DisableCheck  bool              `json:"disable_check,omitempty"`
	CheckOnly     bool              `json:"check_only,omitempty"`
	TypeEnv       []declaration     `json:"type_env,omitempty"`
	Bindings      map[string]object `json:"bindings,omitempty"`
	Expect        object            `json:"expect"`
	NeedsProto    bool              `json:"needs_proto"`
}

type object = map[string]any

// declaration is a variable, or a function with its overloads.
type declaration struct {
	Name      string     `json:"name"`
	Type      string     `json:"type,omitempty"`
	Overloads []overload `json:"overloads,omitempty"`
}

type overload struct {
	ID         string   `json:"id"`
	Params     []string `json:"params"`
	TypeParams []string `json:"type_params"`
	Result     string   `json:"result"`
	Member     bool     `json:"member"`
}

func newCase(id, section string, from *test.SimpleTest) (testCase, error) {
	out := testCase{
		ID:            id,
		Section:       section,
		Name:          from.GetName(),
		Description:   from.GetDescription(),
		Expression:    from.GetExpr(),
		Container:     from.GetContainer(),
		Locale:        from.GetLocale(),
		DisableMacros: from.GetDisableMacros(),
		DisableCheck:  from.GetDisableCheck(),
		CheckOnly:     from.GetCheckOnly(),
	}
	for _, each := range from.GetTypeEnv() {
		declared, err := declare(each)
		if err != nil {
			return out, err
		}
		out.TypeEnv = append(out.TypeEnv, declared)
	}
	var err error
	if out.Bindings, err = bindings(from.GetBindings()); err != nil {
		return out, err
	}
	if out.Expect, err = expectation(from); err != nil {
		return out, err
	}
	out.NeedsProto, err = out.needsProto()
	return out, err
}

func declare(from *expr.Decl) (declaration, error) {
	out := declaration{Name: from.GetName()}
	switch kind := from.GetDeclKind().(type) {
	case *expr.Decl_Ident:
		out.Type = typeText(kind.Ident.GetType())
	case *expr.Decl_Function:
		for _, each := range kind.Function.GetOverloads() {
			out.Overloads = append(out.Overloads, overload{
				ID:         each.GetOverloadId(),
				Params:     typeTexts(each.GetParams()),
				TypeParams: append([]string{}, each.GetTypeParams()...),
				Result:     typeText(each.GetResultType()),
				Member:     each.GetIsInstanceFunction(),
			})
		}
	default:
		return out, fmt.Errorf("unknown kind of declaration %T", kind)
	}
	return out, nil
}

func bindings(from map[string]*expr.ExprValue) (map[string]object, error) {
	out := map[string]object{}
	for name, bound := range from {
		switch kind := bound.GetKind().(type) {
		case *expr.ExprValue_Value:
			value, err := valueObject(kind.Value)
			if err != nil {
				return nil, err
			}
			out[name] = value
		case *expr.ExprValue_Error:
			out[name] = object{"error": messages(kind.Error)}
		case *expr.ExprValue_Unknown:
			out[name] = object{"unknown": kind.Unknown.GetExprs()}
		default:
			return nil, fmt.Errorf("unknown kind of binding %T", kind)
		}
	}
	return out, nil
}

// expectation is what the test wants; a test that does not say wants `true`.
func expectation(from *test.SimpleTest) (object, error) {
	switch matcher := from.GetResultMatcher().(type) {
	case nil:
		return object{"value": object{"bool": true}}, nil
	case *test.SimpleTest_Value:
		value, err := valueObject(matcher.Value)
		return object{"value": value}, err
	case *test.SimpleTest_TypedResult:
		out := object{"type": typeText(matcher.TypedResult.GetDeducedType())}
		if result := matcher.TypedResult.GetResult(); result != nil {
			value, err := valueObject(result)
			if err != nil {
				return nil, err
			}
			out["value"] = value
		}
		return out, nil
	case *test.SimpleTest_EvalError:
		return object{"error": messages(matcher.EvalError)}, nil
	case *test.SimpleTest_AnyEvalErrors:
		sets := [][]string{}
		for _, each := range matcher.AnyEvalErrors.GetErrors() {
			sets = append(sets, messages(each))
		}
		return object{"any_error": sets}, nil
	case *test.SimpleTest_Unknown:
		return object{"unknown": matcher.Unknown.GetExprs()}, nil
	default:
		return nil, fmt.Errorf("unknown kind of expectation %T", matcher)
	}
}

func messages(set *expr.ErrorSet) []string {
	out := []string{}
	for _, each := range set.GetErrors() {
		out = append(out, each.GetMessage())
	}
	return out
}

// protobuf is what only an environment with protobuf messages knows. The names of the types of time stamps and durations are part of
// the language.
var (
	protobuf = regexp.MustCompile(`TestAllTypes|google\.protobuf|GlobalEnum|NestedEnum|proto\.|TestRequired|NestedTest|Wrapper|"message":|"enum":`)
	timeType = regexp.MustCompile(`google\.protobuf\.(Timestamp|Duration)\b([^{]|$)`)
)

func (t testCase) needsProto() (bool, error) {
	// The test's own names and descriptions say nothing about what it needs.
	declared, err := json.Marshal([]any{t.Container, t.TypeEnv, t.Bindings})
	if err != nil {
		return false, err
	}
	expected, err := json.Marshal(t.Expect)
	if err != nil {
		return false, err
	}
	rest := timeType.ReplaceAllString(t.Expression+"\n"+string(expected), "")
	return protobuf.Match(declared) || protobuf.MatchString(rest), nil
}
