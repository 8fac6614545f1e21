package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"navicert/peers/decide"
)

func TestSpacedLeavesStringsAlone(t *testing.T) {
	got := string(spaced([]byte(`{"a":[1,2],"b":"x,y:\"z,\\"}`)))
	if want := `{"a": [1, 2], "b": "x,y:\"z,\\"}`; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}

// A recording keeps lines that agree byte for byte, answers new questions, and replaces an answer that is wrong and nothing else.
func TestRecordReplacesOnlyAnswersThatDiffer(t *testing.T) {
	kind, _ := decide.Find("cel")
	agrees := `{"id": "a",  "input": {"expr": "1 + 1", "claims": {}}, "expect": {"compiled": true, "ok": true, "type": "int", "value": 2, "cost": 99}, "note": "n"}`
	fresh := `{"id": "b", "input": {"expr": "\"é<\" + claims.sub", "claims": {"sub": "x"}}, "expect": null, "note": "n", "stricter": true}`
	wrong := `{"id": "c", "input": {"expr": "1 / 0", "claims": {}}, "expect": {"compiled": true, "ok": true}, "note": "n"}`
	path := filepath.Join(t.TempDir(), "cel.jsonl")
	text := strings.Join([]string{agrees, fresh, wrong}, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	record := func() change {
		count, err := recordFile(path, func(line []byte) ([]byte, string, error) { return recordVector(line, kind, world{}) })
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	if count := record(); count.lines != 3 || count.changed != 2 {
		t.Errorf("%+v", count)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	want := []string{
		agrees,
		`{"id": "b", "input": {"expr": "\"é<\" + claims.sub", "claims": {"sub": "x"}}, "expect": {"compiled": true, "ok": true, "type": "string", "value": "é<x", "cost": 3}, "note": "n", "stricter": true}`,
		`{"id": "c", "input": {"expr": "1 / 0", "claims": {}}, "expect": {"compiled": true, "ok": false, "error": "division by zero", "cost": 1}, "note": "n"}`,
	}
	for index, line := range lines {
		if line != want[index] {
			t.Errorf("line %d:\n%s instead of\n%s", index+1, line, want[index])
		}
	}
	if count := record(); count.changed != 0 {
		t.Errorf("a second recording changes %d lines", count.changed)
	}
}

func TestCostThatDependsOnTheOrderOfAMapAgreesWithEveryRecordedOne(t *testing.T) {
	claims := authnDocument{Claims: []byte(`{"m": {"a": 1, "b": 2, "c": 3}}`)}
	expression := []byte(`"dyn(claims.m).exists(k, k == \"b\")"`)
	costs := map[string]bool{}
	for range attempts {
		outcome, err := claims.plainOutcome(expression)
		if err != nil {
			t.Fatal(err)
		}
		costs[string(outcome)] = true
	}
	if len(costs) < 2 {
		t.Fatalf("the cost does not vary: %v", costs)
	}
	for want := range costs {
		_, difference, err := again([]byte(want), func() ([]byte, error) { return claims.plainOutcome(expression) })
		if err != nil || difference != "" {
			t.Errorf("%s: %s %v", want, difference, err)
		}
	}
}
