package main

import (
	"maps"
	"slices"
)

// A question about TLS is a tree {"certificates": {name: description}, "chain": [name], "roots": [name], "name", "now"}. Certificates name
// their issuer, of which subject and key count, so that issuers may sign each other. Keys are made from their names, and all signatures are
// deterministic, so that a seed gives the same bytes each time.

// tlsNow is the clock of most questions; validity is counted in days from it.
const tlsNow = 1800000000

func tlsVerifyTree(r *random) any {
	for {
		tree := r.tlsQuestion()
		if _, ok := renderTLS(tree); ok {
			return tree
		}
	}
}

func (r *random) tlsQuestion() map[string]any {
	tree := pick(r, (*random).selfSigned, (*random).selfSigned, (*random).straight, (*random).straight, (*random).straight, (*random).crossSigned, (*random).trustedLeaf, (*random).renewedRoot)(r)
	certificates := tree["certificates"].(map[string]any)
	for range pick(r, 0, 0, 1, 1, 2) {
		name := pick(r, slices.Sorted(maps.Keys(certificates))...)
		r.varyCertificate(certificates[name].(map[string]any))
	}
	tree["name"] = usually(r, 20, "api.example", list(serverNames)...)
	if r.chance(15) {
		leaf := certificates[tree["chain"].([]any)[0].(string)].(map[string]any)
		leaf["dns"], leaf["ips"] = list(several(r, 2, func() string { return pick(r, certificateNames...) })), []any{pick(r, "10.0.0.1", "::1", "2001:db8::1")}
		tree["name"] = pick(r, serverNames...)
	}
	tree["now"] = usually(r, 12, tlsNow, tlsNow-day, tlsNow+day, tlsNow-day-1, tlsNow+day+1, tlsNow+1000*day, 0, tlsNow-1000*day, tlsNow-1000*day-1, tlsNow+1000*day+1)
	if r.chance(8) {
		tree["chain"] = append(tree["chain"].([]any), pick(r, slices.Sorted(maps.Keys(certificates))...))
	}
	if r.chance(8) {
		tree["roots"] = append(tree["roots"].([]any), pick(r, slices.Sorted(maps.Keys(certificates))...))
	}
	if chain := tree["chain"].([]any); r.chance(5) && len(chain) > 2 {
		r.Shuffle(len(chain)-1, func(i, j int) { chain[i+1], chain[j+1] = chain[j+1], chain[i+1] })
	}
	return tree
}

const day = 86400

var (
	serverNames      = []string{"api.example", "API.Example", "api.example.", "other.example", "a.api.example", "10.0.0.1", "::1", "10.0.0.2", "a_b.example", "localhost", "xn--bcher-kva.example", "-api.example", "example", "2001:db8::1", "api-.example", "a.b.api.example", "::ffff:10.0.0.1", "1.example", "example.1"}
	certificateNames = []string{"api.example", "*.example", "*", "API.EXAMPLE", "*.api.example", "a*.example", "other.example", "localhost", "a_b.example", "api.example.", "-api.example", "xn--bcher-kva.example", "*.*.example", "10.0.0.1", "example", "api-.example", "*.b.api.example", "*.EXAMPLE", "1.example", "example.1", "api..example", ".example", "*.localhost"}
)

func (r *random) leaf(issuer string) map[string]any {
	return map[string]any{"subject": "server", "by": issuer, "key": r.key(), "purposes": []any{"server"}, "usage": []any{"signature"}, "dns": []any{"api.example"}, "days": []any{-1000, 1000}}
}

func (r *random) authority(subject, issuer string) map[string]any {
	return map[string]any{"subject": subject, "by": issuer, "key": r.key(), "ca": true, "usage": []any{"sign"}, "days": []any{-1000, 1000}}
}

func (r *random) key() string {
	return pick(r, "ed25519", "ed25519", "ed25519", "ed25519", "p256", "p256", "p256", "p384", "p521") + pick(r, "-a", "-b", "-c", "-d", "-e", "-f")
}

// selfSigned is what `openssl req -x509` makes, trusted by itself.
func (r *random) selfSigned() map[string]any {
	leaf := r.leaf("")
	leaf["ca"] = pick[any](r, true, true, false, nil)
	if r.chance(60) {
		delete(leaf, "usage")
	}
	if r.chance(60) {
		delete(leaf, "purposes")
	}
	certificates := map[string]any{"leaf": leaf}
	roots := []any{"leaf"}
	switch r.IntN(8) {
	case 0: // another certificate of the same name and key is trusted
		twin := maps.Clone(leaf)
		twin["serial"] = 2
		certificates["twin"], roots = twin, []any{"twin"}
	case 1: // something that it signed
		child := r.leaf("leaf")
		child["subject"] = "child"
		certificates["child"] = child
		return map[string]any{"certificates": certificates, "chain": []any{"child", "leaf"}, "roots": roots}
	case 2:
		certificates["root"] = r.authority("root", "")
		roots = []any{"root"}
	}
	return map[string]any{"certificates": certificates, "chain": []any{"leaf"}, "roots": roots}
}

// straight is a chain of zero to seven intermediates.
func (r *random) straight() map[string]any {
	certificates := map[string]any{"root": r.authority("root", "")}
	chain := []any{"leaf"}
	issuer := "root"
	for index := range pick(r, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 5, 6, 7) {
		name := "authority " + string(rune('1'+index))
		certificates[name] = r.authority(name, issuer)
		chain = slices.Insert(chain, 1, any(name))
		issuer = name
	}
	certificates["leaf"] = r.leaf(issuer)
	if r.chance(10) {
		chain = append(chain, "root")
	}
	if r.chance(8) && len(chain) > 1 {
		chain = slices.Delete(chain, len(chain)-1, len(chain))
	}
	roots := []any{"root"}
	if r.chance(8) && len(chain) > 1 { // an intermediate is trusted, the root is not
		roots = []any{pick(r, chain[1:]...)}
	}
	return map[string]any{"certificates": certificates, "chain": chain, "roots": roots}
}

