package main

import (
	"regexp"
	"strings"
)

// node is an expression: a template in which `{}` stands for a child.
type node struct {
	template string
	children []node
}

// String writes the expression. Composite children stand in parentheses; that operators bind rightly without them is the
// business of the templates with more than one operator.
func (n node) String() string {
	var out strings.Builder
	rest := n.template
	for _, child := range n.children {
		before, after, _ := strings.Cut(rest, "{}")
		out.WriteString(before)
		if len(child.children) > 0 {
			out.WriteString("(" + child.String() + ")")
		} else {
			out.WriteString(child.String())
		}
		rest = after
	}
	out.WriteString(rest)
	return out.String()
}

// MarshalText makes an expression a string in documents.
func (n node) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// leaves and forms by type. In a form `‹type›` stands for a child of that type; `x` and `y` are bound by the form itself.
// Nothing here iterates over a map: the reference's order there is random. `replace` and the like take only leaves, since
// chains of them grow beyond any memory before their cost is counted.
var leaves = map[string][]string{
	"bool":      {"true", "false", "claims.b", `claims["b"]`, "has(claims.sub)", "has(claims.nope)", "has(claims.obj.a)", "claims.?nope.hasValue()", "claims.nope"},
	"int":       {"0", "1", "-1", "2", "7", "42", "9223372036854775807", "-9223372036854775808", "0x1F", "int(claims.n)", "size(claims.sub)"},
	"uint":      {"0u", "1u", "2u", "18446744073709551615u", "0xFFu"},
	"double":    {"0.0", "1.0", "-1.5", "1e3", "1e308", "2.5", "0.1", "claims.n", "claims.f", "claims.big", ".5"},
	"string":    {`""`, `"a"`, `"abc"`, `'b'`, `"A-b_c.9"`, `"é日"`, `"a,b,,c"`, `r"\d"`, `"""x"y"""`, `"\u00e9\x41\n\101"`, "claims.sub", `claims["sub"]`, "claims.obj.a", "claims.csv", "claims.?nope.orValue(\"d\")", "claims.obj.a__dot__b", "claims.`a.b`", `claims["a.b"]`},
	"bytes":     {`b""`, `b"abc"`, `b"\xff\x00"`, `b'é'`, `bytes("x")`},
	"strings":   {`[]`, `["a"]`, `["b", "a", "b"]`, `["a", "b", "c", "d"]`, "dyn(claims.groups)", "dyn(claims.?groups.orValue([]))", "dyn(claims.e)"},
	"ints":      {"[]", "[1]", "[3, 1, 2]", "[1, 1, 2]", "lists.range(4)", "[-1, 9223372036854775807]"},
	"doubles":   {"[1.5]", "[2.0, 1.0]", "dyn(claims.nums)"},
	"any":       {"null", "claims.nul", "claims.obj", "claims.list", "claims.groups", "claims.nums", "{}", `{"a": 1}`, `{1: "x", 2u: true}`, "claims.n", "claims.sub", "optional.none()", "[1, \"a\", null]", "type(1)", "string"},
	"map":       {"{}", `{"a": "x"}`, `{"a": "1", "b": "2"}`, "dyn(claims.obj)", "dyn(claims.m)"},
	"optional":  {"claims.?sub", "claims.?nope", `claims[?"sub"]`, "optional.of(1)", `optional.of("a")`, "optional.none()", `optional.ofNonZeroValue("")`, "claims.?obj.?a", "claims.list[?1]"},
	"duration":  {`duration("1h")`, `duration("1.5s")`, `duration("-2m3s")`, `duration("100ms")`, `duration("0")`},
	"timestamp": {`timestamp("2020-02-29T12:34:56.789Z")`, "timestamp(0)", "timestamp(claims.t)", `timestamp("2019-12-31T23:59:59+01:00")`, "timestamp(int(claims.exp))"},
	"pattern":   {`"a"`, `"[a-c]+"`, `"^a.*c$"`, `"(a|b)?"`, `"\\d+"`, `"x{2,3}"`, `"(?i)ABC"`, `"\\pL"`, `"("`, `"(?=a)"`, `"\\b"`},
	"short":     {`""`, `"a"`, `"b"`, `","`, `"ab"`, `"."`},
	"small":     {"0", "1", "2", "3", "-1", "10"},
	"address":   {`"10.0.0.1"`, `"::1"`, `"fe80::1"`, `"::ffff:1.2.3.4"`, `"010.0.0.1"`, `"1.2.3"`, `"224.0.0.1"`, `"fe80::1%eth0"`, "claims.sub"},
	"network":   {`"10.0.0.0/8"`, `"10.1.2.3/8"`, `"::/0"`, `"fe80::/10"`, `"1.2.3.4"`, `"10.0.0.0/33"`, `"10.0.0.0/08"`},
	"quantity":  {`"1"`, `"500m"`, `"1Gi"`, `"1e3"`, `"-2k"`, `"0.1"`, `"1.5Mi"`, `"x"`, `"1 "`, `"100000000000000000000"`, `"0"`},
	"version":   {`"1.2.3"`, `"1.2.3-rc.1"`, `"v1.0"`, `"01.2.3"`, `"1.2"`, `"1.2.3+b"`, `"0.0.0"`},
	"link":      {`"https://user@host.example:8443/p/a?q=1&q=2&r=#frag"`, `"http://[::1]:80/"`, `"/a/b"`, `"a"`, `"https://x/%2F?%61=b"`, `"//h/p"`, "claims.u"},
	"named":     {`"dns1123Label"`, `"dns1123Subdomain"`, `"dns1035Label"`, `"qualifiedName"`, `"labelValue"`, `"uri"`, `"uuid"`, `"byte"`, `"date"`, `"datetime"`, `"dns1123LabelPrefix"`, `"nope"`},
}

