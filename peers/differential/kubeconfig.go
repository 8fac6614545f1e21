package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"time"
)

// kubeconfigTree draws one to three files that refer to each other's entries.
func kubeconfigTree(r *random) any {
	for {
		tree := r.kubeconfigs()
		if _, ok := renderKubeconfig(tree); ok {
			return tree
		}
	}
}

func (r *random) kubeconfigs() any {
	files := map[string]any{}
	var order []any
	for _, name := range []string{"a.yaml", "sub/b.yaml", "c"}[:1+r.IntN(3)] {
		files[name] = r.document(r.kubeconfig())
		order = append(order, name)
	}
	if r.chance(10) {
		order = append(order, pick(r, "missing.yaml", "a.yaml", "sub"))
	}
	tree := map[string]any{"files": files, "kubeconfig": order, "context": pick[any](r, nil, nil, "one", "two", "", "nope")}
	if r.chance(40) {
		tree["material"] = true
	}
	if r.chance(20) {
		tree["overrides"] = r.overrides()
	}
	return tree
}

func renderKubeconfig(tree any) (map[string]any, bool) {
	members, _ := tree.(map[string]any)
	documents, ok := members["files"].(map[string]any)
	order, also := members["kubeconfig"].([]any)
	if !ok || !also {
		return nil, false
	}
	files := map[string]any{}
	for name, document := range documents {
		text, ok := renderDocument(document)
		// What lies outside the directory is nobody's business.
		if !ok || !strings.HasPrefix(name, "sub/") && strings.Contains(text, "..") {
			return nil, false
		}
		files[name] = text
	}
	if members["material"] == true {
		made := material()
		files["ca.crt"], files["c.crt"], files["c.key"], files["t.txt"] = made.certificate, made.certificate, made.key, "token-from-file\n"
	}
	out := map[string]any{"files": files, "kubeconfig": order, "context": members["context"]}
	if overrides, there := members["overrides"]; there {
		out["overrides"] = overrides
	}
	return out, true
}

func (r *random) kubeconfig() map[string]any {
	config := map[string]any{"apiVersion": "v1", "kind": "Config"}
	named := func(member string, draw func() map[string]any) []any {
		var out []any
		for _, name := range []string{"one", "two", "three"} {
			if r.chance(35) {
				continue
			}
			entry := map[string]any{"name": name, member: draw()}
			if r.chance(1) {
				r.vary(entry, "name", member)
			}
			if out = append(out, entry); r.chance(1) {
				out = append(out, entry)
			}
		}
		return out
	}
	config["clusters"] = named("cluster", r.cluster)
	config["users"] = named("user", r.authInfo)
	config["contexts"] = named("context", func() map[string]any {
		out := map[string]any{"cluster": pick(r, "one", "two", "three", "one", "two", "nope"), "user": pick(r, "one", "two", "three", "two", "")}
		if r.chance(30) {
			out["namespace"] = pick(r, "dev", "", "Not A Namespace")
		}
		return out
	})
	if r.chance(70) {
		config["current-context"] = pick(r, "one", "two", "", "nope")
	}
	if r.chance(15) {
		config["preferences"] = pick[any](r, map[string]any{}, map[string]any{"colors": true}, nil)
	}
	if r.chance(15) {
		config["extensions"] = r.extensions()
	}
	if r.chance(3) {
		r.repeat(config, "apiVersion", "kind", "clusters", "users", "contexts", "current-context")
	}
	if r.chance(6) {
		r.vary(config, "apiVersion", "kind", "clusters", "users", "contexts", "current-context")
	}
	return config
}

func (r *random) cluster() map[string]any {
	out := map[string]any{"server": pick(r, "https://127.0.0.1:1", "https://127.0.0.1:1", "https://127.0.0.1:1", "https://127.0.0.1:1/base", "http://127.0.0.1:1", "https://h.example", "127.0.0.1:1", "", "::bad", "https://h.example:6443/")}
	add := func(percent int, name string, values ...any) {
		if r.chance(percent) {
			out[name] = pick(r, values...)
		}
	}
	add(15, "certificate-authority", "ca.crt", "ca.crt", "ca.crt", "../ca.crt", "/nonexistent/ca", "", "sub", ".")
	add(12, "certificate-authority-data", base64Text(material().certificate), base64Text(material().certificate), base64Text(r.oddPEM(material().certificate)), "eA==", "")
	add(12, "insecure-skip-tls-verify", true, true, false)
	add(1, "certificate-authority-data", "!", 5)
	add(1, "insecure-skip-tls-verify", "true")
	add(15, "tls-server-name", "h.example", "")
	add(15, "proxy-url", "http://p:3128", "socks5://p", "ftp://p", "p", "http://u:secret@p", "", "HTTP://p", "Socks5://p:1", "FTP://p", "http:p")
	add(10, "disable-compression", true, false)
	if r.chance(15) {
		out["extensions"] = r.extensions()
	}
	if r.chance(2) {
		r.vary(out, "server", "proxy-url", "extensions")
	}
	return out
}

func (r *random) extensions() any {
	first := r.IntN(3)
	return list(several(r, 2, func() any {
		first++
		return map[string]any{"name": []string{"client.authentication.k8s.io/exec", "x", "y"}[first%3], "extension": pick[any](r, map[string]any{"a": 1, "B": []any{true}}, "text", 5, nil, []any{}, map[string]any{"kind": "K", "apiVersion": "v9", "z": nil})}
	}))
}

