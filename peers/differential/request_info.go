package main

import (
	"net/url"
	"strings"
)

// requestInfoTree draws the start of a request as its parts, so that a disagreement shrinks to few of them.
func requestInfoTree(r *random) any {
	method := pick(r, "GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", "Get", "PROPFIND", "LIST", "WATCH", "")
	return map[string]any{"method": method, "segments": list(r.requestSegments()), "end": pick(r, "", "", "", "", "/", "//"), "query": list(r.requestQuery())}
}

// renderRequestInfo puts the parts together.
func renderRequestInfo(tree any) (map[string]any, bool) {
	members, ok := tree.(map[string]any)
	if !ok {
		return nil, false
	}
	method, _ := members["method"].(string)
	segments, _ := members["segments"].([]any)
	query, _ := members["query"].([]any)
	end, _ := members["end"].(string)
	target := ""
	for _, segment := range segments {
		text, _ := segment.(string)
		target += "/" + text
	}
	target += end
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	for index, pair := range query {
		text, _ := pair.(string)
		target += separator(index) + text
	}
	return map[string]any{"method": method, "target": target}, true
}

func separator(index int) string {
	if index == 0 {
		return "?"
	}
	return "&"
}

// requestSegments draws a path: mostly one of the forms that kube-apiserver knows, then damaged.
func (r *random) requestSegments() []string {
	var out []string
	switch r.IntN(10) {
	case 0:
		out = pick(r, []string{"healthz"}, []string{"version"}, []string{"openapi", "v3", "apis", "apps", "v1"}, []string{}, []string{"logs", "x"},
			[]string{"metrics"}, []string{"readyz", "etcd"}, []string{"apix", "v1", "pods"}, []string{"API", "v1", "pods"}, []string{"*"})
	case 1, 2, 3, 4:
		out = append(out, "api", pick(r, "v1", "v1", "v1", "v2", "v1beta1", "V1", "", "watch", "proxy", "namespaces"))
	default:
		group := pick(r, "apps", "batch", "rbac.authorization.k8s.io", "authorization.k8s.io", "authentication.k8s.io", "example.com", "é.example", "", "v1", "watch", strings.Repeat("g", 300))
		out = append(out, "apis", group, pick(r, "v1", "v1", "v1", "v1alpha1", "v2beta10", "__internal", "", "watch", "proxy"))
	}
	if r.chance(20) {
		out = append(out, pick(r, "watch", "watch", "proxy", "redirect", "Watch", "%77atch", "watch%2Fnamespaces"))
	}
	if r.chance(55) {
		out = append(out, pick(r, "namespaces", "namespaces", "namespaces", "namespaces", "Namespaces", "n%61mespaces"))
		if r.chance(90) {
			out = append(out, r.objectName())
		}
	}
	for range r.IntN(5) {
		out = append(out, pick(r, r.resourceWord(), r.resourceWord(), r.objectName()))
	}
	if r.chance(25) {
		r.damageSegments(&out)
	}
	return out
}

func (r *random) resourceWord() string {
	return pick(r, "pods", "services", "nodes", "deployments", "namespaces", "secrets", "events", "watch", "proxy", "status", "finalize", "scale", "log",
		"exec", "attach", "portforward", "token", "binding", "eviction", "selfsubjectaccessreviews", "ephemeralcontainers", "STATUS", "%70roxy", "e%78ec")
}

func (r *random) objectName() string {
	return pick(r, "a", "b-1", "kube-system", "default", "status", "finalize", "proxy", "watch", "namespaces", "https:web:443", "a.b.c", "é", "日本", "a%20b",
		"a+b", "a%2Bb", "sha256:abc@def", strings.Repeat("n", 400), "%E6%97%A5", "x;y=1", "a=b&c", "~a", "a%25b", "a%2fb")
}

// damageSegments changes a path into something that two parsers may read differently.
func (r *random) damageSegments(segments *[]string) {
	index := r.IntN(len(*segments) + 1)
	odd := pick(r, "", "", ".", "..", "%2e", "%2E%2e", "%2F", "%2f%2F", "%", "%z", "%zz", "%4", "%00", "%0a", "%ff", "%c3%28", "\\", "%5c", "#", ";", "a;b", "%3F", "%3f", "%23", "\x7f", "\t", "%7F", "[", "\"", "<>", "|", "*", "%20")
	*segments = append((*segments)[:index:index], append([]string{odd}, (*segments)[index:]...)...)
}

