package main

// execOutputTree draws what an exec plugin prints.
func execOutputTree(r *random) any {
	configured := "client.authentication.k8s.io/" + pick(r, "v1", "v1", "v1beta1")
	status := map[string]any{"token": usually(r, 20, "tok", "a.b.c", "a.b.c", "", "é", "t\n", " t")}
	if r.chance(40) {
		status["expirationTimestamp"] = usually(r, 50, "2031-03-04T05:06:07Z", "2031-03-04T05:06:07Z", "2031-03-04T05:06:07Z", "2031-03-04T05:06:07.123456789+01:00", "2031-03-04T05:06:07.5-00:30", "0001-01-01T00:00:00Z", nil, "2031-03-04", "", 5, "2031-03-04t05:06:07z", "2031-13-04T05:06:07Z", "2031-03-04T24:00:00Z", "2031-03-04T05:06:60Z")
	}
	if r.chance(30) {
		made := material()
		status["clientCertificateData"] = pick[any](r, made.certificate, made.certificate, made.certificate+made.certificate, r.oddPEM(made.certificate), "x", "", nil)
		status["clientKeyData"] = pick[any](r, made.key, made.key, r.oddPEM(made.key), made.certificate, "x", "", nil)
	}
	credential := map[string]any{
		"apiVersion": pick(r, configured, configured, configured, configured, configured, configured, configured, "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1alpha1", "v1"),
		"kind":       "ExecCredential",
		"status":     status,
	}
	if r.chance(20) {
		credential["spec"] = pick[any](r, map[string]any{}, map[string]any{"interactive": true}, map[string]any{"interactive": "x"}, nil, "x", map[string]any{"cluster": map[string]any{"server": 5}})
	}
	if r.chance(10) {
		r.vary(credential, "apiVersion", "kind", "status", "spec")
	}
	if r.chance(10) {
		r.vary(status, "token", "expirationTimestamp", "clientCertificateData", "clientKeyData")
	}
	if r.chance(12) {
		r.repeat(pick(r, credential, status, status), "apiVersion", "kind", "status", "spec", "token", "expirationTimestamp", "clientCertificateData", "clientKeyData")
	}
	document := r.document(credential)
	document["style"] = pick(r, "json", "json", "json", "yaml")
	return map[string]any{"apiVersion": configured, "stdout": document, "exit": usually(r, 3, 0, 1, 7)}
}

func renderExecOutput(tree any) (map[string]any, bool) {
	members, _ := tree.(map[string]any)
	text, ok := renderDocument(members["stdout"])
	version, also := members["apiVersion"].(string)
	exit, too := members["exit"].(int)
	return map[string]any{"apiVersion": version, "stdout": text, "exit": exit}, ok && also && too
}

// execInfoTree draws an exec user and its cluster.
func execInfoTree(r *random) any {
	out := map[string]any{
		"apiVersion":         "client.authentication.k8s.io/" + pick(r, "v1", "v1", "v1", "v1", "v1beta1", "v1beta1", "v1beta1", "v1alpha1"),
		"interactiveMode":    usually(r, 40, "Never", "IfAvailable", "IfAvailable", "Always", nil, "never", ""),
		"provideClusterInfo": r.chance(70),
		"server":             pick(r, "https://api.example:6443", "https://api.example", "https://api.example/k8s/c-1", "https://[::1]:6443/", "http://api.example", "https://api.example:6443?x=<&>", "api.example:443", "https://é.example"),
	}
	if r.chance(30) {
		out["caData"] = pick(r, base64Text(material().certificate), base64Text(material().certificate+"trailing"))
	}
	if r.chance(25) {
		out["tlsServerName"] = pick(r, "name.example", "<&>", "é")
	}
	if r.chance(15) {
		out["insecure"] = true
	}
	if r.chance(20) {
		out["proxyUrl"] = pick(r, "http://p:3128", "socks5://p", "https://p/?a=<b>&c")
	}
	if r.chance(15) {
		out["disableCompression"] = true
	}
	if r.chance(50) {
		out["clusterConfig"] = r.value(3)
	}
	return out
}

// value draws any JSON value.
func (r *random) value(depth int) any {
	switch r.IntN(8) {
	case 0, 1:
		if depth > 0 {
			out := map[string]any{}
			for range r.IntN(4) {
				out[pick(r, "a", "z", "M", "_", "é", "a.b", "", "<&>", "1", "apiVersion", "kind")] = r.value(depth - 1)
			}
			return out
		}
		return map[string]any{}
	case 2:
		if depth > 0 {
			return list(several(r, 3, func() any { return r.value(depth - 1) }))
		}
		return []any{}
	case 3:
		return pick[any](r, 0, 1, -5, 9007199254740993, 123456789012)
	case 4:
		return pick[any](r, 1.5, 1e21, 1e-7, 0.1, 100000000.0)
	case 5:
		return pick[any](r, true, false, nil)
	default:
		return pick(r, r.oddText(), "text", "<&>\u2028", "\x7f", "\U0001F600")
	}
}
