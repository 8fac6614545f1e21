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
	"bool": {"true", "false", "claims.b", `claims["b"]`, "has(claims.sub)", "has(claims.nope)", "has(claims.obj.a)", "claims.?nope.hasValue()", "claims.nope",
		`claims.b == true`, `claims.?b.orValue(false)`, `has(claims.a__dot__b)`, `has(claims.obj.a__dot__b)`, `"a" in claims.obj`, `"sub" in claims`, `claims == claims`, `!claims.nope`},
	"int": {"0", "1", "-1", "2", "7", "42", "9223372036854775807", "-9223372036854775808", "0x1F", "int(claims.n)", "size(claims.sub)",
		`9007199254740993`, `-7`, `3`, `100`, `1000000`},
	"uint": {"0u", "1u", "2u", "18446744073709551615u", "0xFFu",
		`uint("7")`, `9223372036854775808u`},
	"double": {"0.0", "1.0", "-1.5", "1e3", "1e308", "2.5", "0.1", "claims.n", "claims.f", "claims.big", ".5",
		`double("NaN")`, `double("Infinity")`, `-double("inf")`, `1e-320`, `9.007199254740993e15`, `-0.0`, `1e21`, `123456789.0`},
	"string": {`""`, `"a"`, `"abc"`, `'b'`, `"A-b_c.9"`, `"é日"`, `"a,b,,c"`, `r"\d"`, `"""x"y"""`, `"\u00e9\x41\n\101"`, "claims.sub", `claims["sub"]`, "claims.obj.a", "claims.csv", "claims.?nope.orValue(\"d\")", "claims.obj.a__dot__b", "claims.`a.b`", `claims["a.b"]`,
		`"a-b"`, `"abc-"`, `"ABC"`, `"a.b.c"`, `"-a"`, `"a/b"`, `"example.com/x"`, `"550e8400-e29b-41d4-a716-446655440000"`, `"YWJj"`, `"YWJ"`, `"2020-02-30"`, `"2020-02-29"`, `"2020-02-29T12:34:56Z"`, `"https://h/p?x"`, `"1.5"`, `"-7"`, `"1e3"`, `"0x10"`, `"true"`, `"1h"`, `"%d"`, `"\t a \n"`, `"ǅ"`, `"ß"`, `"\U0001F600"`},
	"bytes": {`b""`, `b"abc"`, `b"\xff\x00"`, `b'é'`, `bytes("x")`,
		`b"\u00e9"`, `b"\377"`, `b"a\0b"`},
	"strings": {`[]`, `["a"]`, `["b", "a", "b"]`, `["a", "b", "c", "d"]`, "dyn(claims.groups)", "dyn(claims.?groups.orValue([]))", "dyn(claims.e)",
		`["é", "日本", ""]`, `["B", "a", "C"]`, `dyn(claims.nums)`, `dyn(claims.list)`, `claims.csv.split(",")`},
	"ints": {"[]", "[1]", "[3, 1, 2]", "[1, 1, 2]", "lists.range(4)", "[-1, 9223372036854775807]",
		`[0, -1, 5, 5]`, `[9223372036854775807, 1]`, `dyn(claims.nums)`},
	"doubles": {"[1.5]", "[2.0, 1.0]", "dyn(claims.nums)",
		`[]`, `[1.0, double("NaN")]`, `[-0.0, 0.0]`, `[1e308, 1e308]`},
	"any": {"null", "claims.nul", "claims.obj", "claims.list", "claims.groups", "claims.nums", "{}", `{"a": 1}`, `{1: "x", 2u: true}`, "claims.n", "claims.sub", "optional.none()", "[1, \"a\", null]", "type(1)", "string",
		`{"a": 1.0}`, `{"a": dyn(1u)}`, `[1.0]`, `[dyn(1u)]`, `b"a"`, `"a"`, `1`, `1.0`, `1u`, `duration("1s")`, `timestamp(0)`, `ip("1.2.3.4")`, `quantity("1k")`, `semver("1.2.3")`, `url("https://h")`, `cidr("10.0.0.0/8")`, `optional.of(null)`, `optional.of(claims.n)`, `claims`, `[[]]`, `{"k": {}}`, `{true: 1}`, `{1: 1}`, `int`, `dyn`, `list`, `google.protobuf.Timestamp`, `google.protobuf.Int64Value{value: 5}`, `google.protobuf.StringValue{}`, `google.protobuf.FloatValue{value: 0.1}`, `google.protobuf.Int32Value{value: 2147483648}`, `google.protobuf.Int32Value`, `google.protobuf.Empty{}`, `google.protobuf.Empty`, `google.protobuf.NullValue`, `google.protobuf.NullValue.NULL_VALUE`, `google.protobuf.NullValue{}`, `google.protobuf.Value{}`, `google.protobuf.Struct{}`, `google.protobuf.ListValue{}`, `google.protobuf.Any{}`, `google.protobuf.Duration{seconds: 1}`, `google.protobuf.Timestamp{}`, `google.protobuf.Nope{}`, `google.protobuf.FieldMask{}`, `kubernetes.UserInfo{}`, `kubernetes.UserInfo{nope: 1}`, `kubernetes.UserInfo{username: 1}`, `kubernetes.UserInfo{extra: {"a": ["b"]}}.extra`, `.kubernetes.UserInfo{uid: "a"}.uid`, `kubernetes.UserInfo`, `kubernetes.URL`, `net.IP`, `optional_type`},
	"map": {"{}", `{"a": "x"}`, `{"a": "1", "b": "2"}`, "dyn(claims.obj)", "dyn(claims.m)",
		`{"b": "y", "c": claims.sub}`, `{"": ""}`, `{null: "a"}`, `{null: "a", null: "b"}`, `{null: null}[null]`, `{claims.nul: "a", claims.n: "b"}`, `{dyn(1.0): "a", dyn(2): "b"}`},
	"optional": {"claims.?sub", "claims.?nope", `claims[?"sub"]`, "optional.of(1)", `optional.of("a")`, "optional.none()", `optional.ofNonZeroValue("")`, "claims.?obj.?a", "claims.list[?1]",
		`claims.?groups[0]`, `claims.?groups[?7]`, `claims.obj.?b`, `optional.of(optional.none())`, `optional.ofNonZeroValue(0)`, `claims.?list[?0].?a__dot__b`, `claims.?nul`},
	"duration": {`duration("1h")`, `duration("1.5s")`, `duration("-2m3s")`, `duration("100ms")`, `duration("0")`,
		`duration("1h1m1s1ms1us1ns")`, `duration("9223372036s")`, `duration("-9223372036s")`, `duration(".5s")`, `duration("1.123456789123s")`, `duration("+5m")`, `duration("1d")`, `duration(claims.sub)`},
	"timestamp": {`timestamp("2020-02-29T12:34:56.789Z")`, "timestamp(0)", "timestamp(claims.t)", `timestamp("2019-12-31T23:59:59+01:00")`, "timestamp(int(claims.exp))",
		`timestamp("0001-01-01T00:00:00Z")`, `timestamp("9999-12-31T23:59:59.999999999Z")`, `timestamp("2024-03-31T01:59:59.5+02:00")`, `timestamp("2024-11-03T05:30:00Z")`, `timestamp(253402300799)`, `timestamp(253402300800)`, `timestamp("2020-02-29 12:34:56Z")`, `timestamp("2020-02-29T12:34:56")`, `timestamp("2016-12-31T23:59:60Z")`, `timestamp("2020-02-29t12:34:56z")`, `timestamp("2020-02-29T12:34:56,5Z")`},
	"pattern": {`"a"`, `"[a-c]+"`, `"^a.*c$"`, `"(a|b)?"`, `"\\d+"`, `"x{2,3}"`, `"(?i)ABC"`, `"\\pL"`, `"("`, `"(?=a)"`, `"\\b"`,
		`"[[:alpha:]]+"`, `"\\w"`, `"\\S"`, `"."`, `"(?s)."`, `"^$"`, `"a|b|"`, `"(?P<n>a)"`, `"a*?"`, `"[^a]"`, `"\\Qa.b\\E"`, `"é"`, `"[é-ü]"`, `"a{1001}"`, `"\\C"`, `"(?m)^b$"`, `"*"`, `"[a"`, `"\\"`, `"x{,3}"`, `"\\x{61}"`, `"\\p{Greek}"`, `"[\\d]"`, `"(a+)+$"`, `claims.sub`},
	"short": {`""`, `"a"`, `"b"`, `","`, `"ab"`, `"."`,
		`"é"`, `"日"`, `" "`, `"\n"`, `claims.sub`},
	"small": {"0", "1", "2", "3", "-1", "10",
		`4`, `5`, `100`, `-2`, `9223372036854775807`, `int(claims.n)`, `claims.n`},
	"address": {`"10.0.0.1"`, `"::1"`, `"fe80::1"`, `"::ffff:1.2.3.4"`, `"010.0.0.1"`, `"1.2.3"`, `"224.0.0.1"`, `"fe80::1%eth0"`, "claims.sub",
		`"255.255.255.255"`, `"0.0.0.0"`, `"169.254.1.2"`, `"224.0.0.255"`, `"239.1.2.3"`, `"::"`, `"ff02::1"`, `"ff12::1"`, `"2001:db8::8a2e:370:7334"`, `"2001:DB8:0:0:0::1"`, `"1:2:3:4:5:6:7::"`, `"::1.2.3.4"`, `"127.1.2.3"`, `" 1.2.3.4"`, `""`, `"1.2.3.4/8"`, `"fec0::1"`, `"0:0:0:0:0:ffff:102:304"`},
	"network": {`"10.0.0.0/8"`, `"10.1.2.3/8"`, `"::/0"`, `"fe80::/10"`, `"1.2.3.4"`, `"10.0.0.0/33"`, `"10.0.0.0/08"`,
		`"0.0.0.0/0"`, `"10.0.0.0/32"`, `"192.168.0.0/16"`, `"10.0.0.0/24"`, `"10.0.0.128/25"`, `"2001:db8::/32"`, `"2001:db8::1/128"`, `"::ffff:10.0.0.0/104"`, `"fe80::%eth0/64"`, `"/8"`, `""`, `"10.0.0.0/+8"`, `"10.0.0.0/8 "`},
	"quantity": {`"1"`, `"500m"`, `"1Gi"`, `"1e3"`, `"-2k"`, `"0.1"`, `"1.5Mi"`, `"x"`, `"1 "`, `"100000000000000000000"`, `"0"`,
		`"1E3"`, `"1Ei"`, `"1E"`, `"1e-3"`, `"1.5k"`, `"9223372036854775807"`, `"9223372036854775808"`, `"-9223372036854775808"`, `"1u"`, `"1n"`, `"0.5n"`, `"1.1n"`, `".5"`, `"5."`, `"+5"`, `"-0"`, `"1e"`, `"1Ki"`, `"1ki"`, `"1K"`, `"12345678901234567890123456789"`, `"0.0000000001"`, `"1e400"`, `""`, `"1 Gi"`, `"1e3Ki"`, `"3.25Pi"`, `"123456.789m"`},
	"version": {`"1.2.3"`, `"1.2.3-rc.1"`, `"v1.0"`, `"01.2.3"`, `"1.2"`, `"1.2.3+b"`, `"0.0.0"`,
		`"1.2.3-alpha"`, `"1.2.3-alpha.1"`, `"1.2.3-alpha.beta"`, `"1.2.3-1"`, `"1.2.3-01"`, `"1.2.3+build.5"`, `"1.2.3-rc.1+b"`, `"v1.2.3"`, `"1"`, `"1.0.0"`, `"1.10.0"`, `"1.2.3.4"`, `"1.2.x"`, `""`, `" 1.2.3"`, `"99999999999999999999.0.0"`, `"18446744073709551615.0.0"`, `"1.2.3-"`, `"1.2.3+"`, `"v1"`, `"01.02.03"`, `"1.2.03"`, `"1.2.3-é"`, `"-1.2.3"`},
	"link": {`"https://user@host.example:8443/p/a?q=1&q=2&r=#frag"`, `"http://[::1]:80/"`, `"/a/b"`, `"a"`, `"https://x/%2F?%61=b"`, `"//h/p"`, "claims.u",
		`"https://host"`, `"https://host:/p"`, `"HTTPS://HOST/p"`, `"https://user:pa%20ss@h/p"`, `"mailto:a@b"`, `"https://h/p?a=%zz"`, `"https://h/p?a;b"`, `"https://h/p?a=1;b=2"`, `"https://h/ p"`, `"https://h/%"`, `"https://[fe80::1%25en0]:80/"`, `"http://[::1"`, `"https://h:abc/"`, `"https://h:99999/"`, `"?q=1"`, `"#f"`, `""`, `"https:///p"`, `"https://h/é"`, `"https://é/"`, `"https://h?q"`, `"ftp://h/a/../b//c"`, `"https://h/a%2Fb?c=d%2Be+f"`, `"*"`, `"https://h/p?q=&q&=x"`},
	"named": {`"dns1123Label"`, `"dns1123Subdomain"`, `"dns1035Label"`, `"qualifiedName"`, `"labelValue"`, `"uri"`, `"uuid"`, `"byte"`, `"date"`, `"datetime"`, `"dns1123LabelPrefix"`, `"nope"`,
		`"dns1123SubdomainPrefix"`, `"dns1035LabelPrefix"`, `""`, `"URI"`},
}