var forms = map[string][]string{
	"bool": {"‹bool› && ‹bool›", "‹bool› || ‹bool›", "!‹bool›", "‹bool› ? ‹bool› : ‹bool›", "‹bool› || ‹bool› && !‹bool›", "‹string› == ‹string›", "‹string› != ‹string›", "‹int› < ‹int›", "‹int› <= ‹double›",
		"‹double› > ‹int›", "‹uint› >= ‹int›", "‹string› < ‹string›", "‹bytes› < ‹bytes›", "‹bool› < ‹bool›", "‹duration› < ‹duration›", "‹timestamp› >= ‹timestamp›", "‹any› == ‹any›", "‹any› != ‹any›", "dyn(‹int›) == dyn(‹double›)", "dyn(‹uint›) == dyn(‹int›)",
		"‹string›.startsWith(‹string›)", "‹string›.endsWith(‹string›)", "‹string›.contains(‹string›)", "‹string›.matches(‹pattern›)", "matches(‹string›, ‹pattern›)", "‹string› in ‹strings›", "‹int› in ‹ints›", "‹double› in ‹ints›", "‹string› in ‹map›",
		"‹strings›.exists(x, x == ‹string›)", "‹strings›.all(x, x != ‹string›)", "‹strings›.exists_one(x, x == ‹string›)", "‹ints›.all(x, x > ‹int›)", "‹strings›.exists(i, x, i == 1 && x == ‹string›)", "‹strings›.isSorted()", "‹ints›.isSorted()", "‹any›.includes(‹any›)",
		"sets.contains(‹strings›, ‹strings›)", "sets.equivalent(‹ints›, ‹ints›)", "sets.intersects(‹strings›, ‹strings›)", "‹optional›.hasValue()", "bool(‹string›)", "type(‹any›) == type(‹any›)", "type(‹any›) == string",
		"isIP(‹address›)", "ip.isCanonical(‹address›)", "ip(‹address›).isLoopback()", "ip(‹address›).isGlobalUnicast()", "ip(‹address›) == ip(‹address›)", "isCIDR(‹network›)", "cidr(‹network›).containsIP(‹address›)", "cidr(‹network›).containsCIDR(‹network›)",
		"isURL(‹link›)", "isQuantity(‹quantity›)", "quantity(‹quantity›).isGreaterThan(quantity(‹quantity›))", "quantity(‹quantity›) == quantity(‹quantity›)", "quantity(‹quantity›).isInteger()", "isSemver(‹version›)", "isSemver(‹version›, true)", "semver(‹version›).isLessThan(semver(‹version›))", "format.named(‹named›).hasValue()", "format.named(‹named›).value().validate(‹string›).hasValue()"},
	"int": {"‹int› + ‹int›", "‹int› - ‹int›", "‹int› * ‹int›", "‹int› / ‹int›", "‹int› % ‹int›", "-‹int›", "‹int› - ‹int› * ‹int›", "‹int› - ‹int› - ‹int›", "‹bool› ? ‹int› : ‹int›", "int(‹double›)", "int(‹uint›)", "int(‹string›)", "int(‹timestamp›)", "int(‹duration›)", "size(‹string›)", "‹bytes›.size()", "size(‹strings›)", "size(‹map›)",
		"‹string›.indexOf(‹string›)", "‹string›.indexOf(‹string›, ‹small›)", "‹string›.lastIndexOf(‹string›)", "‹string›.lastIndexOf(‹string›, ‹small›)", "‹ints›.sum()", "‹ints›.min()", "‹ints›.max()", "‹ints›.indexOf(‹int›)", "‹strings›.lastIndexOf(‹string›)", "‹ints›[‹small›]", "‹timestamp›.getFullYear()", "‹timestamp›.getMonth()", "‹timestamp›.getDayOfYear()", "‹timestamp›.getDayOfWeek(\"-07:00\")", "‹timestamp›.getHours(\"+05:30\")", "‹timestamp›.getHours(\"Europe/Berlin\")", "‹timestamp›.getMilliseconds()", "‹duration›.getSeconds()", "‹duration›.getMinutes()", "‹duration›.getMilliseconds()",
		"cidr(‹network›).prefixLength()", "ip(‹address›).family()", "quantity(‹quantity›).asInteger()", "quantity(‹quantity›).compareTo(quantity(‹quantity›))", "sign(quantity(‹quantity›))", "semver(‹version›).minor()", "semver(‹version›, true).compareTo(semver(‹version›))"},
	"uint":   {"‹uint› + ‹uint›", "‹uint› - ‹uint›", "‹uint› * ‹uint›", "‹uint› / ‹uint›", "‹uint› % ‹uint›", "uint(‹int›)", "uint(‹double›)", "uint(‹string›)"},
	"double": {"‹double› + ‹double›", "‹double› - ‹double›", "‹double› * ‹double›", "‹double› / ‹double›", "-‹double›", "double(‹int›)", "double(‹uint›)", "double(‹string›)", "‹doubles›.sum()", "‹doubles›.max()", "‹bool› ? ‹double› : ‹double›", "quantity(‹quantity›).asApproximateFloat()"},
	"string": {"‹string› + ‹string›", "‹bool› ? ‹string› : ‹string›", "string(‹int›)", "string(‹uint›)", "string(‹double›)", "string(‹bool›)", "string(‹bytes›)", "string(‹duration›)", "string(‹timestamp›)", "string(ip(‹address›))", "string(cidr(‹network›))", "‹string›.lowerAscii()", "‹string›.upperAscii()", "‹string›.trim()", "‹string›.charAt(‹small›)", "‹string›.substring(‹small›)", "‹string›.substring(‹small›, ‹small›)",
		"‹string›.replace(‹short›, ‹short›)", "‹string›.replace(‹short›, ‹short›, ‹small›)", "‹strings›.join()", "‹strings›.join(‹short›)", "‹strings›[‹small›]", "‹string›.find(‹pattern›)", "strings.quote(‹string›)", "url(‹link›).getHost()", "url(‹link›).getHostname()", "url(‹link›).getPort()", "url(‹link›).getScheme()", "url(‹link›).getEscapedPath()", "‹map›.a", "‹map›[\"b\"]", "‹optional›.orValue(‹string›)",
		"\"%d %s\".format([‹int›, ‹any›])", "\"%x %X\".format([‹int›, ‹string›])", "\"%.2f %e\".format([‹double›, ‹double›])", "\"%s\".format([‹strings›])", "\"%b %o\".format([‹int›, ‹int›])", "\"%%%s\".format([‹duration›])"},
	"bytes":     {"‹bytes› + ‹bytes›", "bytes(‹string›)", "‹bool› ? ‹bytes› : ‹bytes›"},
	"strings":   {"[‹string›, ‹string›]", "[‹string›, ?‹optional›]", "‹strings› + ‹strings›", "‹strings›.filter(x, x != ‹string›)", "‹strings›.map(x, x + ‹string›)", "‹strings›.map(x, x != ‹string›, x)", "‹string›.split(‹short›)", "‹string›.split(‹short›, ‹small›)", "‹string›.findAll(‹pattern›)", "‹string›.findAll(‹pattern›, ‹small›)", "‹strings›.sort()", "‹strings›.distinct()", "‹strings›.reverse()", "‹strings›.slice(‹small›, ‹small›)", "[‹strings›, ‹strings›].flatten()", "‹strings›.sortBy(x, size(x))", "‹bool› ? ‹strings› : ‹strings›", "‹strings›.transformList(i, x, x + ‹string›)", "url(‹link›).getQuery()[\"q\"]", "format.named(‹named›).value().validate(‹string›).orValue([])"},
	"ints":      {"[‹int›, ‹int›]", "‹ints› + ‹ints›", "‹ints›.map(x, x * 2)", "‹ints›.filter(x, x > ‹int›)", "‹ints›.sort()", "‹ints›.distinct()", "‹ints›.reverse()", "‹ints›.slice(‹small›, ‹small›)", "lists.range(‹small›)", "‹ints›.transformList(i, x, i > 0, i + x)"},
	"doubles":   {"[‹double›, ‹double›]", "‹doubles› + ‹doubles›", "‹doubles›.sort()", "‹doubles›.map(x, x / 2.0)"},
	"map":       {"{\"a\": ‹string›}", "{‹string›: ‹string›, \"z\": ‹string›}", "{?\"a\": ‹optional›}", "‹strings›.transformMap(i, x, x)", "‹bool› ? ‹map› : ‹map›"},
	"optional":  {"optional.of(‹any›)", "optional.ofNonZeroValue(‹any›)", "‹optional›.or(‹optional›)", "‹optional›.optMap(x, [x])", "‹strings›[?‹small›]", "‹map›[?‹string›]", "‹strings›.first()", "‹ints›.last()", "optional.of(‹string›).optFlatMap(x, x == ‹string› ? optional.none() : optional.of(x))"},
	"duration":  {"duration(‹string›)", "‹duration› + ‹duration›", "‹duration› - ‹duration›", "‹timestamp› - ‹timestamp›", "[‹duration›, ‹duration›].sum()"},
	"timestamp": {"timestamp(‹string›)", "timestamp(‹int›)", "‹timestamp› + ‹duration›", "‹timestamp› - ‹duration›"},
	"any":       {"‹bool›", "‹int›", "‹double›", "‹string›", "‹strings›", "‹ints›", "‹map›", "‹optional›", "‹bytes›", "‹uint›", "‹duration›", "‹timestamp›", "[‹any›, ‹any›]", "type(‹any›)", "dyn(‹any›)", "‹bool› ? dyn(‹any›) : dyn(‹any›)", "ip(‹address›)", "cidr(‹network›).masked()", "url(‹link›)", "quantity(‹quantity›).add(quantity(‹quantity›))", "quantity(‹quantity›).sub(‹int›)", "semver(‹version›)", "format.named(‹named›)", "[optional.of(‹any›), ‹optional›].unwrapOpt()"},
}

