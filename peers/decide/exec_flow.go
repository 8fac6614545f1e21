package decide

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/plugin/pkg/client/auth/exec"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"
)

// FlowInput is one client's life: what its plugin gives, run by run, and what its requests are answered.
type FlowInput struct {
	Outputs []struct {
		Stdout string `json:"stdout"`
		Exit   int    `json:"exit"`
	} `json:"outputs"`
	Statuses []int    `json:"statuses"`
	Now      []string `json:"now"`
}

// FlowDecision is the Authorization header of each request (null: not sent) and how often the plugin ran.
type FlowDecision struct {
	Authorization []*string `json:"authorization"`
	Runs          int       `json:"runs"`
	RunsAfter     []int     `json:"runsAfter"`
	Errors        []string  `json:"errors,omitempty"`
}

// The plugin counts its runs in a file and prints the output of that number; the last one repeats.
const flowPlugin = `cd "$1"; n=$(($(cat runs) + 1)); echo "$n" >runs; [ "$n" -le "$2" ] || n=$2; cat "out.$n"; exit "$(cat "exit.$n")"`

func execFlow(input FlowInput) (FlowDecision, error) {
	directory, err := os.MkdirTemp("", "navicert-flow-")
	if err != nil {
		return FlowDecision{}, err
	}
	defer os.RemoveAll(directory)
	if err := input.write(directory); err != nil {
		return FlowDecision{}, err
	}
	moment := time.Now()
	clock := func() time.Time { return moment }
	if len(input.Now) == 0 {
		clock = nil
	}
	authenticator, err := exec.NewIsolated(&api.ExecConfig{
		Command:         "/bin/sh",
		Args:            []string{"-c", flowPlugin, "plugin", directory, fmt.Sprint(len(input.Outputs))},
		APIVersion:      "client.authentication.k8s.io/v1",
		InteractiveMode: api.NeverExecInteractiveMode,
	}, nil, clock)
	if err != nil {
		return FlowDecision{}, err
	}
	server := &answering{}
	client, err := wrapped(authenticator, server)
	if err != nil {
		return FlowDecision{}, err
	}
	decision := FlowDecision{Authorization: []*string{}, RunsAfter: []int{}}
	for index, status := range input.Statuses {
		if len(input.Now) > 0 {
			if moment, err = time.Parse(time.RFC3339Nano, input.Now[min(index, len(input.Now)-1)]); err != nil {
				return FlowDecision{}, fmt.Errorf("`now` has no time: %w", err)
			}
		}
		server.status, server.seen = status, nil
		if err := get(client); err != nil {
			decision.Errors = append(decision.Errors, err.Error())
		}
		decision.Authorization = append(decision.Authorization, server.seen)
		if decision.Runs, err = runs(directory); err != nil {
			return FlowDecision{}, err
		}
		decision.RunsAfter = append(decision.RunsAfter, decision.Runs)
	}
	return decision, nil
}

func (input FlowInput) write(directory string) error {
	files := map[string]string{"runs": "0"}
	for index, output := range input.Outputs {
		files[fmt.Sprintf("out.%d", index+1)] = output.Stdout
		files[fmt.Sprintf("exit.%d", index+1)] = fmt.Sprint(output.Exit)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func runs(directory string) (int, error) {
	text, err := os.ReadFile(filepath.Join(directory, "runs"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// wrapped puts the authenticator around a round tripper, as a client's transport does.
func wrapped(authenticator *exec.Authenticator, inner http.RoundTripper) (http.RoundTripper, error) {
	config := &transport.Config{}
	if err := authenticator.UpdateTransportConfig(config); err != nil {
		return nil, err
	}
	return transport.HTTPWrappersForConfig(config, inner)
}

func get(client http.RoundTripper) error {
	request, err := http.NewRequest(http.MethodGet, "https://server.invalid/", nil)
	if err != nil {
		return err
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// answering notes the header of a request and answers with a status.
type answering struct {
	status int
	seen   *string
}

// RoundTrip implements http.RoundTripper.
func (a *answering) RoundTrip(request *http.Request) (*http.Response, error) {
	header := request.Header.Get("Authorization")
	a.seen = &header
	return &http.Response{
		StatusCode: a.status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{},
		Body:       io.NopCloser(bytes.NewReader(nil)),
		Request:    request,
	}, nil
}
