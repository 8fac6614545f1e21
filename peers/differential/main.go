// Command differential asks Kubernetes' own code and navicert the same generated questions and shrinks every disagreement
// to a small line.
//
//	differential -kind cel -n 100000 -seed 7 -navicert target/release/navicert
//
// The same kind, seed and number give the same questions (signatures apart).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"navicert/peers/decide"
)

// settings is what the command line says.
type settings struct {
	kind     string
	count    int
	seed     uint64
	navicert string
	// kubeVersion is the version that navicert is asked about; empty: its default.
	kubeVersion string
	against     string
	deliberate  string
	out         string
	show        int
	strict      bool
	trees       bool
}

// Exit codes: disagreements are 1, a question that could not be put to the other side is 3.
const (
	exitDisagreement = 1
	exitUsage        = 2
	exitNoOtherSide  = 3
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(arguments []string) int {
	defer decide.Close()
	var settings settings
	flags := flag.NewFlagSet("differential", flag.ContinueOnError)
	flags.StringVar(&settings.kind, "kind", "", "kind of question: "+strings.Join(kindNames(), ", "))
	flags.IntVar(&settings.count, "n", 10000, "how many questions")
	flags.Uint64Var(&settings.seed, "seed", 1, "which questions")
	flags.StringVar(&settings.navicert, "navicert", "", "the navicert binary")
	flags.StringVar(&settings.kubeVersion, "kube-version", "", "the version of Kubernetes that navicert is asked about, for kinds that have versions")
	flags.StringVar(&settings.against, "against", "", "another command to compare with, in place of navicert and its verb")
	flags.StringVar(&settings.deliberate, "deliberate", "deliberate.yaml", "the list of deliberate differences")
	flags.StringVar(&settings.out, "out", "", "directory for the shrunk lines")
	onlyDump := flags.Bool("dump", false, "print the questions and ask nobody")
	flags.BoolVar(&settings.strict, "strict", false, "compare also the cost and the words of the checker, which are informative (cel)")
	flags.BoolVar(&settings.trees, "trees", false, "print the tree a question is made of, of shrunk questions beside it")
	flags.IntVar(&settings.show, "show", 10, "how many disagreements to shrink and print")
	if flags.Parse(arguments) != nil {
		return exitUsage
	}
	generator, ok := generators[settings.kind]
	if !ok || flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "differential: kinds are %s\n", strings.Join(kindNames(), ", "))
		return exitUsage
	}
	if *onlyDump {
		if err := dump(settings, generator); err != nil {
			fmt.Fprintln(os.Stderr, "differential:", err)
			return exitUsage
		}
		return 0
	}
	kind, ok := decide.Find(settings.kind)
	if !ok {
		fmt.Fprintf(os.Stderr, "differential: no kind %s in Kubernetes %s: k8s.io/kubernetes is not published for it\n", settings.kind, decide.Kube)
		return exitUsage
	}
	other, err := findOther(settings, kind)
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		return exitNoOtherSide
	}
	expected, err := readDeliberate(settings.deliberate, settings.kind)
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		return exitUsage
	}
	started := time.Now()
	found, err := search(settings, generator, sides{kind, program(other), settings.strict}, expected)
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		return exitNoOtherSide
	}
	if err := found.report(settings, time.Since(started)); err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		return exitNoOtherSide
	}
	if found.disagreements > 0 {
		return exitDisagreement
	}
	return 0
}

func kindNames() []string {
	var out []string
	for _, kind := range decide.Kinds {
		if _, ok := generators[kind.Name]; ok {
			out = append(out, kind.Name)
		}
	}
	return out
}

// outPath is where a run's shrunk lines go.
func (s settings) outPath() string {
	return filepath.Join(s.out, fmt.Sprintf("%s-%d.jsonl", s.kind, s.seed))
}