var forms = map[string][]string{
	"bool": {"‹bool› && ‹bool›", "‹bool› || ‹bool›", "!‹bool›", "‹bool› ? ‹bool› : ‹bool›", "‹bool› || ‹bool› && !‹bool›", "‹string› == ‹string›", "‹string› != ‹string›", "‹int› < ‹int›", "‹int› <= ‹double›",
		"‹double› > ‹int›", "‹uint› >= ‹int›", "‹string› < ‹string›", "‹bytes› < ‹bytes›", "‹bool› < ‹bool›", "‹duration› < ‹duration›", "‹timestamp› >= ‹timestamp›", "‹any› == ‹any›", "‹any› != ‹any›", "dyn(‹int›) == dyn(‹double›)", "dyn(‹uint›) == dyn(‹int›)",
		"‹string›.startsWith(‹string›)", "‹string›.endsWith(‹string›)", "‹string›.contains(‹string›)", "‹string›.matches(‹pattern›)", "matches(‹string›, ‹pattern›)", "‹string› in ‹strings›", "‹int› in ‹ints›", "‹double› in ‹ints›", "‹string› in ‹map›",
		"‹strings›.exists(x, x == ‹string›)", "‹strings›.all(x, x != ‹string›)", "‹strings›.exists_one(x, x == ‹string›)", "‹ints›.all(x, x > ‹int›)", "‹strings›.exists(i, x, i == 1 && x == ‹string›)", "‹strings›.isSorted()", "‹ints›.isSorted()", "‹any›.includes(‹any›)",
		"sets.contains(‹strings›, ‹strings›)", "sets.equivalent(‹ints›, ‹ints›)", "sets.intersects(‹strings›, ‹strings›)", "‹optional›.hasValue()", "bool(‹string›)", "type(‹any›) == type(‹any›)", "type(‹any›) == string",
		"isIP(‹address›)", "ip.isCanonical(‹address›)", "ip(‹address›).isLoopback()", "ip(‹address›).isGlobalUnicast()", "ip(‹address›) == ip(‹address›)", "isCIDR(‹network›)", "cidr(‹network›).containsIP(‹address›)", "cidr(‹network›).containsCIDR(‹network›)", "cidr(‹network›).isMask()",
		"isURL(‹link›)", "isQuantity(‹quantity›)", "quantity(‹quantity›).isGreaterThan(quantity(‹quantity›))", "quantity(‹quantity›) == quantity(‹quantity›)", "quantity(‹quantity›).isInteger()", "isSemver(‹version›)", "isSemver(‹version›, true)", "semver(‹version›).isLessThan(semver(‹version›))", "format.named(‹named›).hasValue()", "format.named(‹named›).value().validate(‹string›).hasValue()",
		`ip(‹address›).isLinkLocalUnicast()`, `ip(‹address›).isLinkLocalMulticast()`, `ip(‹address›).isUnspecified()`, `ip(‹address›) != ip(‹address›)`, `cidr(‹network›).containsIP(ip(‹address›))`, `cidr(‹network›).containsIP(dyn(‹address›))`, `cidr(‹network›).containsCIDR(cidr(‹network›))`, `cidr(‹network›) == cidr(‹network›)`, `cidr(‹network›).containsIP(cidr(‹network›).ip())`, `quantity(‹quantity›).isLessThan(quantity(‹quantity›))`, `quantity(‹quantity›) != quantity(‹quantity›)`, `isQuantity(‹string›)`, `isSemver(‹string›)`, `isURL(‹string›)`, `isIP(‹string›)`, `isCIDR(‹string›)`, `url(‹link›) == url(‹link›)`, `semver(‹version›) == semver(‹version›)`, `semver(‹version›, true) == semver(‹version›)`, `semver(‹version›).isGreaterThan(semver(‹version›))`, `isSemver(‹version›, ‹bool›)`, `format.dns1123Label().validate(‹string›).hasValue()`, `format.uri().validate(‹link›).hasValue()`, `format.named(‹named›) == format.named(‹named›)`, `format.date().validate(‹string›).hasValue()`, `format.datetime().validate(‹string›).hasValue()`, `format.byte().validate(‹string›).hasValue()`, `format.uuid().validate(‹string›).hasValue()`, `format.labelValue().validate(‹string›).hasValue()`, `format.qualifiedName().validate(‹string›).hasValue()`, `format.dns1123Subdomain().validate(‹string›).hasValue()`, `format.dns1123LabelPrefix().validate(‹string›).hasValue()`, `format.dns1035Label().validate(‹string›).hasValue()`, `‹doubles›.isSorted()`, `‹double› == ‹double›`, `‹double› < ‹double›`, `‹uint› == ‹uint›`, `‹timestamp› == ‹timestamp›`, `‹duration› != ‹duration›`, `‹bytes› == ‹bytes›`, `‹optional› == ‹optional›`, `‹map› == ‹map›`, `‹strings› == ‹strings›`, `‹any› in [‹any›]`, `‹any› in ‹strings›`, `‹double› in ‹doubles›`, `‹uint› in ‹ints›`, `‹string› in ["a", "b", "alice"]`, `‹int› in [1, 2, 3]`, `‹double› in [1.0, 5.0]`, `‹double› in [1, 5]`, `‹any› in {"a": 1}`, `sets.contains(‹ints›, ‹doubles›)`, `sets.intersects(‹ints›, ‹ints›)`, `sets.equivalent(‹strings›, ‹strings›)`, `sets.contains([‹any›], [‹any›])`, `‹ints›.exists(i, x, x > i)`, `‹ints›.exists_one(i, x, x == i)`, `‹ints›.all(i, x, x >= i)`, `‹strings›.existsOne(i, x, x == ‹string›)`, `[‹any›, ‹any›].all(x, x == ‹any›)`, `[‹bool›, ‹bool›].exists(x, x)`, `[‹bool›, ‹bool›].exists_one(x, x)`, `[‹bool›, ‹bool›].all(x, !x)`, `{"a": ‹bool›}.all(k, v, v)`, `{"a": ‹int›}.exists(k, v, v > ‹int›)`, `{‹string›: 1}.exists(k, k == ‹string›)`, `‹string› == ‹any›`, `‹int› == ‹any›`, `‹any› == ‹double›`, `‹bool› == ‹any›`, `type(‹string›) == string`, `type(‹any›) in [int, string, double]`, `has(‹map›.a)`, `has({"a": ‹any›}.a)`, `‹bool› ? ‹bool› : ‹any› == ‹any›`, `‹bool› == ‹bool› || ‹bool› != ‹bool›`, `‹timestamp› - ‹timestamp› > ‹duration›`, `‹timestamp› + ‹duration› < ‹timestamp›`, `[‹duration›, ‹duration›].isSorted()`, `[‹timestamp›, ‹timestamp›].isSorted()`, `[‹bytes›, ‹bytes›].isSorted()`, `[‹bool›, ‹bool›].isSorted()`, `authorizer.group("")`, `‹optional›.hasValue() && ‹optional›.value() == ‹any›`, `‹string›.matches(‹string›)`, `‹string›.contains(‹short›)`, `‹any› in ‹map›`, `‹int› in {‹double›: 1}`, `null in {‹any›: 1}`, `{dyn(‹int›): 1} == {dyn(‹double›): 1}`},
	"int": {"‹int› + ‹int›", "‹int› - ‹int›", "‹int› * ‹int›", "‹int› / ‹int›", "‹int› % ‹int›", "-‹int›", "‹int› - ‹int› * ‹int›", "‹int› - ‹int› - ‹int›", "‹bool› ? ‹int› : ‹int›", "int(‹double›)", "int(‹uint›)", "int(‹string›)", "int(‹timestamp›)", "int(‹duration›)", "size(‹string›)", "‹bytes›.size()", "size(‹strings›)", "size(‹map›)",
		"‹string›.indexOf(‹string›)", "‹string›.indexOf(‹string›, ‹small›)", "‹string›.lastIndexOf(‹string›)", "‹string›.lastIndexOf(‹string›, ‹small›)", "‹ints›.sum()", "‹ints›.min()", "‹ints›.max()", "‹ints›.indexOf(‹int›)", "‹strings›.lastIndexOf(‹string›)", "‹ints›[‹small›]", "‹timestamp›.getFullYear()", "‹timestamp›.getMonth()", "‹timestamp›.getDayOfYear()", "‹timestamp›.getDayOfWeek(\"-07:00\")", "‹timestamp›.getHours(\"+05:30\")", "‹timestamp›.getHours(\"Europe/Berlin\")", "‹timestamp›.getMilliseconds()", "‹duration›.getSeconds()", "‹duration›.getMinutes()", "‹duration›.getMilliseconds()",
		"cidr(‹network›).prefixLength()", "ip(‹address›).family()", "quantity(‹quantity›).asInteger()", "quantity(‹quantity›).compareTo(quantity(‹quantity›))", "sign(quantity(‹quantity›))", "semver(‹version›).minor()", "semver(‹version›, true).compareTo(semver(‹version›))",
		`‹timestamp›.getDate()`, `‹timestamp›.getDayOfMonth("America/New_York")`, `‹timestamp›.getDate("Asia/Kathmandu")`, `‹timestamp›.getMonth("Pacific/Auckland")`, `‹timestamp›.getMinutes("-00:30")`, `‹timestamp›.getSeconds()`, `‹timestamp›.getDayOfWeek()`, `‹timestamp›.getDayOfYear("UTC")`, `‹timestamp›.getFullYear("+14:00")`, `‹timestamp›.getHours("nope/zone")`, `‹timestamp›.getHours(‹string›)`, `‹timestamp›.getMinutes("5:30")`, `‹duration›.getHours()`, `semver(‹version›).major()`, `semver(‹version›).patch()`, `semver(‹version›).compareTo(semver(‹version›))`, `quantity(‹quantity›).sign()`, `quantity(‹quantity›).sub(quantity(‹quantity›)).asInteger()`, `quantity(‹quantity›).add(‹int›).asInteger()`, `size(‹any›)`, `size(‹bytes›)`, `size(‹ints›)`, `cidr(‹network›).ip().family()`, `cidr(‹network›).masked().prefixLength()`, `‹ints›.lastIndexOf(‹int›)`, `‹doubles›.indexOf(‹double›)`, `‹strings›.indexOf(‹any›)`, `‹any›.indexOf(‹any›)`, `‹ints›[‹double›]`, `‹ints›[‹uint›]`, `‹ints›[‹small›] + ‹int›`, `int(‹any›)`, `int(‹string›)`, `‹optional›.orValue(‹int›)`, `{1: ‹int›, 2: ‹int›}[‹small›]`, `{dyn(‹double›): ‹int›}[‹small›]`, `{‹any›: ‹int›}[‹any›]`, `[‹int›, ‹int›, ‹int›].max()`, `[‹int›, ‹int›].min() * ‹int›`, `‹strings›.map(x, size(x)).sum()`, `url(‹link›).getQuery().size()`, `‹string›.split(‹short›).size()`},
	"uint": {"‹uint› + ‹uint›", "‹uint› - ‹uint›", "‹uint› * ‹uint›", "‹uint› / ‹uint›", "‹uint› % ‹uint›", "uint(‹int›)", "uint(‹double›)", "uint(‹string›)",
		`uint(‹any›)`, `[‹uint›, ‹uint›].sum()`, `[‹uint›, ‹uint›].max()`, `‹uint› - ‹uint› * ‹uint›`},
	"double": {"‹double› + ‹double›", "‹double› - ‹double›", "‹double› * ‹double›", "‹double› / ‹double›", "-‹double›", "double(‹int›)", "double(‹uint›)", "double(‹string›)", "‹doubles›.sum()", "‹doubles›.max()", "‹bool› ? ‹double› : ‹double›", "quantity(‹quantity›).asApproximateFloat()",
		`[‹double›, ‹double›].min()`, `double(‹any›)`, `double(‹string›)`, `‹double› % ‹double›`, `‹double› + ‹int›`, `quantity(‹quantity›).asApproximateFloat() + ‹double›`, `{"a": ‹double›}.a`, `‹doubles›[‹small›]`},
	"string": {"‹string› + ‹string›", "‹bool› ? ‹string› : ‹string›", "string(‹int›)", "string(‹uint›)", "string(‹double›)", "string(‹bool›)", "string(‹bytes›)", "string(‹duration›)", "string(‹timestamp›)", "string(ip(‹address›))", "string(cidr(‹network›))", "‹string›.lowerAscii()", "‹string›.upperAscii()", "‹string›.trim()", "‹string›.charAt(‹small›)", "‹string›.substring(‹small›)", "‹string›.substring(‹small›, ‹small›)",
		"‹string›.replace(‹short›, ‹short›)", "‹string›.replace(‹short›, ‹short›, ‹small›)", "‹strings›.join()", "‹strings›.join(‹short›)", "‹strings›[‹small›]", "‹string›.find(‹pattern›)", "strings.quote(‹string›)", "url(‹link›).getHost()", "url(‹link›).getHostname()", "url(‹link›).getPort()", "url(‹link›).getScheme()", "url(‹link›).getEscapedPath()", "‹map›.a", "‹map›[\"b\"]", "‹optional›.orValue(‹string›)",
		"\"%d %s\".format([‹int›, ‹any›])", "\"%x %X\".format([‹int›, ‹string›])", "\"%.2f %e\".format([‹double›, ‹double›])", "\"%s\".format([‹strings›])", "\"%b %o\".format([‹int›, ‹int›])", "\"%%%s\".format([‹duration›])",
		`string(‹any›)`, `string(quantity(‹quantity›))`, `string(semver(‹version›))`, `string(url(‹link›))`, `string(cidr(‹network›).ip())`, `string(cidr(‹network›).masked())`, `‹string›.reverse()`, `‹string›.replace(‹string›, ‹short›, ‹small›)`, `‹strings›.join(‹string›)`, `‹strings›.reverse().join(‹short›)`, `‹string›.lowerAscii().upperAscii()`, `"%s".format([‹any›])`, `"%s %s".format([‹map›, ‹bytes›])`, `"%.3f".format([‹double›])`, `"%.400f".format([‹double›])`, `"%.1100f".format([‹double›])`, `"%.800e".format([‹double›])`, `"%.2000e".format([‹int›])`, `"%.99999f".format([‹double›])`, `"%.1000000e".format([‹double›])`, `"%.40000f".format([‹double›])`, `"%.65538f".format([‹double›])`, `"%.65536f".format([‹double›])`, `"%.99999999999999999999f".format([‹double›])`, `"%.1000f".format([[‹double›]])`, `"%.16e %.17f %.18e".format([‹double›, ‹double›, ‹double›])`, `"%e".format([‹double›])`, `"%.0e".format([‹int›])`, `"%f".format([‹double›])`, `"%d".format([‹uint›])`, `"%d".format([‹any›])`, `"%x".format([‹bytes›])`, `"%X".format([‹uint›])`, `"%o".format([‹int›])`, `"%b".format([‹bool›])`, `"%b".format([‹uint›])`, `"%s".format([‹timestamp›])`, `"%s".format([‹optional›])`, `"%s".format([type(‹any›)])`, `"%s".format([[‹double›, ‹double›]])`, `"%s".format([{"k": ‹any›}])`, `"%".format([‹any›])`, `"%q".format([‹any›])`, `"%s %s".format([‹any›])`, `"%.f".format([‹double›])`, `‹string›.format([‹any›])`, `‹string›.find(‹string›)`, `‹string›[‹small›]`, `‹any›.sub`, `{"a": ‹string›}[‹string›]`, `{"a": {"b": ‹string›}}.a.b`, `string(‹timestamp› + ‹duration›)`, `string(‹duration› - ‹duration›)`, `‹optional›.value()`, `url(‹link›).getQuery()["q"][0]`, `string(type(‹any›))`, `‹string›.trim().charAt(‹small›)`, `‹string›.substring(‹small›, ‹small›).trim()`, `‹string› + string(‹any›)`},
	"bytes": {"‹bytes› + ‹bytes›", "bytes(‹string›)", "‹bool› ? ‹bytes› : ‹bytes›",
		`bytes(‹bytes›)`, `bytes(‹any›)`, `[‹bytes›, ‹bytes›][‹small›]`},
	"strings": {"[‹string›, ‹string›]", "[‹string›, ?‹optional›]", "‹strings› + ‹strings›", "‹strings›.filter(x, x != ‹string›)", "‹strings›.map(x, x + ‹string›)", "‹strings›.map(x, x != ‹string›, x)", "‹string›.split(‹short›)", "‹string›.split(‹short›, ‹small›)", "‹string›.findAll(‹pattern›)", "‹string›.findAll(‹pattern›, ‹small›)", "‹strings›.sort()", "‹strings›.distinct()", "‹strings›.reverse()", "‹strings›.slice(‹small›, ‹small›)", "[‹strings›, ‹strings›].flatten()", "‹strings›.sortBy(x, size(x))", "‹bool› ? ‹strings› : ‹strings›", "‹strings›.transformList(i, x, x + ‹string›)", "url(‹link›).getQuery()[\"q\"]", "format.named(‹named›).value().validate(‹string›).orValue([])",
		`‹strings›.slice(‹small›, ‹small›).reverse()`, `[‹string›, ‹string›].sort()`, `[‹string›, ‹string›, ‹string›].distinct()`, `‹strings›.sortBy(x, x.lowerAscii())`, `‹ints›.map(x, string(x))`, `‹strings›.filter(i, x, i > 0)`, `‹strings›.transformList(i, x, i % 2 == 0, x)`, `url(‹link›).getQuery()[‹string›]`, `[[‹string›], [[‹string›]]].flatten(‹small›)`, `‹string›.split(‹string›, ‹small›)`, `‹string›.findAll(‹string›, ‹small›)`, `lists.range(‹small›).map(x, ‹string›)`, `optional.unwrap([‹optional›, ‹optional›])`, `[‹optional›, ‹optional›].unwrapOpt()`, `‹any› + ‹strings›`},
	"ints": {"[‹int›, ‹int›]", "‹ints› + ‹ints›", "‹ints›.map(x, x * 2)", "‹ints›.filter(x, x > ‹int›)", "‹ints›.sort()", "‹ints›.distinct()", "‹ints›.reverse()", "‹ints›.slice(‹small›, ‹small›)", "lists.range(‹small›)", "‹ints›.transformList(i, x, i > 0, i + x)",
		`‹ints›.sortBy(x, -x)`, `‹strings›.map(x, size(x))`, `‹ints›.transformList(i, x, i)`, `[‹ints›, ‹ints›].flatten()`, `[‹int›, ‹int›, ‹int›].sort().reverse()`, `lists.range(‹int›).slice(0, ‹small›)`},
	"doubles": {"[‹double›, ‹double›]", "‹doubles› + ‹doubles›", "‹doubles›.sort()", "‹doubles›.map(x, x / 2.0)",
		`‹doubles›.distinct()`, `‹doubles›.reverse()`, `‹doubles›.sortBy(x, -x)`},
	"map": {"{\"a\": ‹string›}", "{‹string›: ‹string›, \"z\": ‹string›}", "{?\"a\": ‹optional›}", "‹strings›.transformMap(i, x, x)", "‹bool› ? ‹map› : ‹map›",
		`{‹string›: ‹any›}`, `{‹int›: ‹string›, 2: ‹string›}`, `{"a": ‹string›, ?"b": ‹optional›}`, `‹ints›.transformMap(i, x, i > 0, string(x))`, `‹strings›.transformMapEntry(i, x, {x: string(i)})`, `{"a": ‹string›}.transformMap(k, v, v + k)`, `{"a": ‹string›}.transformMapEntry(k, v, {v: k})`, `url(‹link›).getQuery()`, `{‹any›: ‹any›}`},
	"optional": {"optional.of(‹any›)", "optional.ofNonZeroValue(‹any›)", "‹optional›.or(‹optional›)", "‹optional›.optMap(x, [x])", "‹strings›[?‹small›]", "‹map›[?‹string›]", "‹strings›.first()", "‹ints›.last()", "optional.of(‹string›).optFlatMap(x, x == ‹string› ? optional.none() : optional.of(x))",
		`‹optional›.optFlatMap(x, optional.of(x))`, `‹optional›.optMap(x, x == ‹any›)`, `‹strings›.last()`, `‹map›.?a`, `‹map›.?a.?b`, `{"a": ‹optional›}.?a`, `format.named(‹named›)`, `optional.of(‹optional›)`, `‹any›.?a`, `‹any›[?0]`, `format.named(‹named›).optMap(f, f.validate(‹string›))`},
	"duration": {"duration(‹string›)", "‹duration› + ‹duration›", "‹duration› - ‹duration›", "‹timestamp› - ‹timestamp›", "[‹duration›, ‹duration›].sum()",
		`duration(‹any›)`, `‹timestamp› - ‹timestamp› + ‹duration›`, `[‹duration›, ‹duration›].max()`, `-‹duration›`},
	"timestamp": {"timestamp(‹string›)", "timestamp(‹int›)", "‹timestamp› + ‹duration›", "‹timestamp› - ‹duration›",
		`timestamp(‹any›)`, `[‹timestamp›, ‹timestamp›].max()`, `‹duration› + ‹timestamp›`, `timestamp(‹timestamp›)`},
	"any": {"‹bool›", "‹int›", "‹double›", "‹string›", "‹strings›", "‹ints›", "‹map›", "‹optional›", "‹bytes›", "‹uint›", "‹duration›", "‹timestamp›", "[‹any›, ‹any›]", "type(‹any›)", "dyn(‹any›)", "‹bool› ? dyn(‹any›) : dyn(‹any›)", "ip(‹address›)", "cidr(‹network›).masked()", "url(‹link›)", "quantity(‹quantity›).add(quantity(‹quantity›))", "quantity(‹quantity›).sub(‹int›)", "semver(‹version›)", "[optional.of(‹any›), ‹optional›].unwrapOpt()",
		`google.protobuf.FloatValue{value: ‹double›}`, `google.protobuf.Int32Value{value: ‹int›}`, `google.protobuf.UInt32Value{value: ‹uint›}`, `google.protobuf.FloatValue{value: ‹any›}`, `google.protobuf.BytesValue{value: ‹bytes›}`, `google.protobuf.UInt64Value{?value: ‹optional›}`, `kubernetes.UserInfo{username: ‹string›}`, `kubernetes.UserInfo{groups: ‹strings›}.groups`, `has(kubernetes.UserInfo{?uid: ‹optional›}.uid)`, `kubernetes.UserInfo{uid: ‹string›} == kubernetes.UserInfo{uid: ‹string›}`, `kubernetes.UserInfo{extra: {‹string›: ‹strings›}}.extra`, `google.protobuf.Value{string_value: ‹string›}`, `google.protobuf.Value{number_value: ‹double›}`, `google.protobuf.Duration{seconds: ‹int›, nanos: ‹small›}`, `google.protobuf.Timestamp{seconds: ‹int›}`, `google.protobuf.Value{null_value: ‹any›}`, `google.protobuf.Empty{} == ‹any›`, `google.protobuf.NullValue.NULL_VALUE == ‹any›`,
		`google.protobuf.DoubleValue{value: ‹double›}`, `google.protobuf.BoolValue{value: ‹bool›}`, `‹any›[‹any›]`, `‹any›.a`, `‹any› + ‹any›`, `‹any› - ‹any›`, `‹any› * ‹any›`, `‹any› < ‹any›`, `‹any›.size()`, `cidr(‹network›)`, `cidr(‹network›).ip()`, `quantity(‹quantity›)`, `quantity(‹quantity›).sub(quantity(‹quantity›))`, `semver(‹version›, true)`, `semver(‹version›, ‹bool›)`, `‹optional›.orValue(‹any›)`, `dyn(‹any›).map(x, x)`, `[‹any›].map(x, x == ‹any›)`, `-‹any›`, `!‹any›`},
}

