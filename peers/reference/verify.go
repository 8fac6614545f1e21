package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"navicert/peers/compare"
	"navicert/peers/decide"
	"sigs.k8s.io/yaml"
)

// vector is one line of a vector file.
type vector struct {
	ID              string          `json:"id"`
	Input           json.RawMessage `json:"input"`
	Expect          json.RawMessage `json:"expect"`
	UpstreamDiffers bool            `json:"upstream_differs"`
	UpstreamError   string          `json:"upstream_error"`
}

// knownDifference names lines on which this Kubernetes answers otherwise than the recorded one.
type knownDifference struct {
	Lines  []string `json:"lines"`
	Reason string   `json:"reason"`
}

// tally counts one file.
type tally struct {
	file                    string
	lines, agree, explained int
}

// verify replays every vector file and lists each line that differs. It succeeds if at least 99 of 100 lines of every file agree and
// the rest has a reason.
func verify(directory string) int {
	differences := os.Getenv("NAVICERT_KNOWN_DIFFERENCES")
	if differences == "" {
		differences = "known-differences.yaml"
	}
	reasons, err := readReasons(differences)
	if err != nil {
		return failed(err)
	}
	world, err := readWorld(directory)
	if err != nil {
		return failed(err)
	}
	status := 0
	var tallies []tally
	for _, kind := range decide.Kinds {
		count, err := replay(directory, kind, world, reasons)
		if err != nil {
			return failed(fmt.Errorf("%s: %w", kind.Name, err))
		}
		tallies = append(tallies, count)
	}
	outcomes, err := verifyOutcomes(directory, reasons)
	if err != nil {
		return failed(err)
	}
	tallies = append(tallies, outcomes...)
	for _, count := range tallies {
		if count.agree+count.explained < count.lines || count.agree*100 < count.lines*99 {
			status = 1
		}
	}
	printTallies(tallies)
	for _, id := range unused(reasons) {
		fmt.Printf("%s: listed as different, but agrees or is not there\n", id)
		status = 1
	}
	return status
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "reference:", err)
	return 1
}

// replay asks every line of a file. In a version that is not the base's, the version's own answers replace the file's.
func replay(directory string, kind decide.Kind, world world, reasons map[string]*reason) (tally, error) {
	count := tally{file: kind.Name + ".jsonl"}
	overrides := map[string]override{}
	if decide.Kube != baseVersion {
		var err error
		if overrides, err = readOverrides(overridePath(directory, decide.Kube, kind.Name)); err != nil {
			return count, err
		}
	}
	err := eachVector(filepath.Join(directory, count.file), func(line vector) error {
		if each, ok := overrides[line.ID]; ok {
			line.Expect, line.UpstreamDiffers = each.Expect, false
		}
		difference, err := ask(line, kind, world)
		if err != nil {
			return fmt.Errorf("%s: %w", line.ID, err)
		}
		count.note(line.ID, difference, reasons)
		return nil
	})
	return count, err
}

// note counts one line; a difference is printed with its reason.
func (count *tally) note(id, difference string, reasons map[string]*reason) {
	count.lines++
	if difference == "" {
		count.agree++
		return
	}
	why := "NOT EXPLAINED"
	if known, ok := reasons[id]; ok {
		known.used, why = true, known.text
		count.explained++
	}
	fmt.Printf("%s: %s: %s\n", id, difference, why)
}

func ask(line vector, kind decide.Kind, world world) (string, error) {
	input, err := world.inline(line.Input)
	if err != nil {
		return "", err
	}
	want, err := compare.Decode(line.Expect)
	if err != nil {
		return "", err
	}
	if line.UpstreamDiffers {
		// The line holds what a correct implementation gives; upstream is known to refuse.
		want = compare.Object{"outcome": "rejected"}
	}
	got, err := compare.Decode(decided(kind, input))
	if err != nil {
		return "", err
	}
	return compare.Answers(kind.Name, want, got), nil
}

// world is what authn-token lines refer to by name.
type world struct {
	configs map[string]json.RawMessage
	keys    map[string]json.RawMessage
}

func readWorld(directory string) (world, error) {
	var out world
	for name, target := range map[string]*map[string]json.RawMessage{
		"authn-configs.json": &out.configs,
		"authn-jwks.json":    &out.keys,
	} {
		text, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return out, err
		}
		if err := json.Unmarshal(text, target); err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// inline replaces references by what they refer to.
func (w world) inline(input json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(input, &members); err != nil {
		return nil, err
	}
	changed := false
	for member, table := range map[string]map[string]json.RawMessage{"config": w.configs, "jwks": w.keys} {
		reference, ok := members[member+"_ref"]
		if !ok {
			continue
		}
		var name string
		if err := json.Unmarshal(reference, &name); err != nil {
			return nil, err
		}
		if members[member], ok = table[name]; !ok {
			return nil, fmt.Errorf("no %s named `%s`", member, name)
		}
		changed = true
	}
	if !changed {
		return input, nil
	}
	return json.Marshal(members)
}

type reason struct {
	text string
	used bool
}

func readReasons(path string) (map[string]*reason, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var known []knownDifference
	if err := yaml.UnmarshalStrict(text, &known); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string]*reason{}
	for _, each := range known {
		for _, id := range each.Lines {
			out[id] = &reason{text: each.Reason}
		}
	}
	return out, nil
}

func unused(reasons map[string]*reason) []string {
	var out []string
	for id, each := range reasons {
		if !each.used {
			out = append(out, id)
		}
	}
	sort.Strings(out)
	return out
}

func printTallies(tallies []tally) {
	fmt.Printf("\n%-22s %6s %6s %8s %10s\n", "file", "lines", "agree", "of 100", "explained")
	var sum tally
	for _, count := range append(tallies, tally{}) {
		if count.file == "" {
			count = sum
			count.file = "all"
		}
		fmt.Printf("%-22s %6d %6d %8.2f %10d\n", count.file, count.lines, count.agree, 100*float64(count.agree)/float64(max(count.lines, 1)), count.explained)
		sum.lines += count.lines
		sum.agree += count.agree
		sum.explained += count.explained
	}
}
