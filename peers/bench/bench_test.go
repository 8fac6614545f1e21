// Package bench measures what Kubernetes' own code needs for the work of the race, one row per work. The rows' names are the
// contract with the other side (see peers/README.md); `bench/race` runs both.
package bench

import (
	"flag"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// row is one line of the table.
type row struct {
	name string
	run  func(*testing.B)
}

var rows []row

func add(name string, run func(*testing.B)) { rows = append(rows, row{name, run}) }

// inputs is where the race's inputs are: `bench` below the vectors.
var inputs = flag.String("inputs", "../../conformance/vectors/bench", "directory of the race's inputs")

// execPlugin is the static exec plugin.
var execPlugin = flag.String("plugin", "", "path of the exec plugin")

func BenchmarkRow(b *testing.B) {
	klog.SetLogger(logr.Discard())
	for _, row := range rows {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			row.run(b)
		})
	}
}

// measure repeats an operation and notes the CPU time it takes, which on a busy machine says more than the clock.
func measure(b *testing.B, once func()) {
	started := cpuTime(b)
	for b.Loop() {
		once()
	}
	b.ReportMetric(float64(cpuTime(b)-started)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

func input(b *testing.B, name string) string {
	text, err := os.ReadFile(filepath.Join(*inputs, name))
	if err != nil {
		b.Skip(err)
	}
	return string(text)
}

func must[T any](b *testing.B, value T, err error) T {
	if err != nil {
		b.Fatal(err)
	}
	return value
}