func (r *random) authInfo() map[string]any {
	out := map[string]any{}
	made := material()
	for range pick(r, 1, 1, 1, 2) {
		switch r.IntN(8) {
		case 0, 1:
			out["token"] = pick(r, "tok", "", "t o k")
		case 2:
			out["tokenFile"] = pick(r, "t.txt", "../t.txt", "/nonexistent/t", "")
		case 3:
			out["username"], out["password"] = pick(r, "u", ""), pick(r, "p", "")
		case 4:
			out["client-certificate"], out["client-key"] = pick(r, "c.crt", "c.crt", "../c.crt", "", "sub"), pick(r, "c.key", "c.key", "../c.key", "", "sub")
		case 5:
			out["client-certificate-data"], out["client-key-data"] = pick[any](r, base64Text(made.certificate), base64Text(r.oddPEM(made.certificate)), "eA==", nil), pick[any](r, base64Text(made.key), base64Text(r.oddPEM(made.key)), "eA==", nil)
		case 6:
			out["exec"] = r.execUser()
		case 7:
			out["auth-provider"] = pick[any](r, map[string]any{"name": "oidc", "config": map[string]any{"idp-issuer-url": "https://i", "id-token": "secret"}}, map[string]any{"name": "gcp"}, map[string]any{"name": "x", "config": nil}, map[string]any{})
		}
	}
	if r.chance(15) {
		out["as"] = pick(r, "boss", "")
		if r.chance(50) {
			out["as-groups"] = []any{"g"}
			out["as-uid"] = "u"
			out["as-user-extra"] = map[string]any{"k": []any{"v"}}
		}
	}
	if r.chance(2) {
		r.vary(out, "token", "exec", "as", "as-groups", "username")
	}
	return out
}

func (r *random) execUser() map[string]any {
	out := map[string]any{
		"apiVersion": "client.authentication.k8s.io/" + pick(r, "v1", "v1", "v1beta1", "v1alpha1", "v7"),
		"command":    pick(r, "plug", "./plug", "bin/plug", "../plug", "/usr/bin/plug", ""),
	}
	add := func(percent int, name string, values ...any) {
		if r.chance(percent) {
			out[name] = pick(r, values...)
		}
	}
	add(75, "interactiveMode", "Never", "IfAvailable", "Always", "never", "", nil)
	add(40, "args", []any{"a", "--x=secret"}, []any{}, nil)
	add(40, "env", []any{map[string]any{"name": "N", "value": "secret"}}, []any{map[string]any{"name": ""}}, []any{}, nil)
	add(25, "provideClusterInfo", true, false)
	add(20, "installHint", "brew install\x1b[31m", "", "é")
	add(8, "config", map[string]any{"a": 1})
	return out
}

func (r *random) overrides() map[string]any {
	out := map[string]any{}
	for range 1 + r.IntN(2) {
		switch r.IntN(9) {
		case 0:
			out["server"] = pick(r, "https://127.0.0.1:2", "http://h", "")
		case 1:
			out["token"] = pick(r, "ovr", "")
		case 2:
			out["user"] = pick(r, "one", "two", "ghost")
		case 3:
			out["cluster"] = pick(r, "one", "two", "ghost")
		case 4:
			out["as"] = pick(r, "boss", "")
		case 5:
			out["as-group"] = []any{"g", "h"}
		case 6:
			out["insecure-skip-tls-verify"] = true
		case 7:
			out["namespace"] = pick(r, "ns", "namespaces/ns")
		case 8:
			out["client-certificate"] = "/nonexistent/c"
		}
	}
	return out
}

// pemPair is a certificate and its key.
type pemPair struct{ certificate, key string }

// material is a throw-away key pair made for this run.
var material = sync.OnceValue(func() pemPair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system has no randomness
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "differential", Organization: []string{"throw-away test key"}},
		NotBefore:             time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return pemPair{
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
})

func base64Text(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// oddPEM writes a block in a way that only some readers accept.
func (r *random) oddPEM(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first, last := lines[0], lines[len(lines)-1]
	content := lines[1 : len(lines)-1]
	switch r.IntN(12) {
	case 0:
		return "  " + strings.Join(lines, "\n  ") + "\n"
	case 1:
		return first + "\n  " + strings.Join(content, "\n\t") + "\n" + last + "\n"
	case 2:
		return " " + text
	case 3:
		return first + "\n" + strings.Join(content, "\n") + "\n " + last + "\n"
	case 4:
		return strings.ReplaceAll(text, "\n", pick(r, "\r\n", " \n", "\n\n", "\r", " "))
	case 5:
		return first + "\nName: value\n" + pick(r, "", "\n") + strings.Join(content, "\n") + "\n" + last + "\n"
	case 6:
		return pick(r, "text\n", "text ", "\ufeff", "\n\n", first+"\n", first+"\nAAAA\n", first+"\n!\n"+last+"\n") + text
	case 7:
		return strings.ReplaceAll(text, "-----BEGIN ", pick(r, "-----BEGIN X ", "----BEGIN ", "-----begin "))
	case 8:
		return first + "\n" + strings.Join(content, "\n") + "\n" + pick(r, "-----END KEY-----", last+" ", last+" x", "") + "\n"
	case 9:
		return first + "\n" + strings.Join(content, "") + "\n" + last
	case 10:
		return first + "\n" + strings.Join(content[1:], "\n") + "\n" + last + "\n"
	default:
		return text + pick(r, "text", text, first, last, "\x00")
	}
}
