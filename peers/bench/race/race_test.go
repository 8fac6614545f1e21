package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scripted gives these times round after round, and notes its turns.
func scripted(name string, order *[]string, times []float64) side {
	index := -1
	return func(string) (measurement, error) {
		index++
		*order = append(*order, name)
		return measurement{Nanoseconds: times[index], Allocations: times[index], There: true}, nil
	}
}

func repeat(value float64, count int) []float64 { return slices.Repeat([]float64{value}, count) }

func TestMedianOfPairedRatiosCountsAndTheWarmUpDoesNot(t *testing.T) {
	var order []string
	// The warm-up round would win; the machine then becomes slower from round to round, for both sides alike.
	golang, ours := []float64{1000}, []float64{1}
	for round := range rounds {
		golang, ours = append(golang, 20*float64(round+1)), append(ours, 10*float64(round+1))
	}
	got, err := measure("row", scripted("go", &order, golang), scripted("ours", &order, ours))
	if err != nil {
		t.Fatal(err)
	}
	if *got.ratios != (summary{2, 2, 2}) || got.sides[0].Nanoseconds != 120 || got.sides[1].Allocations != 60 {
		t.Errorf("got %+v, %+v", got.ratios, got.sides)
	}
	if start := strings.Join(order[:8], " "); start != "go ours ours go go ours ours go" || len(order) != 2*(warmUp+rounds) {
		t.Errorf("%d turns: %v", len(order), order)
	}
}

func TestClaimIsBrokenInTheMedianAlthoughTheBestRoundHolds(t *testing.T) {
	var order []string
	// Five rounds of eleven are fast enough for the keyring's claim.
	golang := slices.Concat([]float64{500}, repeat(600, rounds/2), repeat(400, rounds/2+1))
	got, err := measure("keyring-1000", scripted("go", &order, golang), scripted("ours", &order, repeat(1, warmUp+rounds)))
	if err != nil {
		t.Fatal(err)
	}
	if *got.ratios != (summary{400, 400, 600}) {
		t.Errorf("got %+v", *got.ratios)
	}
	if text, hold := verdicts(map[string]float64{"keyring-1000": got.ratios.median}); hold || !strings.Contains(text, "BROKEN") {
		t.Errorf("it holds:\n%s", text)
	}
}

func TestRowOfOneSideOnlyHasNoRatioAndAnUnsteadySideIsAnError(t *testing.T) {
	var order []string
	absent := func(string) (measurement, error) { return measurement{}, nil }
	got, err := measure("row", scripted("go", &order, repeat(5, warmUp+rounds)), absent)
	if err != nil || got.ratios != nil || !got.sides[0].There || got.sides[1].There {
		t.Errorf("got %+v, %v", got, err)
	}
	calls := 0
	unsteady := func(string) (measurement, error) {
		calls++
		return measurement{Nanoseconds: 1, There: calls%2 == 0}, nil
	}
	if _, err := measure("row", unsteady); err == nil {
		t.Error("a side that answers in some rounds only")
	}
}

func TestMedianOfAnEvenNumberIsBetweenTheMiddleTwo(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   summary
	}{{[]float64{3}, summary{3, 3, 3}}, {[]float64{9, 1, 2}, summary{2, 1, 9}}, {[]float64{4, 1, 3, 2}, summary{2.5, 1, 4}}} {
		if got := summarize(test.values); got != test.want {
			t.Errorf("%v: %+v", test.values, got)
		}
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
