package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"

	"navicert/peers/compare"
	"navicert/peers/decide"
)

// generator makes questions of one kind. A question is made as a tree, which can be shrunk, and rendered to the members of
// a line; a tree that was shrunk too far renders to nothing.
type generator struct {
	tree   func(*random) any
	render func(tree any) (map[string]any, bool)
}

var generators = map[string]generator{
	"authn-config":   {authnConfigTree, renderConfig},
	"authn-token":    {authnTokenTree, renderToken},
	"cel":            {celTree, renderCEL},
	"image-match":    {imageMatchTree, asItIs},
	"image-config":   {imageConfigTree, renderConfig},
	"kubeconfig":     {kubeconfigTree, renderKubeconfig},
	"exec-output":    {execOutputTree, renderExecOutput},
	"exec-info":      {execInfoTree, asItIs},
	"image-keyring":  {imageKeyringTree, renderKeyring},
	"image-response": {imageResponseTree, renderImageResponse},
	"tls-verify":     {tlsVerifyTree, renderTLS},
	"request-info":   {requestInfoTree, renderRequestInfo},
}

// asItIs is for trees that are lines already.
func asItIs(tree any) (map[string]any, bool) {
	members, ok := tree.(map[string]any)
	return members, ok
}

// findings is what a run found.
type findings struct {
	asked, agreed, disagreements int
	// panicked are the questions on which the reference panics: nothing to compare with.
	panicked   []string
	deliberate map[string]int
	outcomes   map[string]int
	shown      []shrunk
}

type shrunk struct {
	line       []byte
	difference string
	tree       any
}

const batchSize = 1000

// search asks all questions and shrinks the first disagreements of each sort.
func search(settings settings, generator generator, sides sides, expected []deliberate) (findings, error) {
	out := findings{deliberate: map[string]int{}, outcomes: map[string]int{}}
	seen := map[string]int{}
	for first := 0; first < settings.count; first += batchSize {
		batch := make([]*question, 0, batchSize)
		for index := first; index < min(first+batchSize, settings.count); index++ {
			tree := generator.tree(newRandom(settings.seed, index))
			input, ok := generator.render(tree)
			if !ok {
				return out, fmt.Errorf("question %d of seed %d does not render", index, settings.seed)
			}
			batch = append(batch, &question{index: index, tree: tree, input: input})
		}
		if err := sides.ask(batch); err != nil {
			return out, err
		}
		for _, question := range batch {
			out.asked++
			out.outcomes[outcome(question.reference)]++
			if question.difference == "" {
				out.agreed++
				continue
			}
			if question.panicked() {
				out.panicked = append(out.panicked, text(question.input))
				continue
			}
			if statement := match(expected, question); statement != "" {
				out.deliberate[statement]++
				continue
			}
			out.disagreements++
			// Many questions may meet one defect: shrink a few of each sort.
			if about := head(question.difference); seen[about] < 3 && len(out.shown) < settings.show {
				seen[about]++
				small, err := shrink(generator, sides, expected, question)
				if err != nil {
					return out, err
				}
				out.shown = append(out.shown, small.line(settings))
			}
		}
	}
	return out, nil
}

// outcome sorts the reference's answers, so that one sees what the questions exercise.
func outcome(answer compare.Object) string {
	var words []string
	for _, name := range []string{"fault", "stage", "outcome", "compiled", "ok", "type", "match", "loads", "valid"} {
		if value, ok := answer[name]; ok {
			if name == "fault" {
				value = "yes"
			}
			words = append(words, fmt.Sprintf("%s=%v", name, value))
		}
	}
	if info, ok := answer["info"]; ok {
		words = append(words, fmt.Sprintf("run=%v", info != nil))
	}
	if credentials, ok := answer["credentials"].([]any); ok {
		words = append(words, fmt.Sprintf("credentials=%d", len(credentials)))
	}
	return strings.Join(words, " ")
}

func (q *question) panicked() bool {
	fault, _ := q.reference["fault"].(string)
	return strings.HasPrefix(fault, decide.Panicked)
}

// head is what a difference is about, as a path without indices.
func head(difference string) string {
	path, _, _ := strings.Cut(difference, ":")
	return indices.ReplaceAllString(path, "")
}

var indices = regexp.MustCompile(`\[\d+\]`)

// member is the answer's member a difference is about.
func member(difference string) string {
	name, _, _ := strings.Cut(head(difference), ".")
	return name
}

// line is the disagreement as a line for a vector file, with the reference's answer as expectation.
func (q *question) line(settings settings) shrunk {
	text, err := json.Marshal(map[string]any{
		"id":     fmt.Sprintf("diff-%s-%d-%d", settings.kind, settings.seed, q.index),
		"input":  q.input,
		"expect": q.reference,
		"note":   "found by differential: " + head(q.difference),
	})
	if err != nil {
		text = []byte(err.Error())
	}
	return shrunk{text, q.difference, q.tree}
}

func (f findings) report(settings settings, took time.Duration) error {
	for _, small := range f.shown {
		fmt.Printf("%s\n%s\n", small.difference, small.line)
		if settings.trees {
			fmt.Printf("made of %s\n", text(small.tree))
		}
		fmt.Println()
	}
	for _, input := range f.panicked[:min(len(f.panicked), 3)] {
		fmt.Printf("the reference panics: %s\n\n", input)
	}
	deliberate := f.asked - f.agreed - f.disagreements - len(f.panicked)
	fmt.Printf("%s, seed %d: %d asked, %d agree, %d disagree, %d differ deliberately, %d without an answer of the reference (it panics); %.1f s\n",
		settings.kind, settings.seed, f.asked, f.agreed, f.disagreements, deliberate, len(f.panicked), took.Seconds())
	printCounts("deliberate, by statement", f.deliberate)
	printCounts("what the reference said", f.outcomes)
	if len(f.shown) == 0 || settings.out == "" {
		return nil
	}
	if err := os.MkdirAll(settings.out, 0o755); err != nil {
		return err
	}
	var lines []byte
	for _, small := range f.shown {
		lines = append(append(lines, small.line...), '\n')
	}
	fmt.Printf("shrunk lines: %s\n", settings.outPath())
	return os.WriteFile(filepath.Clean(settings.outPath()), lines, 0o644)
}

func printCounts(title string, counts map[string]int) {
	if len(counts) == 0 {
		return
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		return counts[names[i]] > counts[names[j]] || counts[names[i]] == counts[names[j]] && names[i] < names[j]
	})
	fmt.Printf("%s:\n", title)
	for _, name := range names {
		fmt.Printf("  %8d  %s\n", counts[name], name)
	}
}
