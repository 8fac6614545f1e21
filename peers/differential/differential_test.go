package main

import (
	"strings"
	"testing"

	"navicert/peers/decide"
)

func TestEveryQuestionRendersAndComesAgainWithItsSeed(t *testing.T) {
	for name, generator := range generators {
		for index := range 300 {
			tree := generator.tree(newRandom(7, index))
			if _, ok := generator.render(tree); !ok {
				t.Errorf("%s: question %d does not render", name, index)
			}
			if again := generator.tree(newRandom(7, index)); text(again) != text(tree) {
				t.Errorf("%s: question %d differs the second time", name, index)
			}
		}
	}
}

func TestADisagreementIsShrunkToItsCause(t *testing.T) {
	kind, _ := decide.Find("image-match")
	// The other side is right except about images with an `x`.
	var liar answerer = func(questions []*question, _ []byte) error {
		for _, question := range questions {
			asked := sides{kind: kind}
			copied := *question
			if err := asked.askReference(&copied); err != nil {
				return err
			}
			question.navicert = copied.reference
			if image, _ := question.input["image"].(string); strings.Contains(image, "x") {
				question.navicert["match"] = copied.reference["match"] != true
			}
		}
		return nil
	}
	found, err := search(settings{kind: "image-match", count: 500, seed: 7, show: 1}, generators["image-match"], sides{kind: kind, other: liar}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if found.disagreements == 0 || len(found.shown) != 1 {
		t.Fatalf("found %+v", found)
	}
	if line := string(found.shown[0].line); !strings.Contains(line, `"input":{"image":"x"}`) {
		t.Errorf("shrunk to %s", line)
	}
}

func TestADeliberateDifferenceIsCountedByItsStatement(t *testing.T) {
	kind, _ := decide.Find("image-match")
	var other answerer = func(questions []*question, _ []byte) error {
		for _, question := range questions {
			question.navicert = map[string]any{"match": "perhaps"}
		}
		return nil
	}
	all, err := readDeliberate("testdata/deliberate.yaml", "image-match")
	if err != nil {
		t.Fatal(err)
	}
	found, err := search(settings{kind: "image-match", count: 20, seed: 7, show: 1}, generators["image-match"], sides{kind: kind, other: other}, all)
	if err != nil {
		t.Fatal(err)
	}
	if found.disagreements != 0 || found.deliberate["I1"] != 20 {
		t.Errorf("found %+v", found)
	}
}

func TestTheProjectsOwnListIsWellFormed(t *testing.T) {
	for _, kind := range decide.Kinds {
		if _, err := readDeliberate("../deliberate.yaml", kind.Name); err != nil {
			t.Error(err)
		}
	}
}
