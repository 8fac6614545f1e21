package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// InfoInput is an exec user of a kubeconfig and its cluster.
type InfoInput struct {
	APIVersion         string          `json:"apiVersion"`
	InteractiveMode    *string         `json:"interactiveMode"`
	ProvideClusterInfo bool            `json:"provideClusterInfo"`
	Server             string          `json:"server"`
	CAData             string          `json:"caData"`
	TLSServerName      string          `json:"tlsServerName"`
	Insecure           bool            `json:"insecure"`
	ProxyURL           string          `json:"proxyUrl"`
	DisableCompression bool            `json:"disableCompression"`
	ClusterConfig      json.RawMessage `json:"clusterConfig"`
}

// InfoDecision is the text of KUBERNETES_EXEC_INFO, or null if the plugin is not run.
type InfoDecision struct {
	Info  *string `json:"info"`
	Error string  `json:"error,omitempty"`
}

var infoCount atomic.Uint64

func execInfo(input InfoInput) (InfoDecision, error) {
	directory, err := scratch()
	if err != nil {
		return InfoDecision{}, err
	}
	// client-go keeps every authenticator it made; with a name of its own no line meets that of an earlier one.
	seen := filepath.Join(directory, fmt.Sprintf("exec-info-%d", infoCount.Add(1)))
	defer os.Remove(seen)
	config, err := input.kubeconfig(seen)
	if err != nil {
		return InfoDecision{}, err
	}
	if err := sendOnce(config, input.Server); err != nil {
		return InfoDecision{Error: err.Error()}, nil
	}
	text, err := os.ReadFile(seen)
	if errors.Is(err, fs.ErrNotExist) {
		return InfoDecision{}, nil
	}
	info := string(text)
	return InfoDecision{Info: &info}, err
}

// kubeconfig writes the user and the cluster as a file's text; the plugin stores its environment and prints a token.
func (input InfoInput) kubeconfig(seen string) ([]byte, error) {
	plugin := map[string]any{
		"apiVersion":         input.APIVersion,
		"command":            "/bin/sh",
		"args":               []string{"-c", `printf '%s' "$KUBERNETES_EXEC_INFO" >"$1"; printf '{"kind":"ExecCredential","apiVersion":"%s","status":{"token":"t"}}' "$2"`, "plugin", seen, input.APIVersion},
		"provideClusterInfo": input.ProvideClusterInfo,
	}
	if input.InteractiveMode != nil {
		plugin["interactiveMode"] = *input.InteractiveMode
	}
	cluster := map[string]any{"server": input.Server}
	for member, value := range map[string]string{
		"certificate-authority-data": input.CAData,
		"tls-server-name":            input.TLSServerName,
		"proxy-url":                  input.ProxyURL,
	} {
		if value != "" {
			cluster[member] = value
		}
	}
	for member, value := range map[string]bool{
		"insecure-skip-tls-verify": input.Insecure,
		"disable-compression":      input.DisableCompression,
	} {
		if value {
			cluster[member] = true
		}
	}
	if input.ClusterConfig != nil {
		cluster["extensions"] = []any{map[string]any{"name": "client.authentication.k8s.io/exec", "extension": input.ClusterConfig}}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "it",
		"contexts":        []any{map[string]any{"name": "it", "context": map[string]any{"cluster": "it", "user": "it"}}},
		"clusters":        []any{map[string]any{"name": "it", "cluster": cluster}},
		"users":           []any{map[string]any{"name": "it", "user": map[string]any{"exec": plugin}}},
	})
	return printable(text), err
}

// printable escapes what JSON may hold as it is and YAML, as which kubeconfigs are read, may not.
func printable(text []byte) []byte {
	var out strings.Builder
	for _, letter := range string(text) {
		if letter >= 0x7f && letter <= 0x9f || letter == 0xfeff || letter == 0xfffe || letter == 0xffff {
			fmt.Fprintf(&out, "\\u%04x", letter)
		} else {
			out.WriteRune(letter)
		}
	}
	return []byte(out.String())
}

// sendOnce builds a client as kubectl does and sends one request that never leaves the process.
func sendOnce(kubeconfig []byte, server string) error {
	loaded, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	loaded.Wrap(func(http.RoundTripper) http.RoundTripper { return everywhere("{}") })
	client, err := rest.HTTPClientFor(loaded)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodGet, server, nil)
	if err != nil {
		return err
	}
	response, err := client.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
