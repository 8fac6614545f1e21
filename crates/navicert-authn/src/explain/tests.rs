use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_testkit::vectors;
use navicert_types::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{Profile, batch};

fn explained(question: &Value, profile: &Profile) -> Explanation {
    let authenticators = batch::authenticators(question, profile).unwrap();
    let now = Timestamp::from_second(question["now"].as_i64().unwrap()).unwrap();
    explain(&authenticators, &Question::new(question["token"].as_str().unwrap(), now))
}

/// The one step that failed, and why.
fn failure(explanation: &Explanation) -> Option<(Step, String)> {
    explanation.findings.iter().find_map(|finding| match &finding.verdict {
        Verdict::Fail(why) => Some((finding.step, why.clone())),
        _ => None,
    })
}

// S286
#[test]
fn six_usual_questions_have_plain_answers() {
    let key = SigningKey::generate(Algorithm::Es256, "k1");
    let config = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
        jwt: [{issuer: {url: https://i, audiences: [kube]}, claimMappings: {username: {claim: email, prefix: ''}}, \
        claimValidationRules: [{expression: 'claims.hd == \"example.com\"', message: wrong domain}]}]\n";
    let good = json!({
        "iss": "https://i", "aud": "kube", "exp": 2_000, "email": "ann@example.com", "hd": "example.com",
    });
    let rows: [(&str, Value, Step, &str); 6] = [
        ("aud", json!("other"), Step::Audience, "the token is not for any of the configured audiences"),
        ("email_verified", json!(false), Step::Username, "email not verified"),
        ("exp", json!(999), Step::Expiry, "token is expired"),
        ("iss", json!("https://i/"), Step::Routing, "no authenticator has this issuer"),
        (
            "hd",
            json!("evil.example"),
            Step::ClaimRules,
            "jwt[0].claimValidationRules[0].expression: validation expression 'claims.hd == \"example.com\"' failed: \
            wrong domain",
        ),
        ("hd", Value::Null, Step::ClaimRules, ""),
    ];
    let ask = |claims: &Value| {
        let question = json!({"config": config, "jwks": {"keys": [key.jwk()]}, "token": key.token(claims), "now": 1_000});
        explained(&question, &Profile::HARDENED)
    };
    assert_eq!(failure(&ask(&good)), None);
    assert!(ask(&good).findings.iter().all(|finding| finding.verdict == Verdict::Pass));
    for (name, value, step, sentence) in rows {
        let mut claims = good.clone();
        claims[name] = value;
        if sentence.is_empty() {
            claims.as_object_mut().unwrap().remove(name);
        }
        let (failed, why) = failure(&ask(&claims)).unwrap();
        assert_eq!(failed, step, "{name}: {why}");
        if sentence.is_empty() {
            assert!(why.contains("no such key: hd"), "{why}");
        } else {
            assert_eq!(why, sentence);
        }
        // H16: a diagnosis repeats no claim.
        assert!(!why.contains("evil.example") && !why.contains("ann@"), "{why}");
    }
}

// S123, S131: everything before the failure passed, nothing after it was tried, and looking on changes nothing.
#[test]
fn every_recorded_token_has_one_end_and_the_same_outcome() {
    let (configs, key_sets) = (vectors::json("authn-configs.json"), vectors::json("authn-jwks.json"));
    for vector in vectors::vectors("authn-token.jsonl") {
        let mut question = vector.input.clone();
        question["config"] = configs[vector.input["config_ref"].as_str().unwrap()].clone();
        question["jwks"] = key_sets[vector.input["jwks_ref"].as_str().unwrap()].clone();
        for profile in [Profile::KUBE, Profile::HARDENED] {
            let explanation = explained(&question, &profile);
            let answer = batch::answer(&explanation.outcome);
            assert_eq!(answer, batch::eval(&question, &profile), "{}", vector.id);
            let word = |finding: &Finding| match finding.verdict {
                Verdict::Pass => 'p',
                Verdict::Fail(_) => 'f',
                Verdict::Skip => 's',
            };
            let story: String = explanation.findings.iter().map(word).collect();
            let told = story.trim_start_matches('p');
            let ended =
                if answer["outcome"] == "authenticated" { told.is_empty() } else { told.starts_with('f') };
            assert!(
                ended && told.trim_start_matches('f').trim_end_matches('s').is_empty(),
                "{}: {story}",
                vector.id
            );
            assert!(story.matches('f').count() <= 1, "{}: {story}", vector.id);
        }
    }
}

// S92, S119, S120, S286: the texts that operators search their logs for.
#[test]
fn the_log_line_is_kube_apiservers_own_on_every_recorded_refusal() {
    let (configs, key_sets) = (vectors::json("authn-configs.json"), vectors::json("authn-jwks.json"));
    // The log repeats the answer of the key endpoint: its members have to stay in their order.
    let answers = vectors::text("authn-jwks.json");
    let answer = |name: &str| -> String {
        let answers = crate::json::Raw::parse(answers.as_bytes()).unwrap();
        let (_, answer) = answers.members().find(|(known, _)| known == name).unwrap();
        answer.string().map_or_else(|| compact(&answer.text()), Into::into)
    };
    let mut differences = Vec::new();
    let mut compared = 0;
    for vector in vectors::vectors("authn-token.jsonl") {
        let name = vector.input["jwks_ref"].as_str().unwrap();
        let jwks = &key_sets[name];
        let mut question = vector.input.clone();
        question["config"] = configs[vector.input["config_ref"].as_str().unwrap()].clone();
        question["jwks"] = jwks.clone();
        let authenticators = batch::authenticators(&question, &Profile::KUBE).unwrap();
        let now = Timestamp::from_second(question["now"].as_i64().unwrap()).unwrap();
        let asked = Question::new(question["token"].as_str().unwrap(), now);
        let line = log_line(&authenticators, &asked, |_| Some(answer(name)));
        let got = line.map(|line| line.shown());
        let expected = match vector.expect["outcome"].as_str().unwrap() {
            "authenticated" => None,
            "no-opinion" => Some("invalid bearer token"),
            _ => vector.expect["error"].as_str(),
        };
        compared += usize::from(vector.expect.get("error").is_some());
        if got.as_deref() != expected {
            differences.push(format!("{}\n  expected {expected:?}\n  got      {got:?}", vector.id));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(compared > 200, "{compared}");
}

/// JSON without the white space between its tokens.
fn compact(text: &str) -> String {
    let (mut out, mut quoted) = (String::new(), false);
    for symbol in text.chars() {
        quoted ^= symbol == '"';
        if quoted || !symbol.is_whitespace() {
            out.push(symbol);
        }
    }
    out
}
