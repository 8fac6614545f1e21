package main

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// imageName draws a reference, often of a registry that a pattern may know.
func (r *random) imageName() string {
	labels := func() string {
		parts := make([]string, 1+r.IntN(4))
		for index := range parts {
			parts[index] = pick(r, "a", "registry", "gcr", "io", "example", "com", "x-1", "dkr", "ecr", "123456789012", "us-east-1", "localhost", "A", "é", "")
		}
		return strings.Join(parts, ".")
	}
	name := pick(r, labels(), labels(), "docker.io", "index.docker.io", "localhost", "10.0.0.1", "[::1]", "library")
	if r.chance(30) {
		name += ":" + pick(r, "5000", "80", "443", "", "latest", "65536")
	}
	for range r.IntN(4) {
		name += "/" + pick(r, "a", "foo", "bar", "v1", "v2", "", "..", "a b", "%2f", "é", "*")
	}
	if r.chance(25) {
		name += pick(r, ":latest", ":v1", "@sha256:"+strings.Repeat("0", 64), "?", "#x")
	}
	return name
}

// imagePattern changes an image into something that may match it.
func (r *random) imagePattern(image string) string {
	host, path, slash := strings.Cut(image, "/")
	parts := strings.Split(host, ".")
	for index := range parts {
		if r.chance(30) {
			parts[index] = pick(r, "*", "*", "?", "[a-z]*", "*"+parts[index], "[", "**", `\*`, "[^a]", "*-*", parts[index]+"x")
		}
	}
	out := strings.Join(parts, ".")
	if r.chance(10) {
		out = strings.TrimPrefix(out, parts[0]+".")
	}
	if r.chance(8) {
		out += pick(r, ":443", ":*", ":", ".")
	}
	if slash && r.chance(60) {
		out += "/" + path[:min(len(path), r.IntN(len(path)+1))]
		out = strings.ToValidUTF8(out, "")
	}
	if r.chance(5) {
		out = pick(r, "", "*", "https://"+out, "//"+out, " "+out, out+"?q", "%zz", "user@"+out)
	}
	return out
}

func imageMatchTree(r *random) any {
	image := r.imageName()
	pattern := r.imagePattern(image)
	if r.chance(15) {
		pattern = r.imagePattern(r.imageName())
	}
	return map[string]any{"pattern": pattern, "image": image}
}

// imageConfigTree draws a CredentialProviderConfig, mostly nearly right.
func imageConfigTree(r *random) any {
	var providers []any
	for range r.IntN(3) + 1 {
		provider := map[string]any{
			"name":                 pick(r, "ecr", "gcr", "acr", "x.sh", "d", "e", "f", "g", "h", "é", "a/b", "a b", ".", "..", ""),
			"apiVersion":           "credentialprovider.kubelet.k8s.io/" + pick(r, "v1", "v1", "v1", "v1", "v1", "v1beta1", "v1alpha1", "v2"),
			"matchImages":          list(append(several(r, 2, func() string { return r.imagePattern(r.imageName()) }), pick(r, "*.example", "a.io/x", "a:80"))),
			"defaultCacheDuration": pick[any](r, "12h", "0s", "1h30m", "-1s", nil, "1.5h", "9223372036854775807ns", "1us"),
		}
		if r.chance(30) {
			provider["args"] = pick[any](r, []any{"a"}, []any{}, nil)
			provider["env"] = pick[any](r, []any{map[string]any{"name": "N", "value": "v"}}, nil, []any{map[string]any{"name": "N"}}, []any{map[string]any{"value": "v"}})
		}
		if r.chance(30) {
			provider["tokenAttributes"] = r.tokenAttributes()
		}
		if r.chance(4) {
			provider["defaultCacheDuration"] = pick[any](r, "", 5, "1d", "h", "1h ", "+1h", ".5s")
		}
		if r.chance(5) {
			r.vary(provider, "name", "apiVersion", "matchImages", "defaultCacheDuration", "tokenAttributes", "args")
		}
		providers = append(providers, provider)
	}
	config := map[string]any{"apiVersion": "kubelet.config.k8s.io/" + pick(r, "v1", "v1", "v1", "v1beta1", "v1alpha1"), "kind": "CredentialProviderConfig", "providers": providers}
	if r.chance(5) {
		r.vary(config, "apiVersion", "kind", "providers")
	}
	return map[string]any{"config": r.document(config)}
}

func (r *random) tokenAttributes() map[string]any {
	keys := func() any {
		return list(several(r, 3, func() string { return pick(r, "example.com/a", "example.com/b", "x", "Example.com/A", "a b", "", "é") }))
	}
	out := map[string]any{
		"serviceAccountTokenAudience": pick(r, "aud", "aud", ""),
		"requireServiceAccount":       pick[any](r, true, true, false, nil),
		"cacheType":                   pick(r, "Token", "Token", "ServiceAccount", "ServiceAccount", "", "token"),
	}
	if r.chance(40) {
		out["requiredServiceAccountAnnotationKeys"] = keys()
	}
	if r.chance(40) {
		out["optionalServiceAccountAnnotationKeys"] = keys()
	}
	if r.chance(10) {
		r.vary(out, "serviceAccountTokenAudience", "requireServiceAccount", "cacheType")
	}
	return out
}

