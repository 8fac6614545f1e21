// Command celsuite writes the published CEL conformance suite as JSON, for the tests of navicert's expression language.
//
//	celsuite SUITE-DIRECTORY OUTPUT-DIRECTORY
//
// SUITE-DIRECTORY is `tests/simple/testdata` of the Go module cel.dev/expr. It is a module of its own, so that the version of the
// suite is not the version that Kubernetes links. The form of the output is described in conformance/README.md.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	"cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/prototext"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: celsuite SUITE-DIRECTORY OUTPUT-DIRECTORY")
		os.Exit(2)
	}
	if err := convertAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "celsuite:", err)
		os.Exit(1)
	}
}

func convertAll(suite, out string) error {
	files, err := filepath.Glob(filepath.Join(suite, "*.textproto"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no suite in %s", suite)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	tests, plain := 0, 0
	for _, path := range files {
		converted, err := convert(path)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		for _, each := range converted.Tests {
			tests++
			if !each.NeedsProto {
				plain++
			}
		}
		if err := write(filepath.Join(out, converted.File+".json"), converted); err != nil {
			return err
		}
	}
	fmt.Printf("%d tests in %d files, %d of them without protobuf messages\n", tests, len(files), plain)
	return nil
}

// file is one file of the suite.
type file struct {
	File        string     `json:"file"`
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Tests       []testCase `json:"tests"`
}

func convert(path string) (file, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".textproto")
	text, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	var read test.SimpleTestFile
	if err := prototext.Unmarshal(text, &read); err != nil {
		return file{}, err
	}
	out := file{File: name, Name: read.GetName(), Description: read.GetDescription(), Tests: []testCase{}}
	seen := map[string]int{}
	for _, section := range read.GetSection() {
		for _, each := range section.GetTest() {
			id := fmt.Sprintf("%s/%s/%s", name, section.GetName(), each.GetName())
			seen[id]++
			if seen[id] > 1 {
				id = fmt.Sprintf("%s#%d", id, seen[id])
			}
			converted, err := newCase(id, section.GetName(), each)
			if err != nil {
				return file{}, fmt.Errorf("%s: %w", id, err)
			}
			out.Tests = append(out.Tests, converted)
		}
	}
	return out, nil
}

func write(path string, value any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}