var userLeaves = map[string][]string{
	"bool":    {"true", "has(user.uid)", `has(user.extra.a)`, `user.username == ""`},
	"string":  {"user.username", "user.uid", `"a"`, `"ann"`, `user.extra["a"][0]`, `user.extra[?"a"][0].orValue("")`, "user.extra.example__dot__com__slash__k[0]"},
	"strings": {"user.groups", `["a"]`, `user.extra["a"]`, "user.extra.example__dot__com__slash__k"},
	"any":     {"kubernetes.UserInfo{}", `kubernetes.UserInfo{nope: 1}`, `kubernetes.UserInfo{uid: user.uid}`, `kubernetes.UserInfo{groups: user.groups} == user`, `kubernetes.UserInfo{extra: user.extra}.extra`, `.kubernetes.UserInfo{username: .user.username}.username`, `google.protobuf.Empty{}`, `kubernetes.UserInfo{username: "a"}`, "kubernetes.UserInfo", "user", "user.extra", "user.groups", "user.username", "user.nope"},
	"map":     {"{}", `{"a": "x"}`},
}

var childPattern = regexp.MustCompile(`‹(\w+)›`)

// expression draws one of a type, sometimes with a child of another.
func (r *random) expression(kind string, depth int, special map[string][]string) node {
	shapes := forms[kind]
	if depth <= 0 || len(shapes) == 0 || r.chance(15) {
		if own := special[kind]; own != nil && (r.chance(60) || leaves[kind] == nil) {
			return node{template: r.spelling(pick(r, own...))}
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
		return node{template: r.spelling(pick(r, leaves[kind]...))}
	}
	form := r.spelling(pick(r, shapes...))
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

var (
	globalName   = regexp.MustCompile(`(^|[^\w."'.])(claims|user)\b`)
	functionName = regexp.MustCompile(`^\w+(\.\w+)?\(`)
	variableName = regexp.MustCompile(`\bx\b`)
)

// spelling now and then writes a template in another way: with leading dots, or with another name for what it binds.
func (r *random) spelling(template string) string {
	switch {
	case r.chance(3):
		return globalName.ReplaceAllString(template, "$1.$2")
	case r.chance(3) && functionName.MatchString(template):
		return "." + template
	case r.chance(4) && (strings.Contains(template, "(x, ") || strings.Contains(template, ", x, ")):
		name := pick(r, "__result__", "claims", "user", ".x", ".claims", "_")
		if r.chance(50) {
			// Only where it is bound.
			return strings.Replace(strings.Replace(template, "(x, ", "("+name+", ", 1), ", x, ", ", "+name+", ", 1)
		}
		return variableName.ReplaceAllString(template, name)
	}
	return template
}

// deep is a chain or a nesting near the limits of the parser, of a type that is mostly what is wanted, with at most so many
// nested comprehensions.
func (r *random) deep(kind string, comprehensions int) node {
	shapes := [][3]string{
		{"", "1", "+1"}, {"", "1", "*1"}, {"", "1", "+1*1"}, {"", "1", "-(1)"}, {"(", "1", "+1)"}, {"(1+", "1", ")"}, {"-(", "1", ")"}, {"dyn(", "1", ")"}, {"true?1:", "1", ""}, {"[1].map(x, ", "1", ")"},
		{"", "claims", ".a"}, {"", "claims.l", "[0]"}, {"", "claims", ".?a"}, {"", "claims.l", "[?0]"}, {"claims.l[", "0", "]"}, {"(", "claims", ").a"}, {"[", "claims.sub", "]"}, {`{"a": `, "claims.sub", "}"},
	}
	switch kind {
	case "bool":
		shapes = [][3]string{{"", "true", "==true"}, {"", "true", " in [true]"}, {"(", "true", ")"}, {"!(", "true", ")"}, {"(true==", "true", ")"}, {"(", "true", "!=false)"}, {"(true||", "claims.b", ")"}, {"(true&&", "claims.b", ")"}, {"[1].all(x, ", "true", ")"}, {"true?true:", "claims.b", ""}}
	case "string":
		shapes = [][3]string{{"", `"a"`, ".trim()"}, {"", "claims.sub", `.replace("a", "b")`}, {"", `"a"`, `+"a"`}, {"(", "claims.sub", ")"}, {"string(", "claims.sub", ")"}, {"(", `"a"`, `+claims.sub)`}, {`("a"+`, "claims.sub", ")"}, {"(", "claims.sub", ").trim()"}, {"[", "claims.sub", "][0]"}}
	}
	shape := pick(r, shapes...)
	count := pick(r, 250, 250, 125, 83) - 3 + r.IntN(6)
	if strings.HasPrefix(shape[0], "[1].") {
		count = min(count, comprehensions)
	}
	text := strings.Repeat(shape[0], count) + shape[1] + strings.Repeat(shape[2], count)
	return node{template: pick(r, "{}", "{}", "({})", "[{}]", "dyn({})", "{} == 1", "1 == {}", "true ? 1 : {}", "!{}", "claims.l[{}]"), children: []node{{template: text}}}
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
		if r.IntN(200) == 0 { // They take long.
			tree["expr"] = r.deep(kind, 256)
		}
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
