package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// description is what `cluster.json` says about a running cluster: everything a test needs to talk to it.
type description struct {
	Directory string `json:"directory"`
	// Server is the API server's URL, CA the file that vouches for it.
	Server string `json:"server"`
	CA     string `json:"ca"`
	// Issuer is the test issuer's URL, IssuerCA the file that vouches for it, IssuerKey the key it signs with (kid `peers`).
	Issuer    string `json:"issuer"`
	IssuerCA  string `json:"issuerCA"`
	IssuerKey string `json:"issuerKey"`
	Audience  string `json:"audience"`
	// AdminKubeconfig has a client certificate of system:masters, JWTKubeconfig an exec plugin.
	AdminKubeconfig string `json:"adminKubeconfig"`
	JWTKubeconfig   string `json:"jwtKubeconfig"`
	// ClientCA and its key sign client certificates the API server takes; FrontProxy is a certificate of the request-header CA.
	ClientCA             string         `json:"clientCA"`
	ClientCAKey          string         `json:"clientCAKey"`
	FrontProxy           string         `json:"frontProxy"`
	FrontProxyKey        string         `json:"frontProxyKey"`
	AuthenticationConfig string         `json:"authenticationConfig"`
	Kubectl              string         `json:"kubectl"`
	Processes            map[string]int `json:"processes"`
}

func descriptionPath(directory string) string { return filepath.Join(directory, "cluster.json") }

func readDescription(directory string) (description, error) {
	var out description
	text, err := os.ReadFile(descriptionPath(directory))
	if err != nil {
		return out, err
	}
	err = json.Unmarshal(text, &out)
	return out, err
}

func (d description) write() error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(descriptionPath(d.Directory), append(text, '\n'), 0o600)
}
