// Package compare holds the comparison rules of the vectors' README: which members of two answers to the same question
// have to agree, and how.
package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Object is a decoded JSON object whose numbers are kept as written.
type Object = map[string]any

// Decode reads one object.
func Decode(text []byte) (Object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out Object
	err := decoder.Decode(&out)
	return out, err
}

// Answers says how `got` differs from `want` by the rules of a kind, in a few words; empty if it does not.
func Answers(kind string, want, got Object) string {
	if fault, ok := got["fault"]; ok {
		if _, both := want["fault"]; both {
			return ""
		}
		return fmt.Sprintf("fault: %v", fault)
	}
	if fault, ok := want["fault"]; ok {
		return fmt.Sprintf("answered, but the reference says fault: %v", fault)
	}
	rule, ok := rules[kind]
	if !ok {
		return "no comparison rule for kind " + kind
	}
	return rule(want, got)
}

var rules = map[string]func(want, got Object) string{
	"authn-config":   configs,
	"authn-token":    tokens,
	"cel":            expressions,
	"image-match":    members("match"),
	"image-config":   configs,
	"kubeconfig":     kubeconfigs,
	"exec-output":    members("ok", "token", "hasCert", "expires"),
	"exec-info":      members("info"),
	"exec-flow":      members("authorization", "runs", "runsAfter"),
	"image-keyring":  keyrings,
	"image-response": responses,
	"tls-verify":     verdicts,
	"request-info":   requestInfos,
}

// members compares the named members as JSON values; absent and null are the same.
func members(names ...string) func(want, got Object) string {
	return func(want, got Object) string {
		for _, name := range names {
			if !Same(want[name], got[name]) {
				return differs(name, want[name], got[name])
			}
		}
		return ""
	}
}

// verdicts compares whether a certificate is accepted.
func verdicts(want, got Object) string {
	if difference := members("ok")(want, got); difference != "" {
		return difference + because(want, got)
	}
	return ""
}

// requestInfos compares every member of two interpretations of a request; of an invalid one only that it is.
func requestInfos(want, got Object) string {
	if difference := members("ok")(want, got); difference != "" {
		return difference + because(want, got)
	}
	if want["ok"] != true {
		return ""
	}
	return members("isResourceRequest", "path", "verb", "apiPrefix", "apiGroup", "apiVersion", "namespace", "resource", "subresource", "name", "parts",
		"fieldSelector", "labelSelector")(want, got)
}

func configs(want, got Object) string {
	if difference := members("valid")(want, got); difference != "" {
		return difference + because(want, got)
	}
	if want["stage"] != "validate" {
		return ""
	}
	wanted, given := complaints(want), complaints(got)
	if !slices.Equal(wanted, given) {
		return differs("errors", wanted, given)
	}
	return ""
}

// complaints is the set of (type, field), sorted.
func complaints(answer Object) []string {
	var out []string
	list, _ := answer["errors"].([]any)
	for _, each := range list {
		complaint, _ := each.(Object)
		out = append(out, fmt.Sprintf("%v %v", complaint["type"], complaint["field"]))
	}
	sort.Strings(out)
	return slices.Compact(out)
}

func tokens(want, got Object) string {
	if difference := members("outcome")(want, got); difference != "" {
		return difference + because(want, got)
	}
	if want["outcome"] != "authenticated" {
		return ""
	}
	wanted, _ := want["user"].(Object)
	given, _ := got["user"].(Object)
	return members("username", "uid", "groups", "extra")(wanted, given)
}

func expressions(want, got Object) string {
	if difference := members("compiled", "ok", "type")(want, got); difference != "" {
		return difference + because(want, got)
	}
	if _, there := want["value"]; !there {
		return ""
	}
	return members("value")(want, got)
}

// Outcomes says how two outcomes of an expression differ, whose values carry their kind: phase, value and static type.
func Outcomes(want, got Object) string {
	if difference := members("phase", "type")(want, got); difference != "" {
		return difference + because(want, got)
	}
	if !sameKind(want["value"], got["value"]) {
		return differs("value", want["value"], got["value"])
	}
	return ""
}

// Costs says how the costs of two outcomes differ.
func Costs(want, got Object) string { return members("cost")(want, got) }