// imageKeyringTree draws stored credentials and an image.
func imageKeyringTree(r *random) any {
	for {
		tree := r.keyring()
		if _, ok := renderKeyring(tree); ok {
			return tree
		}
	}
}

func (r *random) keyring() any {
	image := r.imageName()
	auths := map[string]any{}
	for index := range 1 + r.IntN(4) {
		key := r.imagePattern(image)
		if r.chance(30) {
			key = pick(r, "https://", "http://") + key + pick(r, "", "/", "/v1/", "/v2/")
		}
		if r.chance(10) {
			key = pick(r, "https://index.docker.io/v1/", "docker.io", "index.docker.io", "https://docker.io/v2/")
		}
		auths[key] = map[string]any{"username": "u" + string(rune('0'+index)), "password": pick(r, "p", "")}
	}
	if r.chance(60) {
		return map[string]any{"auths": auths, "image": image}
	}
	if len(auths) == 1 {
		for key := range auths {
			auths[key] = r.dockerEntry()
		}
	}
	return map[string]any{"file": map[string]any{pick(r, "auths", "auths", "auths", "Auths", "auth"): auths}, "image": image}
}

// renderKeyring refuses keys that normalise to one: Kubernetes gives their credentials in random order.
func renderKeyring(tree any) (map[string]any, bool) {
	members, _ := tree.(map[string]any)
	image, ok := members["image"].(string)
	if !ok {
		return nil, false
	}
	out := map[string]any{"image": image}
	stored := []any{members["auths"]}
	if auths, there := members["auths"].(map[string]any); there {
		out["auths"] = auths
	} else if file, there := members["file"].(map[string]any); there {
		out["docker_config"] = jsonText(file)
		stored = slices.Collect(maps.Values(file))
	} else {
		return nil, false
	}
	taken := map[string]bool{}
	for _, each := range stored {
		auths, _ := each.(map[string]any)
		for key := range auths {
			normal := normalKey(key)
			if taken[normal] {
				return nil, false
			}
			taken[normal] = true
		}
	}
	return out, true
}

func normalKey(key string) string {
	if !strings.HasPrefix(key, "https://") && !strings.HasPrefix(key, "http://") {
		key = "https://" + key
	}
	parsed, err := url.Parse(key)
	if err != nil {
		return "not parsed: " + key
	}
	path := parsed.Path
	if strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v2/") {
		path = path[3:]
	}
	return parsed.Host + strings.TrimSuffix(path, "/")
}

func (r *random) dockerEntry() any {
	return pick[any](r, map[string]any{"auth": base64Text("user:pass")}, map[string]any{"auth": base64Text("user:pa:ss")}, map[string]any{"auth": base64Text("user")}, map[string]any{"auth": "!"},
		map[string]any{"auth": strings.TrimRight(base64Text("us:pas"), "=")}, map[string]any{"auth": ""}, map[string]any{"username": "u", "password": "p", "email": "e"}, map[string]any{"identitytoken": "t"},
		map[string]any{"username": 5}, "x", nil, map[string]any{"auth": base64Text("user:pass") + "\n"}, map[string]any{"Auth": base64Text("a:b"), "username": "u"})
}

// imageResponseTree draws what a provider plugin prints.
func imageResponseTree(r *random) any {
	configured := "credentialprovider.kubelet.k8s.io/" + pick(r, "v1", "v1", "v1beta1", "v1alpha1")
	response := map[string]any{
		"apiVersion":   pick(r, configured, configured, configured, configured, configured, configured, configured, "credentialprovider.kubelet.k8s.io/v1", "v1"),
		"kind":         "CredentialProviderResponse",
		"cacheKeyType": pick(r, "Image", "Registry", "Global", "image", ""),
		"auth":         pick[any](r, map[string]any{}, nil, map[string]any{"reg.example": map[string]any{"username": "u", "password": "p"}}, map[string]any{"*.example/x": map[string]any{"username": "u"}, "b": nil}),
	}
	if r.chance(60) {
		response["cacheDuration"] = pick[any](r, "1h", "0s", "-5m", "1h30m10.5s", nil, "2562047h47m16.854775807s", "+1h", ".5h", "1µs", "1h1h")
	}
	if r.chance(10) {
		response["cacheDuration"] = pick[any](r, "", 5, "1d", "1", "µs", "2562047h47m17s", "1 h")
	}
	if r.chance(25) {
		r.vary(response, "apiVersion", "kind", "cacheKeyType", "auth", "cacheDuration")
	}
	document := r.document(response)
	document["style"] = pick(r, "json", "json", "json", "yaml")
	return map[string]any{"apiVersion": configured, "response": document}
}

func renderImageResponse(tree any) (map[string]any, bool) {
	members, _ := tree.(map[string]any)
	text, ok := renderDocument(members["response"])
	version, also := members["apiVersion"].(string)
	return map[string]any{"apiVersion": version, "response": text}, ok && also
}
