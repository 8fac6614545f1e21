package main

// authnConfigTree draws an AuthenticationConfiguration, mostly nearly right.
func authnConfigTree(r *random) any {
	config := r.authentication(3)
	if r.chance(12) {
		r.vary(config, "apiVersion", "kind", "jwt", "anonymous")
	}
	if r.chance(30) {
		config["anonymous"] = r.anonymous()
	}
	return map[string]any{"config": r.document(config)}
}

func renderConfig(tree any) (map[string]any, bool) {
	members, _ := tree.(map[string]any)
	text, ok := renderDocument(members["config"])
	return map[string]any{"config": text}, ok
}

func (r *random) authentication(issuers int) map[string]any {
	config := map[string]any{
		"apiVersion": "apiserver.config.k8s.io/" + pick(r, "v1", "v1", "v1", "v1beta1", "v1alpha1"),
		"kind":       "AuthenticationConfiguration",
	}
	var jwt []any
	for index := range 1 + r.IntN(issuers) {
		member := r.jwtAuthenticator(index)
		if r.chance(35) {
			r.misconfigure(member)
		}
		jwt = append(jwt, member)
	}
	config["jwt"] = jwt
	return config
}

func (r *random) jwtAuthenticator(index int) map[string]any {
	mappings := map[string]any{"username": r.prefixed("sub", "string")}
	if r.chance(60) {
		mappings["groups"] = r.prefixed("groups", "strings")
	}
	if r.chance(30) {
		mappings["uid"] = pick[any](r, map[string]any{"claim": "oid"}, map[string]any{"expression": r.mapping("string")})
	}
	if r.chance(40) {
		mappings["extra"] = list(several(r, 3, func() any {
			return map[string]any{
				"key":             pick(r, "example.com/a", "example.com/b", "x.y/z/w", "peers.example/k"),
				"valueExpression": r.mapping(pick(r, "string", "strings", "any")),
			}
		}))
	}
	out := map[string]any{
		"issuer": map[string]any{
			"url":       issuerURLs[index%len(issuerURLs)],
			"audiences": pick(r, []any{"kube"}, []any{"kube", "other"}),
		},
		"claimMappings": mappings,
	}
	if audiences := out["issuer"].(map[string]any)["audiences"].([]any); len(audiences) > 1 {
		out["issuer"].(map[string]any)["audienceMatchPolicy"] = "MatchAny"
	}
	if r.chance(50) {
		out["claimValidationRules"] = list(several(r, 3, r.claimRule))
	}
	if r.chance(40) {
		out["userValidationRules"] = list(several(r, 3, r.userRule))
	}
	return out
}

var issuerURLs = []string{"https://issuer.example.com", "https://issuer.example.com/b", "https://other.example:8443/x"}

// prefixed is a claim with a prefix or an expression.
func (r *random) prefixed(claim, kind string) map[string]any {
	if r.chance(50) {
		return map[string]any{"claim": pick(r, claim, claim, "email", "name"), "prefix": pick(r, "", "oidc:", "-")}
	}
	return map[string]any{"expression": r.mapping(kind)}
}

// mapping is an expression of a kind a mapping may have, more often a usual one than a drawn one.
func (r *random) mapping(kind string) node {
	if r.IntN(400) == 0 { // They take long: within a configuration, 250 nested comprehensions take Kubernetes a minute.
		return r.deep(kind, 40)
	}
	if r.chance(60) {
		switch kind {
		case "strings":
			return node{template: r.spelling(pick(r, "claims.groups", "claims.?groups.orValue([])", `claims.csv.split(",")`, `claims.csv.split(",").map(g, "g:" + g)`, "[claims.sub]", `dyn(claims.groups).filter(g, g != "a")`, "claims.sub", "claims.?groups", "[]", `["a", ""]`, `[optional.of("a"), claims.?sub]`, `[claims.?nope]`, `[optional.of(claims.sub)]`, `[optional.of(optional.of("a"))]`, `[claims.?groups]`, `[optional.of(string)]`, `[claims.?n]`, `[optional.of("")]`, `kubernetes.UserInfo{groups: ["a"]}.groups`, `[kubernetes.UserInfo{uid: claims.sub}.uid]`, `[optional.none()]`, `[[claims.?sub]].flatten()`, `[claims.?sub, "a"]`, `[?claims.?sub]`))}
		default:
			return node{template: r.spelling(pick(r, "claims.sub", `"u:" + claims.sub`, "claims.email", ".claims.email", `claims.?email.orValue("")`, "[1].map(claims, .claims.email)[0]", "[claims.email].filter(claims, true)[0]", `[{"email": "a"}].map(claims, claims.email)[0]`, `dyn(claims).email`, `claims.?name.orValue("")`, "string(int(claims.n))", "claims.n", "claims.obj.a", `has(claims.email) ? claims.email : claims.sub`, `kubernetes.UserInfo{username: claims.sub}.username`, `kubernetes.UserInfo{username: claims.sub}`, `google.protobuf.StringValue{value: claims.sub}`, `[claims.sub].map(__result__, __result__)[0]`, `"%.400f".format([claims.n])`, `{null: claims.sub}[null]`, `claims.?email`, `optional.of(claims.sub)`))}
		}
	}
	return r.expression(kind, 1+r.IntN(2), nil)
}

