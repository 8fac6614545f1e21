//! Minted tokens are verified from their published key alone, with the verification half of the crypto library.

use aws_lc_rs::signature::{RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};

use super::*;

fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// Verifies a token with the JWK alone.
fn verifies(token: &str, jwk: &Value, algorithm: Algorithm) -> bool {
    let (input, signature) = token.rsplit_once('.').unwrap();
    let (message, signature) = (input.as_bytes(), decode(signature));
    let member = |name: &str| decode(jwk[name].as_str().unwrap());
    let rsa = |parameters| {
        let key = RsaPublicKeyComponents { n: member("n"), e: member("e") };
        key.verify(parameters, message, &signature).is_ok()
    };
    let ec = |verification: &'static dyn VerificationAlgorithm| {
        let point = [vec![4], member("x"), member("y")].concat();
        UnparsedPublicKey::new(verification, point).verify(message, &signature).is_ok()
    };
    match algorithm {
        Algorithm::Rs256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => rsa(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::Es256 => ec(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::Es384 => ec(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::Es512 => ec(&signature::ECDSA_P521_SHA512_FIXED),
    }
}

#[test]
fn a_token_of_each_of_the_nine_algorithms_verifies_by_its_published_key_and_by_no_other() {
    let rsa = SigningKey::generate(Algorithm::Rs256, "rsa");
    let other_rsa = SigningKey::generate(Algorithm::Rs256, "rsa");
    for algorithm in Algorithm::ALL {
        let key = |rsa: &SigningKey| match algorithm.family() {
            Family::Rsa(_) => rsa.with_algorithm(algorithm),
            Family::Ec(..) => SigningKey::generate(algorithm, "ec"),
        };
        let (ours, other) = (key(&rsa), key(&other_rsa));
        let token = ours.token(&json!({"sub": "ann"}));
        let name = algorithm.name();
        assert!(verifies(&token, &ours.jwk(), algorithm), "{name}");
        assert!(!verifies(&token, &other.jwk(), algorithm), "{name} by another key");
        assert!(!verifies(&with_tampered_signature(&token), &ours.jwk(), algorithm), "{name} tampered");
        assert!(
            !verifies(&with_payload(&token, &json!({"sub": "eve"})), &ours.jwk(), algorithm),
            "{name} altered"
        );
        assert_eq!(ours.jwk()["alg"], name);
    }
}

#[test]
fn coordinates_keep_their_full_width() {
    // One coordinate in 128 begins with a zero octet; its width must not shrink (RFC 7518 §6.2.1.2).
    for (algorithm, width) in [(Algorithm::Es256, 32), (Algorithm::Es384, 48), (Algorithm::Es512, 66)] {
        for _ in 0..20 {
            let jwk = SigningKey::generate(algorithm, "k").jwk();
            for coordinate in ["x", "y"] {
                assert_eq!(decode(jwk[coordinate].as_str().unwrap()).len(), width);
            }
        }
    }
    let rsa = SigningKey::generate(Algorithm::Rs256, "k").jwk();
    assert_eq!((decode(rsa["n"].as_str().unwrap()).len(), &rsa["e"]), (256, &json!("AQAB")));
}

#[test]
fn odd_tokens_say_what_they_were_told_to() {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    let header =
        |token: &str| -> Value { serde_json::from_slice(&decode(token.split('.').next().unwrap())).unwrap() };
    assert_eq!(header(&key.token(&json!({}))), json!({"alg": "ES256", "kid": "k", "typ": "JWT"}));
    assert_eq!(header(&key.token_without_id(&json!({}))), json!({"alg": "ES256"}));
    let odd = json!({"alg": "HS256", "crit": ["b64"], "jku": "https://evil.test"});
    let token = key.token_with_header(&odd, &json!({}));
    assert_eq!(header(&token), odd);
    assert!(verifies(&token, &key.jwk(), Algorithm::Es256), "an odd header is truly signed");
    let twice = key.token_of_bytes(br#"{"alg":"ES256"}"#, br#"{"sub":"a","sub":"b"}"#);
    assert!(verifies(&twice, &key.jwk(), Algorithm::Es256));
    assert_eq!(decode(twice.split('.').nth(1).unwrap()), br#"{"sub":"a","sub":"b"}"#);
}

#[test]
#[should_panic(expected = "a key for ES256 cannot sign with ES384")]
fn a_key_of_one_curve_does_not_sign_for_another() {
    let _ = SigningKey::generate(Algorithm::Es256, "k").with_algorithm(Algorithm::Es384);
}
