//! One planted change per kind of rule and per row of the table of versions.

use super::*;

/// Finds a change of this kind whose example both sides decide as the report says.
fn assert_found(from: &str, to: &str, versions: (KubeVersion, KubeVersion), kind: ChangeKind, words: &str) {
    let report = compare((from, versions.0), (to, versions.1));
    assert!(report.changed && report.tokens_tried > 0, "{report}");
    let change = report.changes.iter().find(|change| change.kind == kind && change.summary.contains(words));
    let change = change.unwrap_or_else(|| panic!("no {kind:?} change with `{words}`:\n{report}"));
    let example = change.example.as_ref().unwrap();
    let [first, second] = decided(example, (from, to), versions);
    let told = [&example.from, &example.to].map(|side| serde_json::to_value(&side.outcome).unwrap());
    assert_eq!([&first, &second], [&told[0], &told[1]], "{words}");
    // Every other claim could be left out.
    let claims = example.claims.as_object().unwrap();
    assert!(claims.len() <= 9, "{words}: {claims:?}");
}

fn assert_file_change(to: &Value, kind: ChangeKind, words: &str) {
    let version = KubeVersion::default();
    assert_found(&config().to_string(), &to.to_string(), (version, version), kind, words);
}

#[test]
fn removed_audience_is_found() {
    let issuer = json!({"url": "https://login.example.com", "audiences": ["kubernetes"]});
    assert_file_change(&changed("/jwt/0/issuer", issuer), ChangeKind::Rejected, "(audience)");
}

#[test]
fn changed_prefix_is_found() {
    let username = json!({"expression": "'sso:' + claims.sub"});
    let to = changed("/jwt/0/claimMappings/username", username);
    assert_file_change(&to, ChangeKind::User, "another username");
}

#[test]
fn renamed_claim_is_found() {
    let to = changed("/jwt/0/claimMappings/uid", json!({"claim": "uuid"}));
    assert_file_change(&to, ChangeKind::Rejected, "(mapping)");
    assert_file_change(&to, ChangeKind::Accepted, "(mapping)");
}

#[test]
fn changed_constant_of_a_claim_rule_is_found() {
    for (expression, kind) in [
        ("claims.level >= 4.0 && claims.tenant in ['one', 'two']", ChangeKind::Rejected),
        ("claims.level > 3.0 && claims.tenant in ['one', 'two']", ChangeKind::Rejected),
        ("claims.level >= 3.0 && claims.tenant in ['one', 'two', 'three']", ChangeKind::Accepted),
        ("claims.level >= 3.0 && claims.tenant in ['one']", ChangeKind::Rejected),
        ("claims.level >= 3.0 || claims.tenant in ['one', 'two']", ChangeKind::Accepted),
    ] {
        let to = changed("/jwt/0/claimValidationRules/1/expression", json!(expression));
        assert_file_change(&to, kind, "(claim_rule)");
    }
}

#[test]
fn changed_required_value_is_found() {
    let to = changed("/jwt/0/claimValidationRules/0/requiredValue", json!("example.org"));
    assert_file_change(&to, ChangeKind::Rejected, "(required_claim)");
}

#[test]
fn changed_user_rule_is_found() {
    let rule = json!("!user.username.startsWith('oidc:adm')");
    let to = changed("/jwt/0/userValidationRules/0/expression", rule);
    assert_file_change(&to, ChangeKind::Rejected, "(user_rule)");
    assert_file_change(&to, ChangeKind::Accepted, "(user_rule)");
}

#[test]
fn changed_group_expression_is_found() {
    for groups in [
        "has(claims.roles) ? dyn(claims.roles).map(r, 'team-' + r) : ['nobody']",
        "has(claims.roles) ? dyn(claims.roles).filter(r, r != 'admin').map(r, 'team-' + r) : ['everyone']",
    ] {
        let to = changed("/jwt/0/claimMappings/groups/expression", json!(groups));
        assert_file_change(&to, ChangeKind::User, "another group");
    }
}

#[test]
fn changed_extra_attribute_is_found() {
    for (key, value, words) in [
        (
            "example.com/org",
            "claims.tenant",
            "extra attribute `example.com/org` and extra attribute `example.com/tenant`",
        ),
        ("example.com/tenant", "claims.tenant.upperAscii()", "another extra attribute `example.com/tenant`"),
    ] {
        let to = changed("/jwt/0/claimMappings/extra", json!([{"key": key, "valueExpression": value}]));
        assert_file_change(&to, ChangeKind::User, words);
    }
}

