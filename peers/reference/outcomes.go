package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"navicert/peers/compare"
	"navicert/peers/decide"
)

// The recorded outcomes of expressions, below the vectors.
const (
	generatedFile = "k8s/generated-1.37.jsonl"
	authnFile     = "k8s/authn-1.37.json"
)

// authnDocument is claims, a user, and expressions over them.
type authnDocument struct {
	About  string          `json:"about"`
	Claims json.RawMessage `json:"claims"`
	User   json.RawMessage `json:"user"`
	Tests  []authnTest     `json:"tests"`
}

type authnTest struct {
	ID         string          `json:"id"`
	Env        string          `json:"env"`
	Expression json.RawMessage `json:"expr"`
	Expect     json.RawMessage `json:"expect"`
}

func readAuthn(directory string) (authnDocument, error) {
	var out authnDocument
	text, err := os.ReadFile(filepath.Join(directory, authnFile))
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// outcome asks an expression of the document anew.
func (d authnDocument) outcome(test authnTest) ([]byte, error) {
	var expression string
	if err := json.Unmarshal(test.Expression, &expression); err != nil {
		return nil, err
	}
	var person decide.User
	if err := json.Unmarshal(d.User, &person); err != nil {
		return nil, err
	}
	outcome, err := decide.AuthenticationExpression(expression, test.Env == "user", d.Claims, person)
	return marshal(outcome), err
}

// expression is that of a line, as the line spells it.
func expressionOf(line []byte) (json.RawMessage, error) {
	var members struct {
		Expression json.RawMessage `json:"expr"`
	}
	err := json.Unmarshal(line, &members)
	return members.Expression, err
}

// plainOutcome evaluates an expression over the document's claims as a plain map.
func (d authnDocument) plainOutcome(expression json.RawMessage) ([]byte, error) {
	var text string
	if err := json.Unmarshal(expression, &text); err != nil {
		return nil, err
	}
	var claims map[string]any
	if err := json.Unmarshal(d.Claims, &claims); err != nil {
		return nil, err
	}
	decided, err := decide.PlainExpression(text, claims)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	return marshal(decided), nil
}

// attempts is how often an expression is evaluated until its outcome is the recorded one: where its cost or its value depends on the order
// in which Go iterates over a map, it is another in every run.
const attempts = 50

// settled is after how many equal outcomes in a row an expression counts as one that does not depend on it.
const settled = 8

// streak counts equal answers in a row.
type streak struct {
	last  []byte
	count int
}

// settles says whether the answers no longer vary.
func (s *streak) settles(answer []byte) bool {
	if !bytes.Equal(answer, s.last) {
		s.last, s.count = answer, 0
	}
	s.count++
	return s.count >= settled
}

// again evaluates anew and says how the outcome differs from the recorded one, preferring one that differs in nothing but its cost.
func again(want []byte, evaluate func() ([]byte, error)) (outcome []byte, difference string, err error) {
	found := false
	var same streak
	for range attempts {
		evaluated, err := evaluate()
		if err != nil {
			return nil, "", err
		}
		another, onlyCost, err := compareOutcomes(want, evaluated)
		if err != nil {
			return nil, "", err
		}
		if another == "" {
			return evaluated, "", nil
		}
		if outcome == nil || onlyCost && !found {
			outcome, difference, found = evaluated, another, onlyCost
		}
		if same.settles(evaluated) {
			break
		}
	}
	return outcome, difference, nil
}

// compareOutcomes says how two outcomes differ, and whether in nothing but their cost.
func compareOutcomes(want, got []byte) (difference string, onlyCost bool, err error) {
	wanted, err := compare.Decode(want)
	if err != nil {
		return "", false, err
	}
	given, err := compare.Decode(got)
	if err != nil {
		return "", false, err
	}
	if difference := compare.Outcomes(wanted, given); difference != "" {
		return difference, false, nil
	}
	difference = compare.Costs(wanted, given)
	return difference, difference != "", nil
}

// outcomeTest is an expression of one of the two files, with its recorded outcome and the way to evaluate it anew.
type outcomeTest struct {
	id       string
	want     []byte
	evaluate func() ([]byte, error)
}

// generatedTests are those of the generated file. An expression is its own name.
func (d authnDocument) generatedTests(directory string) ([]outcomeTest, error) {
	text, err := os.ReadFile(filepath.Join(directory, generatedFile))
	if err != nil {
		return nil, err
	}
	var out []outcomeTest
	for line := range bytes.Lines(text) {
		expression, err := expressionOf(line)
		if err != nil {
			return nil, err
		}
		out = append(out, outcomeTest{string(expression), bytes.TrimSpace(line), func() ([]byte, error) { return d.plainOutcome(expression) }})
	}
	return out, nil
}

// authnTests are those of the document itself.
func (d authnDocument) authnTests() []outcomeTest {
	var out []outcomeTest
	for _, test := range d.Tests {
		out = append(out, outcomeTest{test.ID, test.Expect, func() ([]byte, error) { return d.outcome(test) }})
	}
	return out
}

// recordOutcomes records the generated and the authentication expressions.
func recordOutcomes(directory string) ([]change, error) {
	document, err := readAuthn(directory)
	if err != nil {
		return nil, err
	}
	generated, err := recordFile(filepath.Join(directory, generatedFile), func(line []byte) ([]byte, string, error) {
		expression, err := expressionOf(line)
		if err != nil {
			return nil, "", err
		}
		outcome, difference, err := again(line, func() ([]byte, error) { return document.plainOutcome(expression) })
		if err != nil || difference == "" {
			return line, "", err
		}
		text := append(fmt.Appendf(nil, `{"expr": %s, `, expression), spaced(outcome)[1:]...)
		return text, fmt.Sprintf("%s: %s", expression, difference), nil
	})
	if err != nil {
		return nil, err
	}
	authn := change{file: filepath.Base(authnFile)}
	for index, test := range document.authnTests() {
		authn.lines++
		outcome, difference, err := again(test.want, test.evaluate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", test.id, err)
		}
		if difference != "" {
			authn.changed++
			fmt.Printf("%s: %s\n", test.id, difference)
			document.Tests[index].Expect = outcome
		}
	}
	if authn.changed > 0 {
		err = writeIndented(filepath.Join(directory, authnFile), document)
	}
	return []change{generated, authn}, err
}

// outcomeSets names the two files as kinds of their own.
func outcomeSets(directory string) (map[string][]outcomeTest, error) {
	document, err := readAuthn(directory)
	if err != nil {
		return nil, err
	}
	generated, err := document.generatedTests(directory)
	return map[string][]outcomeTest{"k8s/generated": generated, "k8s/authn": document.authnTests()}, err
}

// overridesOfOutcomes evaluates every expression in this version and keeps the outcomes that differ from the base's.
func overridesOfOutcomes(tests []outcomeTest) (counts, []override) {
	var count counts
	var out []override
	for _, test := range tests {
		count.Asked++
		outcome, difference, err := again(test.want, test.evaluate)
		if err != nil {
			outcome, difference = marshal(map[string]string{"fault": err.Error()}), "fault"
		}
		if difference == "" {
			continue
		}
		change := changedDecision
		if _, onlyCost, failed := compareOutcomes(test.want, outcome); failed == nil && onlyCost {
			change = changedCost
		}
		count.add(change)
		out = append(out, override{test.id, change, outcome})
	}
	return count, out
}

// verifyOutcomes replays the same and counts agreement.
func verifyOutcomes(directory string, reasons map[string]*reason) ([]tally, error) {
	sets, err := outcomeSets(directory)
	if err != nil {
		return nil, err
	}
	var out []tally
	for _, name := range []string{"k8s/generated", "k8s/authn"} {
		count := tally{file: name}
		overrides := map[string]override{}
		if decide.Kube != baseVersion {
			if overrides, err = readOverrides(overridePath(directory, decide.Kube, name)); err != nil {
				return nil, err
			}
		}
		for _, test := range sets[name] {
			if each, ok := overrides[test.id]; ok {
				test.want = each.Expect
			}
			_, difference, err := again(test.want, test.evaluate)
			if err != nil {
				if difference = "fault: " + err.Error(); bytes.Contains(test.want, []byte(`"fault"`)) {
					difference = ""
				}
			}
			count.note(test.id, difference, reasons)
		}
		out = append(out, count)
	}
	return out, nil
}

// suite records what Kubernetes makes of the published CEL suite in a directory, for the tests that need no protobuf messages.
func suite(arguments []string) int {
	if len(arguments) != 1 {
		return usage()
	}
	directory := arguments[0]
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil {
		return failed(err)
	}
	outcomes := map[string]decide.Outcome{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return failed(err)
		}
		var file struct {
			Tests []decide.SuiteTest `json:"tests"`
		}
		if err := json.Unmarshal(text, &file); err != nil {
			return failed(fmt.Errorf("%s: %w", filepath.Base(path), err))
		}
		for _, test := range file.Tests {
			if test.NeedsProto {
				continue
			}
			if outcomes[test.ID], err = decide.Suite(test); err != nil {
				return failed(fmt.Errorf("%s: %w", test.ID, err))
			}
		}
	}
	if len(outcomes) == 0 {
		return failed(fmt.Errorf("no CEL suite in %s", directory))
	}
	target := filepath.Join(directory, "k8s", "outcomes-"+decide.Kube+".json")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return failed(err)
	}
	document := map[string]any{"about": "What Kubernetes' base environment of " + decide.Kube + " makes of every test without protobuf messages.", "outcomes": outcomes}
	if err := writeIndented(target, document); err != nil {
		return failed(err)
	}
	fmt.Printf("%d outcomes in %s\n", len(outcomes), target)
	return 0
}

// compareSuite lists the outcomes of two recordings that differ.
func compareSuite(arguments []string) int {
	if len(arguments) != 2 {
		return usage()
	}
	var recordings [2]struct {
		Outcomes map[string]json.RawMessage `json:"outcomes"`
	}
	for index, path := range arguments {
		text, err := os.ReadFile(path)
		if err != nil {
			return failed(err)
		}
		if err := json.Unmarshal(text, &recordings[index]); err != nil {
			return failed(err)
		}
	}
	status := 0
	for id, want := range recordings[0].Outcomes {
		got, ok := recordings[1].Outcomes[id]
		difference := "missing"
		if ok {
			var err error
			if difference, _, err = compareOutcomes(want, got); err != nil {
				return failed(err)
			}
		}
		if difference != "" {
			fmt.Printf("%s: %s\n", id, difference)
			status = 1
		}
	}
	return status
}

func writeIndented(path string, value any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}
