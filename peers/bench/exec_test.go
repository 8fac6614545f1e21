package bench

import (
	"bytes"
	"net/http"
	osexec "os/exec"
	"testing"

	"k8s.io/client-go/plugin/pkg/client/auth/exec"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"
)

func init() {
	add("exec-run", execRun)
	add("exec-spawn", execSpawn)
	add("exec-cached", execCached)
}

func execAuthenticator(b *testing.B) *exec.Authenticator {
	if *execPlugin == "" {
		b.Skip("no -plugin given")
	}
	made, err := exec.NewIsolated(&api.ExecConfig{
		Command:         *execPlugin,
		APIVersion:      "client.authentication.k8s.io/v1",
		InteractiveMode: api.NeverExecInteractiveMode,
	}, nil, nil)
	return must(b, made, err)
}

// execRun is one run of a plugin, from the request to the decoded credential.
func execRun(b *testing.B) {
	authenticator := execAuthenticator(b)
	for b.Loop() {
		if err := authenticator.Refresh(); err != nil {
			b.Fatal(err)
		}
	}
}

// execSpawn is the same program started and read without anything around it.
func execSpawn(b *testing.B) {
	if *execPlugin == "" {
		b.Skip("no -plugin given")
	}
	for b.Loop() {
		var printed bytes.Buffer
		command := osexec.Command(*execPlugin)
		command.Stdout = &printed
		if err := command.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// execCached is what a request pays for a credential that is there.
func execCached(b *testing.B) {
	config := &transport.Config{}
	if err := execAuthenticator(b).UpdateTransportConfig(config); err != nil {
		b.Fatal(err)
	}
	answer := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	made, err := transport.HTTPWrappersForConfig(config, roundTrip(func(*http.Request) (*http.Response, error) { return answer, nil }))
	client := must(b, made, err)
	request, err := http.NewRequest(http.MethodGet, "https://server.invalid/", nil)
	request = must(b, request, err)
	measure(b, func() {
		delete(request.Header, "Authorization")
		if _, err := client.RoundTrip(request); err != nil {
			b.Fatal(err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
