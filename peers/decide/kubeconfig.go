package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the auth providers kubectl knows
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"
)

// KubeconfigInput is a directory of files, the list in KUBECONFIG, and what the command line asks for.
type KubeconfigInput struct {
	Files      map[string]string          `json:"files"`
	Kubeconfig []string                   `json:"kubeconfig"`
	Context    *string                    `json:"context"`
	Overrides  map[string]json.RawMessage `json:"overrides"`
}

// KubeconfigDecision is what kubectl makes of them.
type KubeconfigDecision struct {
	Loads    bool     `json:"loads"`
	Merged   any      `json:"merged,omitempty"`
	Resolved any      `json:"resolved,omitempty"`
	Redacted any      `json:"redacted,omitempty"`
	Valid    bool     `json:"valid"`
	Errors   []string `json:"errors"`
	Client   *Client  `json:"client,omitempty"`
}

// Client is the client that comes of a valid configuration.
type Client struct {
	Server     string   `json:"server"`
	Auth       []string `json:"auth"`
	BuildError string   `json:"build_error,omitempty"`
}

func kubeconfig(input KubeconfigInput) (KubeconfigDecision, error) {
	directory, err := os.MkdirTemp("", "navicert-kubeconfig-")
	if err != nil {
		return KubeconfigDecision{}, err
	}
	defer os.RemoveAll(directory)
	if err := input.write(directory); err != nil {
		return KubeconfigDecision{}, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{}
	for _, name := range input.Kubeconfig {
		if name != "" { // an empty element of the list stays one
			name = filepath.Join(directory, name)
		}
		rules.Precedence = append(rules.Precedence, name)
	}
	resolved, err := rules.Load()
	if err != nil {
		return hidden(KubeconfigDecision{Errors: messages(err)}, directory)
	}
	decision := KubeconfigDecision{Loads: true, Errors: []string{}}
	if err := decision.views(*rules, resolved); err != nil {
		return KubeconfigDecision{}, err
	}
	overrides, err := input.overrides()
	if err != nil {
		return KubeconfigDecision{}, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*resolved, overrides.CurrentContext, overrides, rules).ClientConfig()
	if err != nil {
		decision.Errors = messages(err)
	} else {
		decision.Valid = true
		decision.Client = describe(config)
	}
	return hidden(decision, directory)
}

func (input KubeconfigInput) write(directory string) error {
	for name, text := range input.Files {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// views fills in the three forms `kubectl config view` can show.
func (decision *KubeconfigDecision) views(rules clientcmd.ClientConfigLoadingRules, resolved *api.Config) error {
	rules.DoNotResolvePaths = true
	merged, err := rules.Load()
	if err != nil {
		return err
	}
	if decision.Merged, err = view(merged); err != nil {
		return err
	}
	absolute, err := view(resolved)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(absolute, decision.Merged) {
		decision.Resolved = absolute
	}
	if err := api.RedactSecrets(merged); err != nil {
		return err
	}
	api.ShortenConfig(merged)
	decision.Redacted, err = view(merged)
	return err
}

func view(config *api.Config) (any, error) {
	object, err := latest.Scheme.ConvertToVersion(config, latest.ExternalVersion)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out any
	err = decodeNumbers(string(text), &out)
	return out, err
}

// decodeNumbers keeps numbers as they are written.
func decodeNumbers(text string, out any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(out)
}

// overrides reads them as kubectl reads its flags.
func (input KubeconfigInput) overrides() (*clientcmd.ConfigOverrides, error) {
	overrides := &clientcmd.ConfigOverrides{}
	flags := pflag.NewFlagSet("overrides", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	if input.Context != nil {
		overrides.CurrentContext = *input.Context
	}
	for name, raw := range input.Overrides {
		values := []json.RawMessage{raw}
		if strings.HasPrefix(string(raw), "[") {
			if err := json.Unmarshal(raw, &values); err != nil {
				return nil, err
			}
		}
		for _, value := range values {
			text := string(value)
			if strings.HasPrefix(text, `"`) {
				if err := json.Unmarshal(value, &text); err != nil {
					return nil, err
				}
			}
			if err := flags.Set(name, text); err != nil {
				return nil, fmt.Errorf("override `%s`: %w", name, err)
			}
		}
	}
	return overrides, nil
}

func describe(config *rest.Config) *Client {
	client := &Client{Server: config.Host, Auth: []string{}}
	for kind, there := range map[string]bool{
		"token":         config.BearerToken != "",
		"tokenFile":     config.BearerTokenFile != "",
		"basic":         config.Username != "",
		"cert":          config.CertFile != "" || len(config.CertData) > 0,
		"exec":          config.ExecProvider != nil,
		"auth-provider": config.AuthProvider != nil,
		"impersonate":   config.Impersonate.UserName != "",
	} {
		if there {
			client.Auth = append(client.Auth, kind)
		}
	}
	sort.Strings(client.Auth)
	if err := buildable(config); err != nil {
		client.BuildError = err.Error()
	}
	return client
}

func buildable(config *rest.Config) error {
	if _, _, err := rest.DefaultServerUrlFor(config); err != nil {
		return err
	}
	_, err := rest.HTTPClientFor(config)
	return err
}

// messages lists the single errors of an aggregate.
func messages(err error) []string {
	var many utilerrors.Aggregate
	if !errors.As(err, &many) {
		return []string{err.Error()}
	}
	var out []string
	for _, each := range many.Errors() {
		out = append(out, messages(each)...)
	}
	return out
}

// hidden writes `$DIR` for the directory and cuts what upstream prints of secrets after `in list:`.
func hidden(decision KubeconfigDecision, directory string) (KubeconfigDecision, error) {
	for index, text := range decision.Errors {
		before, _, cut := strings.Cut(text, "in list:")
		if cut {
			decision.Errors[index] = before + "in list:"
		}
	}
	text, err := json.Marshal(decision)
	if err != nil {
		return KubeconfigDecision{}, err
	}
	var out KubeconfigDecision
	err = decodeNumbers(strings.ReplaceAll(string(text), directory, "$DIR"), &out)
	return out, err
}