// sameKind compares values that carry their kind: doubles by value, maps without regard to order.
func sameKind(want, got any) bool {
	wanted, ok := want.(Object)
	given, also := got.(Object)
	if !ok || !also || len(wanted) != 1 || len(given) != 1 {
		return Same(want, got)
	}
	for kind, inner := range wanted {
		other, there := given[kind]
		if !there {
			return false
		}
		switch kind {
		case "double":
			return sameDouble(inner, other)
		case "optional":
			return sameKind(inner, other)
		case "list":
			items, _ := inner.([]any)
			others, _ := other.([]any)
			return slices.EqualFunc(items, others, sameKind)
		case "map":
			return sameEntries(inner, other)
		}
		return Same(inner, other)
	}
	return true
}

func sameDouble(want, got any) bool {
	number := func(value any) (float64, error) { return strconv.ParseFloat(fmt.Sprint(value), 64) }
	a, err := number(want)
	b, failed := number(got)
	return err == nil && failed == nil && (a == b || math.IsNaN(a) && math.IsNaN(b))
}

func sameEntries(want, got any) bool {
	entries, _ := want.([]any)
	others, _ := got.([]any)
	same := func(a, b any) bool {
		left, _ := a.([]any)
		right, _ := b.([]any)
		return slices.EqualFunc(left, right, sameKind)
	}
	return len(entries) == len(others) && !slices.ContainsFunc(entries, func(entry any) bool {
		return !slices.ContainsFunc(others, func(other any) bool { return same(entry, other) })
	})
}

// Details says how answers that agree differ in what is only informative. Of expressions that is the cost and the words of the
// checker.
func Details(kind string, want, got Object) string {
	if kind != "cel" {
		return ""
	}
	if difference := members("cost")(want, got); difference != "" {
		return difference
	}
	refused, _ := want["compile_error"].(string)
	ours, _ := got["compile_error"].(string)
	refused = strings.TrimPrefix(refused, "compilation failed: ")
	// Of syntax errors only the place is the same: their words are those of a parser generator.
	if place, words, ok := strings.Cut(refused, ": Syntax error"); ok && words != "" {
		if !strings.HasPrefix(ours, place+": ") {
			return differs("compile_error", want["compile_error"], got["compile_error"])
		}
		return ""
	}
	if strings.HasPrefix(refused, "ERROR: ") && withoutHints(ours) != refused {
		return differs("compile_error", want["compile_error"], got["compile_error"])
	}
	return ""
}

// withoutHints drops the lines that only navicert has.
func withoutHints(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, " = hint: ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func keyrings(want, got Object) string {
	_, wanted := want["error"]
	_, given := got["error"]
	if wanted != given {
		return differs("error", want["error"], got["error"])
	}
	return members("credentials")(want, got)
}

func responses(want, got Object) string {
	if difference := members("ok", "cacheKeyType", "auth")(want, got); difference != "" {
		return difference + because(want, got)
	}
	if length(want["cacheDuration"]) != length(got["cacheDuration"]) {
		return differs("cacheDuration", want["cacheDuration"], got["cacheDuration"])
	}
	return ""
}

// length makes two spellings of a length of time equal.
func length(value any) any {
	text, ok := value.(string)
	if !ok {
		return value
	}
	if parsed, err := time.ParseDuration(text); err == nil {
		return parsed
	}
	return text
}

// because adds what the sides gave as reason: never compared, but it says where to look.
func because(want, got Object) string {
	return reason(" (reference: %s)", want) + reason(" (other side: %s)", got)
}

func reason(format string, answer Object) string {
	for _, name := range []string{"error", "compile_error", "messages", "errors"} {
		if value := answer[name]; !empty(value) {
			return fmt.Sprintf(format, short(value))
		}
	}
	return ""
}

func differs(name string, want, got any) string {
	return fmt.Sprintf("%s: %s, not %s", name, short(got), short(want))
}

func short(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > 200 {
		return strings.ToValidUTF8(string(text[:200]), "") + "…"
	}
	return string(text)
}

// Same compares two JSON values: numbers by value, objects without regard to order. Absent and null are the same.
func Same(a, b any) bool {
	switch a := a.(type) {
	case Object:
		other, ok := b.(Object)
		if !ok || len(a) != len(other) {
			return false
		}
		for name, value := range a {
			if given, there := other[name]; !there || !Same(value, given) {
				return false
			}
		}
		return true
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, Same)
	case json.Number:
		other, ok := b.(json.Number)
		return ok && sameNumber(a, other)
	}
	return a == b
}

// sameNumber compares exactly where both are integers, as doubles where one is not: 0.1 has more than one spelling.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	first, ok := new(big.Int).SetString(a.String(), 10)
	second, also := new(big.Int).SetString(b.String(), 10)
	if ok && also {
		return first.Cmp(second) == 0
	}
	x, err := a.Float64()
	y, failed := b.Float64()
	return err == nil && failed == nil && x == y
}
