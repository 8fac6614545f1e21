package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"
)

// waitReady polls /readyz until it says ok, a process ends, or the limit is reached.
func waitReady(ctx context.Context, out description, made credentials, children *children) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	roots := x509.NewCertPool()
	roots.AddCert(made.serverCA.certificate)
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		Timeout:   5 * time.Second,
	}
	last := "no answer yet"
	for {
		if err := children.lost(); err != nil {
			return err
		}
		ready, answer := probe(ctx, client, out.Server+"/readyz")
		if ready {
			return nil
		}
		last = answer
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %s; the end of the API server's log:\n%s", readyLimit, last, tail(children.log("kube-apiserver")))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) (bool, string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err.Error()
	}
	response, err := client.Do(request)
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
	return response.StatusCode == http.StatusOK, fmt.Sprintf("%s: %s", response.Status, text)
}
