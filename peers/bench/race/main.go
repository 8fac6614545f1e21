// Command race runs Kubernetes' benchmarks and ours row by row, turn by turn, and prints one table of ratios. Of each row the
// median of a fixed number of rounds counts, and a claim that the median does not bear out is broken.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// measurement is one side's figure for a row.
type measurement struct {
	Nanoseconds float64 `json:"ns"`
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
	// There is false if the side has no such row.
	There bool `json:"-"`
}

// side measures one row once.
type side func(row string) (measurement, error)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "race:", err)
		os.Exit(1)
	}
}

func run() error {
	benchmarks := flag.String("bench", "", "the compiled benchmarks")
	inputs := flag.String("inputs", "", "directory of the race's inputs")
	plugin := flag.String("plugin", "", "the exec plugin of the race")
	navicert := flag.String("navicert", "", "our benchmarks, for example target/release/navicert-bench")
	length := flag.String("time", "100ms", "how long Go measures a row in a round")
	only := flag.String("row", "", "only rows whose name contains this")
	flag.Parse()

	golang := goSide(*benchmarks, *inputs, *plugin, *length)
	ours := ourSide(*navicert)
	floor := opensslSide()
	fmt.Fprintf(os.Stderr, "load average: %s\n", loadAverage())
	table := newTable()
	for _, row := range rows {
		if !strings.Contains(row.name, *only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "racing: %s\n", row.name)
		got, err := measure(row.name, golang, ours, floor)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		table.add(row, got)
	}
	fmt.Print(table)
	text, hold := verdicts(table.ratios)
	fmt.Print("\n" + text)
	if !hold {
		return errors.New("a claim does not hold in the median")
	}
	return nil
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