func (r *random) claimRule() any {
	if r.chance(35) {
		return map[string]any{"claim": pick(r, "hd", "tenant", "b", "sub"), "requiredValue": pick(r, "example.com", "a", "", "alice")}
	}
	return map[string]any{
		"expression": pick(r, node{template: r.spelling(pick(r, "claims.email_verified == true", ".claims.email_verified == true", `claims.?email_verified.orValue(false)`, "claims.exp - claims.nbf <= 86400", `claims.?hd.orValue("") == "example.com"`, "true", "claims.b"))}, r.expression("bool", 1+r.IntN(2), nil)),
		"message":    pick(r, "", "no", "é\n"),
	}
}

func (r *random) userRule() any {
	return map[string]any{
		"expression": pick(r, node{template: r.spelling(pick(r, "kubernetes.UserInfo{username: user.username} == user", "kubernetes.UserInfo{nope: 1} == user", "has(kubernetes.UserInfo{}.uid)", "user.groups.all(__result__, __result__ != 'a')", "!user.username.startsWith('system:')", "user.groups.all(g, !g.startsWith('system:'))", "user.uid != ''", "true"))}, r.expression("bool", 1+r.IntN(2), userLeaves)),
		"message":    "no",
	}
}

// misconfigure changes one thing of one issuer.
func (r *random) misconfigure(member map[string]any) {
	issuer := member["issuer"].(map[string]any)
	mappings := member["claimMappings"].(map[string]any)
	switch r.IntN(10) {
	case 0:
		issuer["url"] = pick(r, "", "http://issuer.example.com", "https://issuer.example.com", "https://u@h", "https://h?q", "https://h#f", "https://ex ample", "issuer", "https://issuer.example.com/", "HTTPS://issuer.example.com", "https://[::1", "https://h:port", "https://issuer.example.c[om", "https://h]", "https://a[b]c", "https://[::1]x", "https://[fe80::1%25en0]", "https://h:", "https://h:0", "https://h%41", "https://h/%zz", "https://h/a%2Fb", "https://h\\x", "https://é.example", "https:///x", "https:h", "https://h^", "https://h|", "https://h\"", "https://h<", "https://:1")
	case 1:
		issuer["discoveryURL"] = pick(r, "https://other.example/d", "https://issuer.example.com", "http://x", "", "https://u:p@x/", "https://x?y", "x", "https://other.example/d")
	case 2:
		issuer["certificateAuthority"] = pick(r, "", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	case 3:
		issuer["audiences"] = pick[any](r, nil, []any{}, []any{""}, []any{"a", "a"}, []any{"a", "b"}, "a")
		if r.chance(50) {
			issuer["audienceMatchPolicy"] = pick(r, "MatchAny", "MatchAll", "", "matchany")
		}
	case 4:
		issuer["egressSelectorType"] = pick(r, "controlplane", "cluster", "", "x", "Cluster")
	case 5:
		r.vary(mappings, "username", "groups", "uid", "extra")
	case 6:
		mappings["username"] = pick[any](r, map[string]any{}, map[string]any{"claim": "sub"}, map[string]any{"claim": "sub", "prefix": "", "expression": "claims.sub"}, map[string]any{"expression": "claims.email"}, map[string]any{"prefix": "x"}, map[string]any{"expression": ""}, map[string]any{"claim": "email", "prefix": raw("~")})
	case 7:
		mappings["extra"] = []any{map[string]any{"key": pick(r, "", "a", "Example.com/a", "example.com/", "kubernetes.io/a", "x.k8s.io/b", "example.com/a b", "example.com/%2f", "-a.com/b", "example.com//", "a.com/é"), "valueExpression": pick(r, "claims.sub", "", "1", "nope")}}
	case 8:
		member["claimValidationRules"] = []any{pick[any](r, map[string]any{}, map[string]any{"claim": "a", "expression": "true"}, map[string]any{"claim": "a", "message": "m"}, map[string]any{"expression": "true", "requiredValue": "x"}, map[string]any{"expression": `"a"`}, map[string]any{"expression": `"a".matches("(")`}), map[string]any{"claim": "a"}}
	case 9:
		r.vary(member, "issuer", "claimMappings", "claimValidationRules", "userValidationRules")
	}
}

func (r *random) anonymous() any {
	return pick[any](r, map[string]any{"enabled": true}, map[string]any{"enabled": false}, map[string]any{}, nil,
		map[string]any{"enabled": true, "conditions": []any{map[string]any{"path": "/livez"}}},
		map[string]any{"enabled": false, "conditions": []any{map[string]any{"path": "/livez"}}},
		map[string]any{"enabled": true, "conditions": []any{map[string]any{"path": ""}, map[string]any{}}},
		map[string]any{"enabled": "yes"})
}