// requestQuery draws parameters, often those of a list.
func (r *random) requestQuery() []string {
	if r.chance(30) {
		return nil
	}
	return several(r, 4, func() string {
		name := pick(r, "watch", "watch", "watch", "fieldSelector", "fieldSelector", "fieldSelector", "labelSelector", "limit", "timeoutSeconds", "resourceVersion",
			"allowWatchBookmarks", "sendInitialEvents", "continue", "shardSelector", "resourceVersionMatch", "Watch", "w%61tch", "pretty", "dryRun", "")
		var value string
		switch name {
		case "watch", "w%61tch", "Watch", "allowWatchBookmarks", "sendInitialEvents":
			value = pick(r, "true", "1", "false", "0", "", "FALSE", "False", "fal%C5%BFe", "no", "00", "f", "%", "%ff", "true;x", "+0")
		case "fieldSelector":
			value = r.escaped(r.fieldSelector())
		case "labelSelector":
			value = r.escaped(r.labelSelector())
		case "limit", "timeoutSeconds":
			value = pick(r, "500", "0", "-1", "", "x", "1.5", "9223372036854775807", "9223372036854775808", "%2B5", "+5", "1_000", "0x1", "-", "٣")
		default:
			value = pick(r, "", "0", "a", "%", "%zz", "a;b", "a=b", "é")
		}
		if r.chance(8) {
			return name
		}
		return name + "=" + value
	})
}

// escaped writes a parameter's value, now and then as it is.
func (r *random) escaped(value string) string {
	if r.chance(75) {
		return url.QueryEscape(value)
	}
	return strings.NewReplacer("&", "%26", "\x00", "%00", "\n", "%0A", "\t", "%09").Replace(value)
}

func (r *random) fieldSelector() string {
	term := func() string {
		field := pick(r, "metadata.name", "metadata.name", "metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "", "metadata.name ", "Metadata.name", "a!b", "é")
		value := pick(r, "a", "b", "web-1", "", ".", "..", "a/b", "a%b", `a\,b`, `a\=b`, `a\\b`, `a\b`, `a\`, "a=b", "é", strings.Repeat("n", 300), " a", "a!=b", "\x00")
		return field + pick(r, "=", "=", "==", "!=", "", "!", "===", "=!") + value
	}
	return strings.Join(several(r, 3, term), pick(r, ",", ",", ",,", `\,`))
}

func (r *random) labelSelector() string {
	key := func() string {
		return pick(r, "app", "a", "tier", "example.com/app", "kubernetes.io/metadata.name", "in", "notin", "a/b/c", "/a", "a/", "Example.com/a", "-a", "a-", "a_b.c", "", "é", strings.Repeat("k", 64), strings.Repeat("d", 254)+"/a", "a..b/c")
	}
	value := func() string {
		return pick(r, "a", "b", "web-1", "", "1", "-1", "+1", "a b", "a_b", "-", "é", "in", "notin", strings.Repeat("v", 63), strings.Repeat("v", 64), "9223372036854775808", "x\x00y")
	}
	term := func() string {
		switch r.IntN(8) {
		case 0:
			return key()
		case 1:
			return pick(r, "!", "! ", "!!") + key()
		case 2, 3, 4:
			return key() + pick(r, "=", "==", "!=", " = ", "===", "=!", "<", ">", " > ") + value()
		case 5, 6:
			return key() + pick(r, " in ", " notin ", "in", " In ", " in") + pick(r, "(", "( ", "") + strings.Join(several(r, 3, value), pick(r, ",", ", ", ",,", " ")) + pick(r, ")", " )", "", "))")
		}
		return pick(r, "", " ", "=", "(", ")", "a=b=c", "a b", "!a=b", "\x00", "a\tin\n(b)")
	}
	return strings.Join(several(r, 3, term), pick(r, ",", ",", ", ", ",,", " "))
}
