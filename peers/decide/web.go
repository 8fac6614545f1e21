package decide

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Answer is one page of an in-memory web. A page that is not there cannot be reached at all.
type Answer struct {
	// Status is 200 if absent.
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	// Body is sent as it stands if it is a text, as JSON otherwise.
	Body json.RawMessage `json:"body"`
}

// web answers requests from its pages.
type web struct {
	pages      map[string]Answer
	configured []string
	giveUp     context.CancelFunc
	stopping   atomic.Bool
}

const discoveryPath = "/.well-known/openid-configuration"

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(request *http.Request) (*http.Response, error) {
	w.limitClaimSource(request.URL.String())
	page, ok := w.pages[request.URL.String()]
	if !ok {
		return nil, errors.New("connection refused")
	}
	body := []byte(page.Body)
	var text string
	if json.Unmarshal(page.Body, &text) == nil {
		body = []byte(text)
	}
	response := respond(body)
	response.Request = request
	if page.Status != 0 {
		response.StatusCode = page.Status
		response.Status = http.StatusText(page.Status)
	}
	for name, value := range page.Headers {
		response.Header.Set(name, value)
	}
	return response, nil
}

// limitClaimSource ends the wait for the issuer of a distributed claim. Upstream tries again after ten seconds and for
// ever; what a first request gets is decided well before that.
func (w *web) limitClaimSource(url string) {
	issuer, discovery := strings.CutSuffix(url, discoveryPath)
	if !discovery || w.giveUp == nil || slices.Contains(w.configured, issuer) || w.stopping.Swap(true) {
		return
	}
	time.AfterFunc(time.Second, w.giveUp)
}

// everywhere gives one answer to every request.
type everywhere []byte

// RoundTrip implements http.RoundTripper.
func (body everywhere) RoundTrip(request *http.Request) (*http.Response, error) {
	response := respond(body)
	response.Request = request
	return response, nil
}

func respond(body []byte) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK,
		Status:     "200 OK",
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}
}