var userLeaves = map[string][]string{
	"bool":    {"true", "has(user.uid)", `has(user.extra.a)`, `user.username == ""`},
	"string":  {"user.username", "user.uid", `"a"`, `"ann"`, `user.extra["a"][0]`, `user.extra[?"a"][0].orValue("")`, "user.extra.example__dot__com__slash__k[0]"},
	"strings": {"user.groups", `["a"]`, `user.extra["a"]`, "user.extra.example__dot__com__slash__k"},
	"any":     {"user", "user.extra", "user.groups", "user.username", "user.nope"},
	"map":     {"{}", `{"a": "x"}`},
}

var childPattern = regexp.MustCompile(`‹(\w+)›`)

// expression draws one of a type, sometimes with a child of another.
func (r *random) expression(kind string, depth int, special map[string][]string) node {
	shapes := forms[kind]
	if depth <= 0 || len(shapes) == 0 || r.chance(15) {
		if own := special[kind]; own != nil && (r.chance(60) || leaves[kind] == nil) {
			return node{template: pick(r, own...)}
		}
		if special != nil {
			// No claims in the user environment, except to see that they are refused.
			for range 20 {
				if leaf := pick(r, leaves[kind]...); !strings.Contains(leaf, "claims") || r.chance(2) {
					return node{template: leaf}
				}
			}
			return node{template: "true"}
		}
		return node{template: pick(r, leaves[kind]...)}
	}
	form := pick(r, shapes...)
	var out node
	out.template = childPattern.ReplaceAllStringFunc(form, func(place string) string {
		child := strings.Trim(place, "‹›")
		if r.chance(2) {
			child = pick(r, "bool", "int", "string", "strings", "any", "double", "optional")
		}
		out.children = append(out.children, r.expression(child, depth-1-r.IntN(2), special))
		return "{}"
	})
	return out
}

