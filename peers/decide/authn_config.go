package decide

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// ConfigInput is the text of one configuration file.
type ConfigInput struct {
	Config string `json:"config"`
}

// ConfigDecision says whether a configuration file would be taken.
type ConfigDecision struct {
	Valid    bool         `json:"valid"`
	Stage    string       `json:"stage,omitempty"`
	Errors   []FieldError `json:"errors"`
	Messages []string     `json:"messages,omitempty"`
}

// FieldError is one complaint of a validation.
type FieldError struct {
	Type   string `json:"type"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Making the two environments takes longer than most compilations; every decision shares them.
var compiler = sync.OnceValue(authenticationcel.NewDefaultCompiler)

var authenticationCodecs = sync.OnceValue(func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
})

func authnConfig(input ConfigInput) (ConfigDecision, error) {
	config, err := DecodeAuthentication(input.Config)
	if err != nil {
		return refused("decode", err), nil
	}
	return validated(validation.ValidateAuthenticationConfiguration(compiler(), config, nil)), nil
}

// DecodeAuthentication reads the text of a configuration file strictly, as the API server does.
func DecodeAuthentication(text string) (*apiserver.AuthenticationConfiguration, error) {
	if text == "" {
		return nil, errors.New("empty config data")
	}
	object, err := runtime.Decode(authenticationCodecs().UniversalDecoder(), []byte(text))
	if err != nil {
		return nil, err
	}
	config, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, errors.New("not an AuthenticationConfiguration")
	}
	return config, nil
}

func refused(stage string, err error) ConfigDecision {
	return ConfigDecision{Stage: stage, Errors: []FieldError{}, Messages: []string{err.Error()}}
}

func validated(complaints field.ErrorList) ConfigDecision {
	decision := ConfigDecision{Valid: len(complaints) == 0, Errors: []FieldError{}}
	if !decision.Valid {
		decision.Stage = "validate"
	}
	for _, complaint := range complaints {
		decision.Errors = append(decision.Errors, FieldError{string(complaint.Type), complaint.Field, complaint.Detail})
	}
	return decision
}
