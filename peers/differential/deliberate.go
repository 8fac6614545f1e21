package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"

	"sigs.k8s.io/yaml"
)

// deliberate is one named difference. Every pattern that is given has to match.
type deliberate struct {
	// Statement is the number of the specification's statement that wants it.
	Statement string `json:"statement"`
	Kind      string `json:"kind"`
	Why       string `json:"why"`
	// Difference is matched with the comparison's words, Reference and Navicert with the answers' JSON, Input with the line's.
	Difference pattern `json:"difference"`
	Reference  pattern `json:"reference"`
	Navicert   pattern `json:"navicert"`
	Input      pattern `json:"input"`
}

type pattern struct{ *regexp.Regexp }

// UnmarshalJSON implements json.Unmarshaler.
func (p *pattern) UnmarshalJSON(text []byte) error {
	var source string
	if err := json.Unmarshal(text, &source); err != nil {
		return err
	}
	var err error
	p.Regexp, err = regexp.Compile(source)
	return err
}

func (p pattern) matches(text string) bool { return p.Regexp == nil || p.MatchString(text) }

func readDeliberate(path, kind string) ([]deliberate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []deliberate
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out []deliberate
	for _, each := range all {
		if each.Statement == "" || each.Why == "" {
			return nil, fmt.Errorf("%s: an entry has no statement or no reason", path)
		}
		if each.Kind == kind {
			out = append(out, each)
		}
	}
	return out, nil
}

// match gives the statement that wants a difference, or nothing.
func match(expected []deliberate, question *question) string {
	reference, navicert, input := text(question.reference), text(question.navicert), text(question.input)
	for _, each := range expected {
		if each.Difference.matches(question.difference) && each.Reference.matches(reference) && each.Navicert.matches(navicert) && each.Input.matches(input) {
			return each.Statement
		}
	}
	return ""
}

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
