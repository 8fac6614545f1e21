package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheBestOfTheRoundsCountsAndSidesTakeTurns(t *testing.T) {
	var order []string
	times := []float64{30, 10, 20}
	counting := func(name string, there bool) side {
		index := -1
		return func(string) (measurement, error) {
			index++
			order = append(order, name)
			return measurement{Nanoseconds: times[index], There: there}, nil
		}
	}
	got, err := best("row", 3, counting("go", true), counting("ours", false))
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Nanoseconds != 10 || got[1].There || strings.Join(order, " ") != "go ours go ours go ours" {
		t.Errorf("got %+v in order %v", got, order)
	}
}

func TestABenchmarkLineOfGoIsRead(t *testing.T) {
	got, err := parseGo("goos: linux\nBenchmarkRow/load-1 \t 100\t 3029619 ns/op\t 174.7 KiB-each\t 1079668 B/op\t 10999 allocs/op\nPASS\n")
	if err != nil || got != (measurement{3029619, 10999, 1079668, true}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTheTimeOnTheCPUCountsWhereThereIsOne(t *testing.T) {
	got, err := parseGo("BenchmarkRow/cel-map \t 100\t 9 ns/op\t 7 cpu-ns/op\t 5 B/op\t 3 allocs/op\n")
	if err != nil || got != (measurement{7, 3, 5, true}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOurSideIsADashUntilItPrintsTheRow(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ours")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho a table\n[ \"$2\" = known ] && echo '{\"row\":\"known\",\"ns\":5,\"allocations\":1,\"bytes\":2}'\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ours := ourSide(program)
	for row, want := range map[string]measurement{"known": {5, 1, 2, true}, "unknown": {}} {
		if got, err := ours(row); err != nil || got != want {
			t.Errorf("%s: %+v, %v", row, got, err)
		}
	}
	if got, err := ourSide("/nonexistent/navicert-bench")("known"); err != nil || got.There {
		t.Errorf("a missing program: %+v, %v", got, err)
	}
}

func TestAClaimHoldsOnlyIfEveryRowAndTheMeanDo(t *testing.T) {
	ratios := map[string]float64{"keyring-1000": 500}
	for index, row := range celRows() {
		ratios[row] = []float64{7, 15}[index%2]
	}
	text, hold := verdicts(ratios)
	if want := []string{"10.2 × holds", "7.0 × holds", "— not measured", "— not measured", "— not measured", "500.0 × holds"}; !hold || !slices.Equal(judged(text), want) {
		t.Errorf("everything holds that was measured: %v\n%s", hold, text)
	}
	for index, row := range celRows() {
		ratios[row] = []float64{6.9, 20}[index%2]
	}
	if text, hold := verdicts(ratios); hold || judged(text)[0] != "11.7 × holds" || judged(text)[1] != "6.9 × BROKEN" {
		t.Errorf("the mean holds, the least does not: %v\n%s", hold, text)
	}
	ratios["keyring-1000"] = 499
	for _, row := range celRows() {
		ratios[row] = 9
	}
	if text, hold := verdicts(ratios); hold || strings.Count(text, "BROKEN") != 2 {
		t.Errorf("the mean is too small, and the keyring too slow: %v\n%s", hold, text)
	}
}

// judged gives the last two columns of every claim.
func judged(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(out) > 0 || strings.Contains(line, "≥") {
			out = append(out, strings.TrimSpace(cells[3])+" "+strings.TrimSpace(cells[4]))
		}
	}
	return out
}
