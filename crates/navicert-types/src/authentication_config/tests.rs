use super::*;

fn config(rest: &str) -> Result<AuthenticationConfiguration, Diagnostics> {
    let head = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n";
    AuthenticationConfiguration::parse(format!("{head}{rest}").as_bytes())
}

// S1
#[test]
fn all_versions_decode_alike() {
    let read = |version: &str| {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/{version}\nkind: AuthenticationConfiguration\n\
            jwt: [{{issuer: {{url: https://i, audiences: [a]}}, claimMappings: {{username: {{claim: sub, prefix: ''}}}}}}]\n"
        );
        AuthenticationConfiguration::parse(text.as_bytes())
    };
    let newest = read("v1").unwrap();
    assert_eq!(newest.jwt.len(), 1);
    assert_eq!(read("v1beta1").unwrap(), newest);
    assert_eq!(read("v1alpha1").unwrap(), newest);
    assert!(read("v2").is_err());
}

// S9, S10, DV15, DV16
#[test]
fn missing_null_and_empty_differ_where_it_matters() {
    assert_eq!(config("").unwrap(), config("jwt: null\n").unwrap());
    assert_eq!(config("jwt: []\n").unwrap(), config("anonymous: null\n").unwrap());
    assert_eq!(config("anonymous: {}\n").unwrap().anonymous, Some(AnonymousAuthConfig::default()));
    let prefix = |text: &str| {
        let mut read = config(&format!("jwt: [{{claimMappings: {{username: {{{text}}}}}}}]\n")).unwrap();
        read.jwt.remove(0).claim_mappings.username.prefix
    };
    assert_eq!(prefix("prefix: null"), None);
    assert_eq!(prefix("claim: a"), None);
    assert_eq!(prefix("prefix: ''"), Some(String::new()));
    assert_eq!(config("jwt: [null]\n").unwrap().jwt, [JwtAuthenticator::default()]);
}

// S3, S5, S6, S8, DV3–DV5, DV13, DV14
#[test]
fn reports_every_error() {
    let wrong = config(
        "JWT: []\njwt:\n- issuer: {url: 5, audience: a, audiences: a}\nanonymous: {enabled: 'true'}\nmetadata: {}\n",
    )
    .unwrap_err();
    let shown: Vec<String> = wrong.iter().map(|diagnostic| diagnostic.path.to_string()).collect();
    assert_eq!(
        shown,
        [
            "JWT",
            "jwt[0].issuer.url",
            "jwt[0].issuer.audience",
            "jwt[0].issuer.audiences",
            "anonymous.enabled",
            "metadata"
        ]
    );
    assert!(config("anonymous: {enabled: yes}\n").unwrap().anonymous.unwrap().enabled);
}
