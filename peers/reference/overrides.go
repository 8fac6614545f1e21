package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"navicert/peers/compare"
	"navicert/peers/decide"
)

// The vector files hold the answers of one version, the base. For another version a directory of its own has the lines on which
// it answers otherwise.

// override is a line whose answer differs from the base's.
type override struct {
	ID     string          `json:"id"`
	Change string          `json:"change"`
	Expect json.RawMessage `json:"expect"`
}

// What differs between the answers of two versions, the greatest difference first.
const (
	changedDecision = "decision" // a member that is compared
	changedCost     = "cost"     // only the cost of an expression
	changedText     = "text"     // only raw texts: errors, messages, details of authn-config, authn-token and cel
)

// overridePath is the file of a version for a kind.
func overridePath(directory, version, kind string) string {
	return filepath.Join(directory, version, kind+".jsonl")
}

// readOverrides gives a version's answers by the line's id; none if there is no file.
func readOverrides(path string) (map[string]override, error) {
	out := map[string]override{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var each override
		if err := json.Unmarshal(line, &each); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out[each.ID] = each
	}
	return out, nil
}

// writeOverrides replaces the file of a version for a kind; a version without differences has none.
func writeOverrides(path string, overrides []override) error {
	if len(overrides) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, each := range overrides {
		out.Write(spaced(marshal(each)))
		out.WriteByte('\n')
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// recordOverrides asks every line of a kind and keeps the answers that differ from the base's.
func recordOverrides(directory string, kind decide.Kind, world world) (counts, []override, error) {
	var count counts
	var out []override
	err := eachVector(filepath.Join(directory, kind.Name+".jsonl"), func(line vector) error {
		if !line.recorded() {
			return fmt.Errorf("%s: no answer of %s yet: run `make vectors` first", line.ID, baseVersion)
		}
		count.Asked++
		each, err := line.difference(kind, world)
		if err != nil {
			return fmt.Errorf("%s: %w", line.ID, err)
		}
		if each != nil {
			count.add(each.Change)
			out = append(out, *each)
		}
		return nil
	})
	return count, out, err
}

// difference gives the override that a line needs in this version, or nil.
func (line vector) difference(kind decide.Kind, world world) (*override, error) {
	input, err := world.inline(line.Input)
	if err != nil {
		return nil, err
	}
	want, err := line.upstream()
	if err != nil {
		return nil, err
	}
	var last *override
	var same streak
	for range repetitions(kind.Name) {
		got := decided(kind, input)
		given, err := compare.Decode(got)
		if err != nil {
			return nil, err
		}
		change := changeOf(kind.Name, want, given)
		if change == "" {
			return nil, nil
		}
		if last == nil || last.Change == changedDecision {
			last = &override{line.ID, change, got}
		}
		if same.settles(got) {
			break
		}
	}
	return last, nil
}

// repetitions is how often a question is asked until it gets the recorded answer: costs, texts and values may depend on the order of a
// map.
func repetitions(kind string) int {
	switch kind {
	case "cel", "authn-token":
		return attempts
	}
	return 2
}

// upstream is what the base version said: on a line that is marked, not what the line expects.
func (line vector) upstream() (compare.Object, error) {
	if line.UpstreamDiffers {
		return compare.Object{"outcome": "rejected", "error": line.UpstreamError}, nil
	}
	return compare.Decode(line.Expect)
}

// changeOf says what differs between two answers to one question.
func changeOf(kind string, want, got compare.Object) string {
	if compare.Answers(kind, want, got) != "" {
		return changedDecision
	}
	if kind == "cel" && compare.Costs(want, got) != "" {
		return changedCost
	}
	if slices.Contains(kindsWithTexts, kind) && !compare.Same(texts(want), texts(got)) {
		return changedText
	}
	return ""
}

// kindsWithTexts are the kinds whose texts an operator sees: in the server's log and when a configuration is refused. The texts of the others name
// files and programs of the harness.
var kindsWithTexts = []string{"authn-config", "authn-token", "cel"}

// texts are the members of an answer that are not compared.
func texts(answer compare.Object) any {
	out := compare.Object{}
	for _, name := range []string{"error", "compile_error", "errors", "stage"} {
		if value, ok := answer[name]; ok && value != nil {
			out[name] = value
		}
	}
	messages, _ := answer["messages"].([]any)
	for index, each := range messages {
		// Which scheme does not have a kind depends on the program.
		out[fmt.Sprint("message ", index)], _, _ = strings.Cut(fmt.Sprint(each), " in scheme ")
	}
	return out
}

// recorded says whether a line has an answer; a new question has none yet.
func (line vector) recorded() bool { return !bytes.Equal(line.Expect, []byte("null")) }

// decided is the answer of this version, a fault included.
func decided(kind decide.Kind, input json.RawMessage) []byte {
	decision, fault := kind.Decide(input)
	if fault != nil {
		// Of an aggregate only the first line tells.
		text, _, _ := strings.Cut(fault.Error(), "\n")
		decision = map[string]string{"fault": text}
	}
	return marshal(decision)
}

// eachVector reads the lines of a vector file.
func eachVector(path string, use func(vector) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line vector
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		if err := use(line); err != nil {
			return err
		}
	}
	return lines.Err()
}
