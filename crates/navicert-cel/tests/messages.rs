//! Error messages with values, as the Kubernetes reference words them (`reference cel` of peers/).

use navicert_cel::kubernetes::batch;
use serde_json::json;

const CLAIMS: &str = r#"{"text":"canary","number":7316924508,"digits":"73169245087316924508731692450873","zero":0,"list":["x"],"obj":{"a":1},"b":true,"vast":7316924508e999}"#;

/// Expression and message.
const MESSAGES: [(&str, &str); 88] = [
    ("dyn(claims.list) - dyn('x') == dyn('y')", "no such overload: _-_"),
    ("dyn(claims.text) + dyn(1) == dyn('y')", "no such overload"),
    ("claims.absent == claims.text", "no such key: absent"),
    ("claims[string(claims.text)] == 'y'", "no such key: canary"),
    ("dyn(claims.list)[7] == claims.text", "index out of bounds: 7"),
    ("dyn(claims.list)[int(claims.number)] == 'y'", "index out of bounds: 7316924508"),
    ("int(claims.number) / int(claims.zero) == 1", "division by zero"),
    ("int(claims.number) % int(claims.zero) == 1", "modulus by zero"),
    ("int(claims.number) * 9223372036854775807 > 0", "integer overflow"),
    ("uint(-double(claims.number)) > 0u", "unsigned integer overflow"),
    ("timestamp(int(claims.number) * 1000000) > timestamp(0)", "timestamp overflow"),
    ("claims.?absent.value() == claims.text", "optional.none() dereference"),
    ("int(string(claims.text)) > 0", "type conversion error from 'string' to 'int'"),
    ("dyn(claims.text).all(c, c == 'x')", "got 'types.String', expected iterable type"),
    ("dyn(claims.list)[string(claims.text)] == 'y'", "unsupported index type 'string' in list"),
    ("dyn(claims.list)[claims.number + 0.5] == 'y'", "unsupported index value 7.3169245085e+09 in list"),
    ("claims.number + 0.0 / double(claims.zero) > 1.0", "NaN values cannot be ordered"),
    ("'x'.matches(string(claims.text) + '(')", "error parsing regexp: missing closing ): `canary(`"),
    ("timestamp(0).getHours(string(claims.text)) > 0", "unknown time zone canary"),
    (
        "ip(string(claims.text)).family() == 4",
        "IP Address \"canary\" parse error during conversion from string: ParseAddr(\"canary\"): unable to parse IP",
    ),
    (
        "cidr(string(claims.text)).prefixLength() == 8",
        "network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix(\"canary\"): no '/'",
    ),
    (
        "url(string(claims.text)).getHost() == ''",
        "URL parse error during conversion from string: parse \"canary\": invalid URI for request",
    ),
    ("semver(string(claims.text)).major() == 1", "No Major.Minor.Patch elements found"),
    (
        "quantity(string(claims.text)).isInteger()",
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    (
        "('%.' + string(claims.digits) + 'f').format([1.0]) == ''",
        "could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"73169245087316924508731692450873\": value out of range",
    ),
    ("string(claims.text).substring(int(claims.number)) == ''", "index out of range: 7316924508"),
    (
        "claims.vast > 1.0",
        "claim \"vast\" failed to unmarshal: json: cannot unmarshal number 7316924508e999 into Go value of type float64",
    ),
    ("-dyn(claims.text) == dyn(1)", "no such overload"),
    ("!dyn(claims.text)", "no such overload"),
    ("dyn(claims.text) * dyn(2) == dyn(1)", "no such overload"),
    ("dyn(claims.text) / dyn(2) == dyn(1)", "no such overload"),
    ("dyn(claims.text) % dyn(2) == dyn(1)", "no such overload"),
    ("dyn(duration('1s')) * dyn(2) == dyn(1)", "no such overload"),
    ("dyn(timestamp(0)) % dyn(2) == dyn(1)", "no such overload"),
    ("dyn(b'x') - dyn(2) == dyn(1)", "no such overload: _-_"),
    ("dyn([1]) - dyn(2) == dyn(1)", "no such overload: _-_"),
    ("dyn({}) - dyn(2) == dyn(1)", "no such overload: _-_"),
    ("dyn(true) - dyn(2) == dyn(1)", "no such overload: _-_"),
    ("dyn(null) - dyn(2) == dyn(1)", "no such overload: _-_"),
    ("dyn(ip('::1')) - dyn(2) == dyn(1)", "no such overload: _-_"),
    ("dyn(ip('::1')) + dyn(2) == dyn(1)", "no such overload: _+_"),
    ("dyn(quantity('1')) + dyn(2) == dyn(1)", "no such overload: _+_"),
    ("dyn(url('http://x')) < dyn(2)", "no such overload: _<_"),
    ("dyn(optional.of(1)) + dyn(2) == dyn(1)", "no such overload: _+_"),
    ("-dyn(null) == dyn(1)", "no such overload: -_"),
    ("-dyn([1]) == dyn(1)", "no such overload: -_"),
    ("-dyn(b'x') == dyn(1)", "no such overload: -_"),
    ("-dyn(true) == dyn(1)", "no such overload"),
    ("-dyn(timestamp(0)) == dyn(1)", "no such overload"),
    ("-dyn(1u) == dyn(1)", "no such overload: -_"),
    ("-dyn(ip('::1')) == dyn(1)", "no such overload: -_"),
    ("dyn(1.5) % dyn(2.5) == dyn(1)", "no such overload: _%_"),
    ("dyn(type(1)) + dyn(2) == dyn(1)", "no such overload: _+_"),
    ("dyn(claims.list)[true] == 1", "unsupported index type 'bool' in list"),
    ("dyn([1])[dyn(claims.text)] == 1", "unsupported index type 'string' in list"),
    ("dyn([1])[dyn(2.5)] == 1", "unsupported index value 2.5 in list"),
    ("dyn([1])[dyn(1e300)] == 1", "unsupported index value 1e+300 in list"),
    ("dyn([1])[dyn(18446744073709551615u)] == 1", "unsupported index value 18446744073709551615 in list"),
    ("dyn(claims.list)[?dyn('x')].hasValue()", "unsupported index type 'string' in list"),
    ("dyn(claims.list)[?dyn(1.5)].hasValue()", "unsupported index value 1.5 in list"),
    ("dyn([1])[?dyn(1.5)].hasValue()", "unsupported index value 1.5 in list"),
    ("claims.list['x'] == 1", "unsupported index type 'string' in list"),
    ("cidr('10.0.0.0/8').containsIP(string(claims.text))", "no such overload"),
    (
        "cidr('10.0.0.0/8').containsCIDR(string(claims.text))",
        "network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix(\"canary\"): no '/'",
    ),
    (
        "ip.isCanonical(string(claims.text))",
        "IP Address \"canary\" parse error during conversion from string: ParseAddr(\"canary\"): unable to parse IP",
    ),
    (
        "claims.text.findAll('(' + string(claims.text))",
        "Illegal regex: error parsing regexp: missing closing ): `(canary`",
    ),
    (
        "claims.text.findAll('(' + string(claims.text), 1)",
        "Illegal regex: error parsing regexp: missing closing ): `(canary`",
    ),
    ("claims.text.matches('[' + string(claims.text))", "error parsing regexp: missing closing ]: `[canary`"),
    ("dyn(claims.text) in dyn(claims.number)", "no such overload"),
    ("dyn({'a':1}).b == 1", "no such key: b"),
    ("dyn(claims.obj).zz == 1", "no such key: zz"),
    ("dyn(claims.text) < dyn(1)", "no such overload"),
    ("dyn(claims.obj) < dyn(1)", "no such overload: _<_"),
    ("dyn([1,2]) < dyn([1])", "no such overload: _<_"),
    ("claims.text.charAt(99)", "index out of range: 99"),
    ("dyn(claims.list)[-1]", "index out of bounds: -1"),
    ("claims.obj.x", "no such key: x"),
    ("claims.obj[claims.text]", "no such key: canary"),
    ("url('::')", "URL parse error during conversion from string: parse \"::\": missing protocol scheme"),
    ("timestamp(0).getHours('25:xx')", "strconv.Atoi: parsing \"xx\": invalid syntax"),
    ("duration(string(claims.text))", "type conversion error from 'string' to 'google.protobuf.Duration'"),
    ("semver('1.02.3')", "Minor number must not contain leading zeroes \"02\""),
    ("quantity('1K')", "unable to parse quantity's suffix"),
    ("optional.none().value()", "optional.none() dereference"),
    ("claims.text.x", "no such key: x"),
    ("[].min()", "min called on empty list"),
    (
        "('%' + string(claims.text)).format([1])",
        "could not parse formatting clause: unrecognized formatting clause \"c\"",
    ),
    ("dyn(claims.number).map(x, x)", "got 'types.Double', expected iterable type"),
];

#[test]
fn exposed_messages_match_kubernetes() {
    for (expression, message) in MESSAGES {
        let answer = batch::answer(&json!({"expr": expression, "claims_json": CLAIMS}));
        assert_eq!(answer.get("error"), Some(&json!(message)), "{expression}");
    }
}
