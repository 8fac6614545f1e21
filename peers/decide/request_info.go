package decide

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// RequestInput is the start of a request: its method, and its target in origin form (path and query).
type RequestInput struct {
	Method string `json:"method"`
	Target string `json:"target"`
}

// RequestDecision is kube-apiserver's RequestInfo; `ok` is false if it answers the request with an error instead.
type RequestDecision struct {
	OK                bool     `json:"ok"`
	Error             string   `json:"error,omitempty"`
	IsResourceRequest bool     `json:"isResourceRequest"`
	Path              string   `json:"path"`
	Verb              string   `json:"verb"`
	APIPrefix         string   `json:"apiPrefix"`
	APIGroup          string   `json:"apiGroup"`
	APIVersion        string   `json:"apiVersion"`
	Namespace         string   `json:"namespace"`
	Resource          string   `json:"resource"`
	Subresource       string   `json:"subresource"`
	Name              string   `json:"name"`
	Parts             []string `json:"parts"`
	FieldSelector     string   `json:"fieldSelector"`
	LabelSelector     string   `json:"labelSelector"`
}

// The prefixes that kube-apiserver configures.
var requestInfos = request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

func requestInfo(input RequestInput) (RequestDecision, error) {
	if !strings.HasPrefix(input.Target, "/") {
		return RequestDecision{}, errors.New("`target` must begin with `/`")
	}
	target, err := url.ParseRequestURI(input.Target)
	if err != nil {
		return RequestDecision{Error: err.Error()}, nil
	}
	// A line of JSON cannot carry other bytes; the other members are parts of the path and of these two selectors.
	if !utf8.ValidString(target.Path) {
		return RequestDecision{}, errNotUTF8
	}
	info, err := requestInfos.NewRequestInfo(&http.Request{Method: input.Method, URL: target})
	if err != nil {
		return RequestDecision{Error: err.Error()}, nil
	}
	decision := RequestDecision{
		OK:                true,
		IsResourceRequest: info.IsResourceRequest,
		Path:              info.Path,
		Verb:              info.Verb,
		APIPrefix:         info.APIPrefix,
		APIGroup:          info.APIGroup,
		APIVersion:        info.APIVersion,
		Namespace:         info.Namespace,
		Resource:          info.Resource,
		Subresource:       info.Subresource,
		Name:              info.Name,
		Parts:             append([]string{}, info.Parts...),
		FieldSelector:     info.FieldSelector,
		LabelSelector:     info.LabelSelector,
	}
	if !utf8.ValidString(decision.FieldSelector) || !utf8.ValidString(decision.LabelSelector) {
		return RequestDecision{}, errNotUTF8
	}
	return decision, nil
}

var errNotUTF8 = errors.New("the answer is not UTF-8")