func celTree(r *random) any {
	kind := pick(r, "bool", "bool", "int", "string", "strings", "any", "double", "uint", "bytes", "ints", "map", "optional", "duration", "timestamp")
	tree := map[string]any{}
	if r.chance(20) {
		tree["user"] = r.user()
		tree["expr"] = r.expression(pick(r, "bool", "bool", kind), 1+r.IntN(3), userLeaves)
	} else {
		tree["claims"] = r.claims()
		tree["expr"] = r.expression(kind, 1+r.IntN(4), nil)
	}
	if r.chance(30) {
		tree["rule"] = true
	}
	if r.chance(4) {
		tree["cut"] = []any{r.IntN(200), r.IntN(3), pick(r, "", "", " ", "(", ")", "'", "\"", "\\", ".", "?", "[", "{", "u", "1", "@", "//", "in", "null", "é", "`")}
	}
	return tree
}

func renderCEL(tree any) (map[string]any, bool) {
	members, _ := tree.(map[string]any)
	expression, ok := members["expr"].(node)
	if !ok || (members["claims"] == nil) == (members["user"] == nil) {
		return nil, false
	}
	text := expression.String()
	if cut, ok := members["cut"].([]any); ok {
		if text, ok = cutText(text, cut); !ok {
			return nil, false
		}
	}
	out := map[string]any{"expr": text}
	for _, name := range []string{"claims", "user", "rule"} {
		if value, there := members[name]; there {
			out[name] = value
		}
	}
	return out, true
}

