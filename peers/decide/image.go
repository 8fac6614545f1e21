//go:build !without_kubelet

package decide

import (
	"encoding/json"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/plugin"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

var imageKinds = []Kind{
	{"image-match", words("image match --jsonl"), typed(imageMatch)},
	{"image-config", words("image check --jsonl"), typed(imageConfig)},
	{"image-keyring", words("image keyring --jsonl"), typed(imageKeyring)},
	{"image-response", words("image response --jsonl"), typed(imageResponse)},
}

// MatchInput is an entry of `matchImages` and an image.
type MatchInput struct {
	Pattern string `json:"pattern"`
	Image   string `json:"image"`
}

// MatchDecision is whether the kubelet would ask the provider.
type MatchDecision struct {
	Match bool   `json:"match"`
	Error string `json:"error,omitempty"`
}

func imageMatch(input MatchInput) (MatchDecision, error) {
	match, err := credentialprovider.URLsMatchStr(input.Pattern, input.Image)
	if err != nil {
		return MatchDecision{Error: err.Error()}, nil
	}
	return MatchDecision{Match: match}, nil
}

func imageConfig(input ConfigInput) (ConfigDecision, error) {
	if _, err := plugin.DecodeConfig([]byte(input.Config)); err != nil {
		return refused("decode", err), nil
	}
	path, err := scratchFile("config.yaml", input.Config)
	if err != nil {
		return ConfigDecision{}, err
	}
	config, err := plugin.ReadConfig(path)
	if err != nil {
		return refused("merge", err), nil
	}
	return validated(plugin.ValidateConfig(config)), nil
}

// KeyringInput is a set of stored credentials, as a map or as the text of a `config.json`, and an image.
type KeyringInput struct {
	Auths        map[string]Login `json:"auths"`
	DockerConfig *string          `json:"docker_config"`
	Image        string           `json:"image"`
}

// Login is a user name and a password.
type Login struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// KeyringDecision is the list of credentials to try, in order.
type KeyringDecision struct {
	Credentials []Login `json:"credentials"`
	Error       string  `json:"error,omitempty"`
}

func imageKeyring(input KeyringInput) (KeyringDecision, error) {
	decision := KeyringDecision{Credentials: []Login{}}
	entries := credentialprovider.DockerConfig{}
	for key, login := range input.Auths {
		entries[key] = credentialprovider.DockerConfigEntry{Username: login.Username, Password: login.Password}
	}
	if input.DockerConfig != nil {
		var file credentialprovider.DockerConfigJSON
		if err := json.Unmarshal([]byte(*input.DockerConfig), &file); err != nil {
			decision.Error = err.Error()
			return decision, nil
		}
		entries = file.Auths
	}
	keyring := &credentialprovider.BasicDockerKeyring{}
	keyring.Add(nil, entries)
	found, _ := keyring.Lookup(input.Image)
	for _, each := range found {
		decision.Credentials = append(decision.Credentials, Login{each.Username, each.Password})
	}
	return decision, nil
}

// ResponseInput is what a provider plugin printed, and the version it is configured for.
type ResponseInput struct {
	APIVersion string `json:"apiVersion"`
	Response   string `json:"response"`
}

// ResponseDecision is what the kubelet takes from it.
type ResponseDecision struct {
	OK            bool              `json:"ok"`
	CacheKeyType  string            `json:"cacheKeyType,omitempty"`
	CacheDuration *metav1.Duration  `json:"cacheDuration,omitempty"`
	Auth          *map[string]Login `json:"auth,omitempty"`
	Stage         string            `json:"stage,omitempty"`
	Error         string            `json:"error,omitempty"`
	Cause         string            `json:"cause,omitempty"`
}

const someImage = "registry.example/some/image"

func imageResponse(input ResponseInput) (ResponseDecision, error) {
	path, err := scratchFile("response.json", input.Response)
	if err != nil {
		return ResponseDecision{}, err
	}
	// `cat` is the plugin: it prints the file and does not look at the request.
	provider, err := plugin.NewProvider(filepath.Dir(catPath), kubeletconfig.CredentialProvider{
		Name:        filepath.Base(catPath),
		APIVersion:  input.APIVersion,
		MatchImages: []string{"registry.example"},
		Args:        []string{path},
	})
	if err != nil {
		return ResponseDecision{Stage: "version", Error: err.Error()}, nil
	}
	answer, err := provider.Run(someImage)
	if err != nil {
		decision := ResponseDecision{Stage: "decode", Error: strings.TrimSuffix(err.Error(), ": ")}
		if strings.Contains(decision.Error, "did not match expected apiVersion") {
			decision.Stage = "version"
		} else if cause := provider.DecodeAnswer([]byte(input.Response)); cause != nil {
			decision.Cause = cause.Error()
		}
		return decision, nil
	}
	if err := provider.Accept(someImage, answer); err != nil {
		return ResponseDecision{Stage: "cacheKeyType", Error: err.Error()}, nil
	}
	decision := ResponseDecision{
		OK:            true,
		CacheKeyType:  string(answer.CacheKeyType),
		CacheDuration: answer.CacheDuration,
		Auth:          &map[string]Login{},
	}
	for key, login := range answer.Auth {
		(*decision.Auth)[key] = Login{login.Username, login.Password}
	}
	return decision, nil
}
