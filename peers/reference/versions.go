package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"navicert/peers/decide"
)

// baseVersion is the version whose answers the vector files themselves hold.
const baseVersion = "1.37"

// versionsFile lists what was asked of each version and how many answers differ from the base's.
const versionsFile = "versions.json"

// versionIndex is the content of that file.
type versionIndex struct {
	Base     string                     `json:"base"`
	Versions map[string]recordedVersion `json:"versions"`
}

// recordedVersion is one recording.
type recordedVersion struct {
	// Modules are the versions of the published modules that answered, Go the toolchain that built them.
	Modules map[string]string `json:"modules"`
	Go      string            `json:"go"`
	Kinds   map[string]counts `json:"kinds"`
}

// counts is how many questions of a kind were asked, and how many answers differ from the base's in what.
type counts struct {
	Asked  int `json:"asked"`
	Differ int `json:"differ"`
	Cost   int `json:"cost"`
	Text   int `json:"text"`
}

func (c *counts) add(change string) {
	switch change {
	case changedDecision:
		c.Differ++
	case changedCost:
		c.Cost++
	default:
		c.Text++
	}
}

// recordVersion asks this version every question of the base, writes the answers that differ and notes the counts, also where there
// are none. Of the base itself it writes no answers.
func recordVersion(directory string, world world) error {
	recorded := recordedVersion{Modules: decide.Modules(), Go: runtime.Version(), Kinds: map[string]counts{}}
	var names []string
	note := func(name string, count counts, overrides []override) error {
		names = append(names, name)
		recorded.Kinds[name] = count
		for _, each := range overrides {
			fmt.Printf("%s: %s: %s\n", name, each.ID, each.Change)
		}
		if decide.Kube == baseVersion {
			return nil
		}
		return writeOverrides(overridePath(directory, decide.Kube, name), overrides)
	}
	for _, kind := range decide.Kinds {
		count, overrides, err := recordOverrides(directory, kind, world)
		if err == nil {
			err = note(kind.Name, count, overrides)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", kind.Name, err)
		}
	}
	sets, err := outcomeSets(directory)
	if err != nil {
		return err
	}
	for _, name := range []string{"k8s/generated", "k8s/authn"} {
		count, overrides := overridesOfOutcomes(sets[name])
		if err := note(name, count, overrides); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	printVersion(names, recorded)
	return recorded.write(directory)
}

// write puts the recording into the index.
func (r recordedVersion) write(directory string) error {
	path := filepath.Join(directory, versionsFile)
	index := versionIndex{Versions: map[string]recordedVersion{}}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	index.Base = baseVersion
	index.Versions[decide.Kube] = r
	return writeIndented(path, index)
}

func printVersion(names []string, recorded recordedVersion) {
	fmt.Printf("\nKubernetes %s compared with %s:\n%-16s %6s %9s %6s %6s\n", decide.Kube, baseVersion, "kind", "asked", "decisions", "costs", "texts")
	for _, name := range names {
		count := recorded.Kinds[name]
		fmt.Printf("%-16s %6d %9d %6d %6d\n", name, count.Asked, count.Differ, count.Cost, count.Text)
	}
	if !slices.Contains(names, "image-match") {
		fmt.Println("The kinds of images are left out: k8s.io/kubernetes is not published for this version.")
	}
}
