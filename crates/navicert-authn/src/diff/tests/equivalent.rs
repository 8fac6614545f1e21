//! Files that mean the same: reordered, reformatted, quoted differently, with other names of variables.

use super::*;

/// An expression, and others that mean the same.
const SAME: [(&str, &[&str]); 5] = [
    (
        "dyn(claims.groups).all(g, g != 'root')",
        &["dyn(claims.groups).all(name, name != 'root')", "dyn(claims.groups).all(g, g != \"root\")"],
    ),
    (
        "dyn(claims.groups).exists(g, g.startsWith('team-'))",
        &[
            "dyn(claims.groups).exists(x, x.startsWith('team-'))",
            "  dyn(claims.groups) . exists(g, g.startsWith( 'team-' ))",
        ],
    ),
    ("claims.hd == 'example.com'", &["claims['hd'] == 'example.com'", "(claims.hd) == 'example.com'"]),
    (
        "claims.level >= 3.0 && claims.tenant in ['one', 'two']",
        &[
            "claims.level >= 3.0 && claims.tenant in [\"one\", \"two\"]",
            "claims.level >= 3.00\n&& claims.tenant in ['one', 'two'] // allowed",
        ],
    ),
    (
        "has(claims.roles) ? dyn(claims.roles).map(r, 'p:' + r).size() > 0 : true",
        &["has(claims.roles) ? dyn(claims.roles).map(role, 'p:' + role).size() > 0 : true"],
    ),
];

fn with_rule(expression: &str) -> Value {
    changed("/jwt/0/claimValidationRules/1/expression", json!(expression))
}

/// YAML of a value: `style` selects the order of members, the indentation and the quotes.
fn yaml(value: &Value, indent: usize, style: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            if style % 2 == 1 {
                members.reverse();
            }
            let member = |(name, value): &(&String, &Value)| {
                let inner = yaml(value, indent + 2 + style % 3, style);
                let separator = if value.is_object() || value.is_array() { "\n" } else { " " };
                format!("{pad}{name}:{separator}{inner}")
            };
            members.iter().map(member).collect::<Vec<_>>().join("\n")
        }
        Value::Array(list) => {
            let item = |value: &Value| match value {
                Value::Object(_) => format!("{pad}-\n{}", yaml(value, indent + 2, style)),
                value => format!("{pad}- {}", yaml(value, 0, style)),
            };
            list.iter().map(item).collect::<Vec<_>>().join("\n")
        }
        Value::String(text) if style % 4 >= 2 && !text.contains('\n') => {
            format!("'{}'", text.replace('\'', "''"))
        }
        other => other.to_string(),
    }
}

fn assert_same(from: &str, to: &str) {
    let version = KubeVersion::default();
    let report = compare((from, version), (to, version));
    assert!(!report.changed && report.from.valid && report.to.valid, "{from}\n{to}\n{report}");
    assert!(report.tokens_tried > 500, "{report}");
    let text = report.to_string();
    assert!(text.starts_with(&format!("no difference found in {} tokens", report.tokens_tried)), "{text}");
}

#[test]
fn equivalent_files_raise_no_alarm() {
    let mut pairs = 0;
    for (number, (expression, others)) in SAME.iter().enumerate() {
        let first = with_rule(expression);
        for style in 0..5 {
            assert_same(&first.to_string(), &yaml(&first, 0, style + number));
            pairs += 1;
        }
        let styled = others.iter().enumerate().flat_map(|(at, other)| [(at, other), (at + 3, other)]);
        for (style, other) in styled {
            assert_same(&yaml(&first, 0, style), &yaml(&with_rule(other), 0, style + 1));
            pairs += 1;
        }
    }
    // Other kinds of mappings and rules, in every style.
    let claims = json!({
        "username": {"claim": "email", "prefix": "oidc:"},
        "groups": {"claim": "groups", "prefix": "g:"},
    });
    let rule =
        |variable: &str| json!(format!("user.groups.all({variable}, !{variable}.startsWith('system:'))"));
    let mut plain = changed("/jwt/0/claimMappings", claims);
    *plain.pointer_mut("/jwt/0/userValidationRules/0/expression").unwrap() = rule("g");
    let mut renamed = plain.clone();
    *renamed.pointer_mut("/jwt/0/userValidationRules/0/expression").unwrap() = rule("group");
    for style in 0..8 {
        assert_same(&yaml(&plain, 0, style), &yaml(&renamed, 0, style + 1));
        pairs += 1;
    }
    assert!(pairs >= 50, "{pairs} pairs");
}

// Two issuers in another order are the same authenticators.
#[test]
fn order_of_issuers_does_not_matter() {
    let mut two = config();
    let mut second = two["jwt"][0].clone();
    second["issuer"]["url"] = json!("https://second.example.com");
    two["jwt"].as_array_mut().unwrap().push(second);
    let mut swapped = two.clone();
    swapped["jwt"].as_array_mut().unwrap().reverse();
    assert_same(&two.to_string(), &swapped.to_string());
}
