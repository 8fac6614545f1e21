package decide

import (
	"fmt"
	"time"

	"k8s.io/client-go/plugin/pkg/client/auth/exec"
	"k8s.io/client-go/tools/clientcmd/api"
)

// OutputInput is what an exec plugin did.
type OutputInput struct {
	APIVersion string `json:"apiVersion"`
	Stdout     string `json:"stdout"`
	Exit       int    `json:"exit"`
	Now        string `json:"now"`
}

// OutputDecision is the credential a client takes from it.
type OutputDecision struct {
	OK      bool   `json:"ok"`
	Token   string `json:"token,omitempty"`
	HasCert *bool  `json:"hasCert,omitempty"`
	Expires string `json:"expires,omitempty"`
	Error   string `json:"error,omitempty"`
}

func execOutput(input OutputInput) (OutputDecision, error) {
	clock, err := fixedClock(input.Now)
	if err != nil {
		return OutputDecision{}, err
	}
	path, err := scratchFile("stdout", input.Stdout)
	if err != nil {
		return OutputDecision{}, err
	}
	command, arguments := catPath, []string{path}
	if input.Exit != 0 {
		command, arguments = "/bin/sh", []string{"-c", `cat "$1"; exit "$2"`, "plugin", path, fmt.Sprint(input.Exit)}
	}
	authenticator, err := exec.NewIsolated(&api.ExecConfig{
		Command:         command,
		Args:            arguments,
		APIVersion:      input.APIVersion,
		InteractiveMode: api.NeverExecInteractiveMode,
	}, nil, clock)
	if err != nil {
		return OutputDecision{Error: err.Error()}, nil
	}
	credential, err := authenticator.Credential()
	if err != nil {
		return OutputDecision{Error: err.Error()}, nil
	}
	decision := OutputDecision{OK: true, Token: credential.Token, HasCert: &credential.HasCertificate}
	if !credential.Expires.IsZero() {
		decision.Expires = credential.Expires.UTC().Format(time.RFC3339Nano)
	}
	return decision, nil
}

// fixedClock is a clock that stands at a moment, or nil (the real one) for an empty text.
func fixedClock(text string) (func() time.Time, error) {
	if text == "" {
		return nil, nil
	}
	now, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, fmt.Errorf("`now` is not a time: %w", err)
	}
	return func() time.Time { return now }, nil
}
