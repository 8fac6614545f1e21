package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"navicert/peers/decide"
)

// record asks every question of the vector files anew and replaces the answers that differ by the rules of the README. A line whose
// answer agrees stays as it is, byte for byte, so that a recording without changes changes no file. A line with `"expect": null` is a
// new question and gets its answer. In a version that is not the base's, the differences go to that version's directory.
func record(directory string) int {
	world, err := readWorld(directory)
	if err != nil {
		return failed(err)
	}
	if decide.Kube != baseVersion {
		if err := recordVersion(directory, world); err != nil {
			return failed(err)
		}
		return 0
	}
	var counts []change
	for _, kind := range decide.Kinds {
		count, err := recordFile(filepath.Join(directory, kind.Name+".jsonl"), func(line []byte) ([]byte, string, error) {
			return recordVector(line, kind, world)
		})
		if err != nil {
			return failed(err)
		}
		counts = append(counts, count)
	}
	outcomes, err := recordOutcomes(directory)
	if err != nil {
		return failed(err)
	}
	printChanges(append(counts, outcomes...))
	if err := recordVersion(directory, world); err != nil {
		return failed(err)
	}
	return 0
}

// change counts one file.
type change struct {
	file           string
	lines, changed int
}

// recordFile gives every line of a file to `again`, which answers with the new line and what has changed.
func recordFile(path string, again func(line []byte) ([]byte, string, error)) (change, error) {
	count := change{file: filepath.Base(path)}
	file, err := os.Open(path)
	if err != nil {
		return count, err
	}
	defer file.Close()
	var out bytes.Buffer
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		count.lines++
		line, difference, err := again(lines.Bytes())
		if err != nil {
			return count, fmt.Errorf("%s, line %d: %w", count.file, count.lines, err)
		}
		if difference != "" {
			count.changed++
			fmt.Println(difference)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	if err := lines.Err(); err != nil {
		return count, err
	}
	if count.changed == 0 {
		return count, nil
	}
	return count, os.WriteFile(path, out.Bytes(), 0o644)
}

func recordVector(text []byte, kind decide.Kind, world world) ([]byte, string, error) {
	var line vector
	if err := json.Unmarshal(text, &line); err != nil {
		return nil, "", err
	}
	fresh := bytes.Equal(line.Expect, []byte("null"))
	difference := "new"
	if !fresh {
		var err error
		if difference, err = ask(line, kind, world); err != nil || difference == "" {
			return text, "", err
		}
	}
	if line.UpstreamDiffers {
		return nil, "", fmt.Errorf("%s: upstream no longer refuses it (%s): remove `upstream_differs` and the answer by hand", line.ID, difference)
	}
	input, err := world.inline(line.Input)
	if err != nil {
		return nil, "", err
	}
	decision, err := kind.Decide(input)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", line.ID, err)
	}
	replaced, err := replaceMember(text, "expect", line.Expect, spaced(marshal(decision)))
	return replaced, line.ID + ": " + difference, err
}

// replaceMember changes one member of an object in its text; the others keep their spelling.
func replaceMember(text []byte, name string, old, value []byte) ([]byte, error) {
	before := append(fmt.Appendf(nil, "%q: ", name), old...)
	if bytes.Count(text, before) != 1 {
		return nil, fmt.Errorf("`%s` is not to be found in its line once", name)
	}
	return bytes.Replace(text, before, append(fmt.Appendf(nil, "%q: ", name), value...), 1), nil
}

// spaced puts a space after every comma and colon outside strings, as the vector files have it.
func spaced(compact []byte) []byte {
	var out bytes.Buffer
	quoted, escaped := false, false
	for _, symbol := range compact {
		out.WriteByte(symbol)
		switch {
		case escaped:
			escaped = false
		case symbol == '\\':
			escaped = quoted
		case symbol == '"':
			quoted = !quoted
		case !quoted && (symbol == ',' || symbol == ':'):
			out.WriteByte(' ')
		}
	}
	return out.Bytes()
}

func printChanges(counts []change) {
	fmt.Printf("\n%-24s %6s %8s\n", "file", "lines", "changed")
	sum := change{file: "all"}
	for _, count := range counts {
		fmt.Printf("%-24s %6d %8d\n", count.file, count.lines, count.changed)
		sum.lines += count.lines
		sum.changed += count.changed
	}
	fmt.Printf("%-24s %6d %8d\n", sum.file, sum.lines, sum.changed)
}
