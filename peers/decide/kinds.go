// Package decide asks Kubernetes' own code what it decides, one file per kind of question. Inputs and outputs have the
// shapes of the vectors' README, so that a line of a vector file, a line for the `reference` program and a generated
// line of `differential` are the same thing.
package decide

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Kind is one kind of question.
type Kind struct {
	// Name is the verb, and the vector file's name without its ending.
	Name string
	// Navicert is the command that answers the same lines, empty if there is none.
	Navicert []string
	// Decide takes the members of a vector's `input` and gives those of its `expect`. An error is a fault: the line
	// itself is no question of this kind.
	Decide func(input json.RawMessage) (any, error)
}

// Kinds lists every kind. Those of images are absent if the kubelet's module is not part of this program.
var Kinds = slices.Concat(serverKinds, imageKinds, clientKinds)

// Versioned says whether navicert's command for a kind takes `--kube-version`.
func (k Kind) Versioned() bool {
	return slices.Contains([]string{"authn-config", "authn-token", "cel"}, k.Name)
}

var serverKinds = []Kind{
	{"authn-config", words("authn check --jsonl --profile kube"), typed(authnConfig)},
	{"authn-token", words("authn eval --jsonl --profile kube"), typed(authnToken)},
	{"cel", words("cel eval --jsonl"), typed(celExpression)},
	{"request-info", words("request-info --jsonl"), typed(requestInfo)},
}

var clientKinds = []Kind{
	{"kubeconfig", words("kubeconfig view --jsonl"), typed(kubeconfig)},
	{"exec-output", words("exec-plugin decode --jsonl"), typed(execOutput)},
	{"exec-info", words("exec-plugin info --jsonl"), typed(execInfo)},
	{"exec-flow", nil, typed(execFlow)},
	{"tls-verify", words("tls-verify --jsonl"), typed(tlsVerify)},
}

// Find gives the kind with a name.
func Find(name string) (Kind, bool) {
	for _, kind := range Kinds {
		if kind.Name == name {
			return kind, true
		}
	}
	return Kind{}, false
}

func init() {
	// Upstream logs what we report; the program's own output is the report.
	klog.SetLogger(logr.Discard())
}

func words(text string) []string { return strings.Fields(text) }

// Panicked begins the fault of a line on which upstream's code panics. There is no decision to compare with then.
const Panicked = "upstream panics"

// typed decodes a line's members before a decision.
func typed[Input, Decision any](decide func(Input) (Decision, error)) func(json.RawMessage) (any, error) {
	return func(line json.RawMessage) (decision any, fault error) {
		defer recovered(&fault)
		var input Input
		if err := json.Unmarshal(line, &input); err != nil {
			return nil, fmt.Errorf("the line does not have this kind's members: %w", err)
		}
		return decide(input)
	}
}

// recovered makes a panic of upstream's code a fault of the line.
func recovered(fault *error) {
	if reason := recover(); reason != nil {
		*fault = fmt.Errorf("%s: %v", Panicked, reason)
	}
}