#[test]
fn changed_uid_is_found() {
    let to = changed("/jwt/0/claimMappings/uid", json!({"expression": "claims.oid + '-1'"}));
    assert_file_change(&to, ChangeKind::User, "another UID");
}

#[test]
fn changed_issuer_is_found() {
    let to = changed("/jwt/0/issuer/url", json!("https://login.example.com/"));
    assert_file_change(&to, ChangeKind::Rejected, "(no configured issuer)");
    assert_file_change(&to, ChangeKind::Accepted, "(no configured issuer)");
}

#[test]
fn changed_message_is_found_in_the_log() {
    let to = changed("/jwt/0/userValidationRules/0/message", json!("no root"));
    assert_file_change(&to, ChangeKind::Log, "logged in other words");
}

// V1, V2
#[test]
fn differences_between_versions_are_found() {
    let config = config().to_string();
    let versions = (KubeVersion::V1_37, KubeVersion::V1_38);
    for (kind, words) in [
        (ChangeKind::Accepted, "(not_yet_valid)"),
        (ChangeKind::Accepted, "(not_ready)"),
        (ChangeKind::Rejected, "(not_ready)"),
        (ChangeKind::Rejected, "(signature)"),
        (ChangeKind::Log, "logged in other words"),
    ] {
        assert_found(&config, &config, versions, kind, words);
    }
    let report = compare_versions(&config, versions.0, versions.1);
    let logs = report.changes.iter().filter(|change| change.kind == ChangeKind::Log);
    let logs: Vec<&str> = logs.filter_map(|change| change.example.as_ref()?.to.log.as_deref()).collect();
    assert!(logs.iter().any(|log| log.contains("unexpected signature algorithm \"HS256\"")), "{logs:?}");
    let examples = report.changes.iter().filter_map(|change| change.example.as_ref());
    let ahead = |example: &ExampleToken| Some(example.claims.get("nbf")?.as_i64()? - example.now);
    let ahead: Vec<i64> = examples.filter_map(ahead).collect();
    assert!(ahead.contains(&61), "the boundary: {ahead:?}");
}

// S123
#[test]
fn order_of_checks_is_found_in_the_log() {
    let config = config().to_string();
    let report = compare_versions(&config, KubeVersion::V1_35, KubeVersion::V1_36);
    assert!(report.changes.iter().all(|change| change.kind == ChangeKind::Log), "{report}");
    assert!(report.changed, "{report}");
    let same = compare_versions(&config, KubeVersion::V1_34, KubeVersion::V1_35);
    assert!(!same.changed, "{same}");
    assert!(same.to_string().starts_with("no difference found in "), "{same}");
}

// V5
#[test]
fn configuration_that_is_valid_in_one_version_is_found() {
    for (expression, versions, valid) in [
        ("cidr('10.0.0.0/8').isMask()", (KubeVersion::V1_37, KubeVersion::V1_38), "becomes valid"),
        ("[claims.sub].includes('a')", (KubeVersion::V1_36, KubeVersion::V1_37), "becomes valid"),
        ("[claims.sub].includes('a')", (KubeVersion::V1_37, KubeVersion::V1_36), "becomes invalid"),
        ("claims.`a-b` == 'c'", (KubeVersion::V1_36, KubeVersion::V1_37), "becomes valid"),
    ] {
        let config = changed("/jwt/0/claimValidationRules/1/expression", json!(expression)).to_string();
        let report = compare_versions(&config, versions.0, versions.1);
        assert_eq!((report.changes.len(), report.tokens_tried), (1, 0), "{report}");
        assert_eq!(report.changes[0].kind, ChangeKind::Configuration);
        assert!(report.changes[0].summary.contains(valid), "{report}");
    }
    let report = compare_files(&config(), &changed("/jwt/0/issuer/url", json!("")));
    let words = "the configuration becomes invalid: old.yaml accepts it";
    assert!(report.changes[0].summary.starts_with(words), "{report}");
}

#[test]
fn search_is_deterministic() {
    let to = changed("/jwt/0/claimMappings/uid", json!({"claim": "uuid"}));
    let [first, second] = [(); 2].map(|()| compare_files(&config(), &to));
    assert_eq!(first.to_string(), second.to_string());
    assert_eq!(first.tokens_tried, second.tokens_tried);
}
