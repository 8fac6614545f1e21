package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"navicert/peers/compare"
	"navicert/peers/decide"
)

// sides are the two that are asked.
type sides struct {
	kind  decide.Kind
	other answerer
	// strict compares also what the vectors call informative: the cost and the words of the checker.
	strict bool
}

// answerer fills in the other side's answers to questions, which it gets as lines too.
type answerer func(questions []*question, lines []byte) error

// findOther gives the command of the other side, or says plainly why there is none.
func findOther(settings settings, kind decide.Kind) ([]string, error) {
	if settings.against != "" {
		return strings.Fields(settings.against), nil
	}
	if kind.Navicert == nil {
		return nil, fmt.Errorf("there is no navicert command for %s", kind.Name)
	}
	if _, err := os.Stat(settings.navicert); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no navicert binary at `%s`; build it (cargo build --release -p navicert), or name another with NAVICERT=PATH", settings.navicert)
	}
	verb := slices.Clone(kind.Navicert)
	if settings.kubeVersion != "" && kind.Versioned() {
		verb = append(verb, "--kube-version", settings.kubeVersion)
	}
	command := append([]string{settings.navicert}, verb...)
	// With nothing on standard input a command that exists says nothing and succeeds.
	probe := exec.Command(command[0], command[1:]...)
	if text, err := probe.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		return nil, fmt.Errorf("this navicert has no `navicert %s` yet; nothing was compared (%v: %s)", strings.Join(verb, " "), err, first)
	}
	return command, nil
}

// question is one generated line with what both sides said.
type question struct {
	index      int
	tree       any
	input      map[string]any
	reference  compare.Object
	navicert   compare.Object
	difference string
}

// ask puts questions to both sides and fills in their answers.
func (s sides) ask(questions []*question) error {
	var lines bytes.Buffer
	for index, question := range questions {
		members := map[string]any{"id": index}
		for name, value := range question.input {
			members[name] = value
		}
		line, err := json.Marshal(members)
		if err != nil {
			return err
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	answers := make(chan error, 1)
	text := lines.Bytes()
	go func() { answers <- s.other(questions, text) }()
	for _, question := range questions {
		if err := s.askReference(question); err != nil {
			return err
		}
	}
	if err := <-answers; err != nil {
		return err
	}
	for _, question := range questions {
		question.difference = compare.Answers(s.kind.Name, question.reference, question.navicert)
		if s.strict && question.difference == "" {
			question.difference = compare.Details(s.kind.Name, question.reference, question.navicert)
		}
	}
	return nil
}

func (s sides) askReference(question *question) error {
	line, err := json.Marshal(question.input)
	if err != nil {
		return err
	}
	decision, fault := s.kind.Decide(line)
	if fault != nil {
		decision = map[string]string{"fault": fault.Error()}
	}
	text, err := json.Marshal(decision)
	if err != nil {
		return err
	}
	question.reference, err = compare.Decode(text)
	return err
}

// program asks a command. It runs once for all lines, so that it matters neither how it buffers nor how long it takes to start.
func program(words []string) answerer {
	return func(questions []*question, lines []byte) error { return askProgram(words, questions, lines) }
}

func askProgram(words []string, questions []*question, lines []byte) error {
	command := exec.Command(words[0], words[1:]...)
	command.Stdin = bytes.NewReader(lines)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, stderr.String())
	}
	answers := bufio.NewScanner(bytes.NewReader(stdout))
	answers.Buffer(nil, 64<<20)
	count := 0
	for answers.Scan() {
		if count == len(questions) {
			return errors.New("the other side gave more answers than it got lines")
		}
		answer, err := compare.Decode(answers.Bytes())
		if err != nil {
			return fmt.Errorf("an answer is no JSON object: %w", err)
		}
		if id, _ := answer["id"].(json.Number); id.String() != fmt.Sprint(count) {
			return fmt.Errorf("answer %d has id %v", count, answer["id"])
		}
		questions[count].navicert = answer
		count++
	}
	if count < len(questions) {
		return fmt.Errorf("the other side gave %d answers to %d lines: %s", count, len(questions), stderr.String())
	}
	return answers.Err()
}
