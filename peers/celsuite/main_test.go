package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const suiteText = `
name: "sample"
section {
  name: "s"
  test { name: "t" expr: "x + 1" type_env { name: "x" ident { type { primitive: INT64 } } } bindings { key: "x" value { value { int64_value: 2 } } } value { int64_value: 3 } }
  test { name: "t" expr: "true" }
  test { name: "e" expr: "1 / 0" eval_error { errors { message: "zero" } } }
  test { name: "m" expr: "google.protobuf.Int64Value{value: 1}" value { int64_value: 1 } }
  test { name: "d" expr: "type(timestamp(0)) == google.protobuf.Timestamp" value { bool_value: true } }
  test { name: "l" expr: "[x]" check_only: true typed_result { deduced_type { list_type { elem_type { type_param: "T" } } } } }
}
`

func TestSuiteIsConverted(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(in, "sample.textproto"), []byte(suiteText), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := convertAll(in, out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "sample.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read file
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	want := []struct {
		id, expect string
		needsProto bool
	}{
		{"sample/s/t", `{"value":{"int":"3"}}`, false},
		{"sample/s/t#2", `{"value":{"bool":true}}`, false},
		{"sample/s/e", `{"error":["zero"]}`, false},
		{"sample/s/m", `{"value":{"int":"1"}}`, true},
		{"sample/s/d", `{"value":{"bool":true}}`, false},
		{"sample/s/l", `{"type":"list(~T)"}`, false},
	}
	if len(read.Tests) != len(want) {
		t.Fatalf("%d tests", len(read.Tests))
	}
	for index, test := range read.Tests {
		expect, err := json.Marshal(test.Expect)
		if err != nil {
			t.Fatal(err)
		}
		if test.ID != want[index].id || string(expect) != want[index].expect || test.NeedsProto != want[index].needsProto {
			t.Errorf("%s %s %v instead of %v", test.ID, expect, test.NeedsProto, want[index])
		}
	}
	if first := read.Tests[0]; first.TypeEnv[0].Type != "int" || first.Bindings["x"]["int"] != "2" {
		t.Errorf("%+v", first)
	}
}

func TestDirectoryWithoutSuiteIsAnError(t *testing.T) {
	if err := convertAll(t.TempDir(), t.TempDir()); err == nil {
		t.Error("an empty directory is no suite")
	}
}