// crossSigned has one authority with certificates of two issuers, of which one may be unusable.
func (r *random) crossSigned() map[string]any {
	first := r.authority("shared", "old")
	second := maps.Clone(first)
	second["by"], second["serial"] = "new", 2
	certificates := map[string]any{
		"old": r.authority("old", ""), "new": r.authority("new", ""), "shared": first, "again": second, "leaf": r.leaf("shared"),
	}
	if r.chance(40) {
		certificates["loop"] = map[string]any{"subject": "old", "by": "shared", "key": certificates["old"].(map[string]any)["key"], "ca": true, "days": []any{-1000, 1000}}
	}
	unusable := certificates[pick(r, "old", "new", "shared", "again")].(map[string]any)
	if r.chance(60) {
		r.varyCertificate(unusable)
	}
	chain := []any{"leaf", "shared", "again"}
	if r.chance(50) {
		chain = []any{"leaf", "again", "shared"}
	}
	if certificates["loop"] != nil {
		chain = append(chain, "loop")
	}
	return map[string]any{"certificates": certificates, "chain": chain, "roots": pick(r, []any{"old"}, []any{"new"}, []any{"old", "new"}, []any{"shared"}, []any{"loop", "new"})}
}

// trustedLeaf is a server's certificate of an authority, trusted in place of the authority or beside it.
func (r *random) trustedLeaf() map[string]any {
	tree := r.straight()
	tree["roots"] = pick(r, []any{"leaf"}, []any{"leaf", "root"}, []any{"root", "leaf"})
	if r.chance(30) { // and it signs, which it must not
		child := r.leaf("leaf")
		child["subject"] = "child"
		tree["certificates"].(map[string]any)["child"] = child
		tree["chain"] = slices.Insert(tree["chain"].([]any), 0, any("child"))
	}
	return tree
}

// renewedRoot has two certificates of one authority, of which one may be unusable.
func (r *random) renewedRoot() map[string]any {
	tree := r.straight()
	certificates := tree["certificates"].(map[string]any)
	renewed := maps.Clone(certificates["root"].(map[string]any))
	renewed["serial"] = 2
	r.varyCertificate(renewed)
	certificates["renewed"] = renewed
	tree["roots"] = pick(r, []any{"renewed"}, []any{"renewed", "root"}, []any{"root", "renewed"})
	if r.chance(30) {
		tree["chain"] = append(tree["chain"].([]any), "root")
	}
	return tree
}

// varyCertificate changes one thing.
func (r *random) varyCertificate(certificate map[string]any) {
	set := func(name string, values ...any) { certificate[name] = pick(r, values...) }
	switch r.IntN(20) {
	case 0, 1:
		set("ca", true, false, nil)
	case 2, 3:
		set("path", 0, 1, 2, 5)
	case 4:
		set("usage", []any{}, []any{"sign"}, []any{"signature"}, []any{"sign", "signature"}, []any{"encipherment"}, []any{"crl"})
	case 5, 6:
		set("purposes", []any{}, []any{"server"}, []any{"client"}, []any{"client", "server"}, []any{"any"}, []any{"any", "client"}, []any{"unknown"}, []any{"unknown", "server"})
	case 7, 8:
		set("days", []any{-1000, -1}, []any{1, 1000}, []any{-1, 1}, []any{0, 0}, []any{-1000, 0}, []any{0, 1000}, []any{1, -1}, []any{-25000, 9000}, []any{-1000, 20000})
	case 9, 10:
		set("dns", nil, []any{"api.example", "b.example"}, []any{pick(r, certificateNames...)}, []any{pick(r, certificateNames...), pick(r, certificateNames...)})
	case 11:
		set("ips", []any{"10.0.0.1"}, []any{"::1"}, []any{"10.0.0.1", "2001:db8::1"})
	case 12:
		set("uris", []any{"https://api.example/x"}, []any{"spiffe://trust/x"}, []any{"urn:x"})
		if r.chance(30) {
			set("emails", []any{"ann@example"}, []any{"ann@api.example"})
		}
	case 13, 14:
		set(pick(r, "permitted", "excluded"), []any{"example"}, []any{"api.example"}, []any{"other.example"}, []any{".example"}, []any{"example", "test"}, []any{"API.example"}, []any{"le"}, []any{"pi.example"}, []any{""})
	case 15:
		set(pick(r, "permittedIPs", "excludedIPs"), []any{"10.0.0.0/8"}, []any{"192.168.0.0/16"}, []any{"::/0"}, []any{"10.0.0.1/32", "::1/128"}, []any{"0.0.0.0/0"})
	case 16:
		set(pick(r, "permittedURIs", "excludedURIs", "permittedEmails", "excludedEmails"), []any{"example"}, []any{"api.example"}, []any{".example"})
	case 17:
		set("extension", "unknown", "critical unknown", "critical policies", "policies", "critical inhibit any policy", "critical directory constraint", "directory constraint", "twice key usage", "critical unknown standard")
	case 18:
		set("key", "p224-a", "rsa1024-a", "rsa2048-a", "rsa2048-b", "p256-a", "ed25519-a")
	case 19:
		set("flaw", "signature", "version 1", "issuer key", "wrong authority key identifier", "no subject", "issuer name")
	}
}