func (r *random) user() map[string]any {
	return map[string]any{
		"username": pick(r, "", "ann", "system:admin", "é", "a b"),
		"uid":      pick(r, "", "7", "ann"),
		"groups":   list(several(r, 3, func() string { return pick(r, "a", "b", "system:masters", "") })),
		"extra": pick[any](r, map[string]any{}, map[string]any{"a": []any{"x", "y"}}, map[string]any{"example.com/k": []any{"v"}, "a": []any{}},
			map[string]any{"a": []any{"1"}, "authentication.kubernetes.io/credential-id": []any{"JTI=x"}}),
	}
}

// claims draws the members the leaves refer to, some of them missing or of another type.
func (r *random) claims() map[string]any {
	out := map[string]any{
		"sub":    pick(r, "alice", "", "a", "Älice", "a,b", "10.0.0.1", "5"),
		"n":      pick[any](r, 5, 0, -3, 2.5, 1e9, 9007199254740993),
		"f":      pick[any](r, 1.5, 0.1, -0.0, 1e-7, 123456789.125),
		"big":    pick[any](r, 1e19, 9007199254740993, -1e300),
		"b":      r.chance(50),
		"nul":    nil,
		"exp":    pick[any](r, 1800000300, 1800000300.5, -1),
		"t":      pick(r, "2024-02-29T12:34:56.789Z", "2024-02-30T00:00:00Z", "x"),
		"u":      pick(r, "https://h.example/p?q=a&q=b", "%", ""),
		"csv":    pick(r, "a,b", "", ",", "a"),
		"groups": list(several(r, 4, func() string { return pick(r, "a", "b", "k8s-x", "", "é") })),
		"nums":   []any{3, 1, 2.5},
		"list":   []any{map[string]any{"a.b": 1}, "two", 3},
		"e":      []any{},
		"m":      map[string]any{},
		"obj":    map[string]any{"a": "A", "a.b": "nested", "n": 7, "__proto__": "p"},
		"a.b":    "dot",
	}
	if r.chance(25) {
		name := pick(r, "sub", "n", "b", "groups", "obj", "csv", "nums", "t")
		if r.chance(50) {
			delete(out, name)
		} else {
			out[name] = pick[any](r, nil, "text", 1, true, []any{1, "a", nil}, map[string]any{"a": 1})
		}
	}
	return out
}
