package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"navicert/peers/compare"
)

func TestAChangeIsNamedAfterTheGreatestDifference(t *testing.T) {
	for _, each := range []struct{ kind, want, got, change string }{
		{"cel", `{"compiled": true, "ok": true, "type": "int", "value": 1, "cost": 1}`, `{"compiled": true, "ok": true, "type": "int", "value": 2, "cost": 2}`, changedDecision},
		{"cel", `{"compiled": true, "ok": true, "type": "int", "value": 1, "cost": 1}`, `{"compiled": true, "ok": true, "type": "int", "value": 1, "cost": 2}`, changedCost},
		{"cel", `{"compiled": false, "compile_error": "a"}`, `{"compiled": false, "compile_error": "b"}`, changedText},
		{"cel", `{"compiled": false, "compile_error": "a"}`, `{"compiled": false, "compile_error": "a"}`, ""},
		{"authn-token", `{"outcome": "rejected", "error": "a"}`, `{"outcome": "no-opinion"}`, changedDecision},
		{"authn-token", `{"outcome": "rejected", "error": "a"}`, `{"outcome": "rejected", "error": "b"}`, changedText},
		{"authn-token", `{"outcome": "rejected", "error": "a"}`, `{"fault": "x"}`, changedDecision},
		{"authn-config", `{"valid": false, "stage": "decode", "messages": ["no kind A"]}`, `{"valid": false, "stage": "decode", "messages": ["no kind A in scheme \"x.go:1\""]}`, ""},
		{"authn-config", `{"valid": false, "stage": "validate", "errors": [{"type": "T", "field": "f", "detail": "a"}]}`, `{"valid": false, "stage": "validate", "errors": [{"type": "T", "field": "f", "detail": "b"}]}`, changedText},
		{"exec-output", `{"ok": false, "error": "a"}`, `{"ok": false, "error": "b"}`, ""},
	} {
		want, err := compare.Decode([]byte(each.want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := compare.Decode([]byte(each.got))
		if err != nil {
			t.Fatal(err)
		}
		if change := changeOf(each.kind, want, got); change != each.change {
			t.Errorf("%s: %s instead of %s: `%s`, not `%s`", each.kind, each.got, each.want, change, each.change)
		}
	}
}

func TestOverridesAreReadAsTheyWereWritten(t *testing.T) {
	path := overridePath(t.TempDir(), "1.38", "k8s/authn")
	written := override{"a", changedCost, json.RawMessage(`{"cost": 2}`)}
	if err := writeOverrides(path, []override{written}); err != nil {
		t.Fatal(err)
	}
	read, err := readOverrides(path)
	if err != nil || len(read) != 1 || read["a"].Change != changedCost || string(read["a"].Expect) != `{"cost": 2}` {
		t.Errorf("%v %v", read, err)
	}
	// A version that no longer differs has no file.
	if err := writeOverrides(path, nil); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(path); err != nil || len(files) != 0 {
		t.Errorf("%v %v", files, err)
	}
}
