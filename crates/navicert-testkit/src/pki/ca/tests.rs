//! The certificates are judged by real handshakes (see `http_server/tests.rs`) and, here, by what they say.

use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::*;
use crate::cli::program::Program;

fn subject(der: &[u8]) -> (Vec<String>, String) {
    let (rest, certificate) = X509Certificate::from_der(der).unwrap();
    assert!(rest.is_empty());
    let organizations =
        certificate.subject().iter_organization().map(|name| name.as_str().unwrap().to_owned());
    let name = certificate.subject().iter_common_name().next().unwrap().as_str().unwrap().to_owned();
    (organizations.collect(), name)
}

#[test]
fn client_subject_lists_organizations_in_order() {
    let ca = Ca::new("root");
    let groups: Vec<String> = (0..40).map(|index| format!("group-{index}-{}", "x".repeat(20))).collect();
    let builder = groups.iter().fold(ca.client("ann"), |builder, group| builder.organization(group));
    assert_eq!(subject(builder.issue().leaf()), (groups, "ann".to_owned()));
    assert_eq!(subject(ca.client("bob").issue().leaf()), (Vec::new(), "bob".to_owned()));
}

#[test]
fn openssl_verifies_what_every_kind_of_ca_issues_for_every_kind_of_key() {
    if crate::cli::tools::installed("openssl", "openssl").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for ca_kind in KeyKind::ALL {
        let ca = Ca::with_key("root", ca_kind);
        let root = directory.path().join("root.crt");
        std::fs::write(&root, ca.pem()).unwrap();
        for kind in KeyKind::ALL {
            let identity = ca.client("ann").organization("a").organization("b").key(kind).issue();
            let files = identity.write_to(directory.path(), "ann");
            let verify = ["verify", "-purpose", "sslclient", "-x509_strict", "-CAfile"];
            let outcome = Program::new("openssl")
                .arguments(verify)
                .arguments([&root, &files.certificate])
                .run()
                .unwrap();
            assert!(
                outcome.status.success(),
                "{ca_kind:?} over {kind:?}: {}",
                String::from_utf8_lossy(&outcome.stderr)
            );
            let check = Program::new("openssl").arguments(["pkey", "-noout", "-in"]).arguments([&files.key]);
            assert!(check.run().unwrap().status.success(), "{kind:?}");
        }
    }
}

#[test]
fn a_chain_carries_its_intermediates_and_not_the_root() {
    let root = Ca::new("root");
    let identity = root.intermediate("one").intermediate("two").server().issue();
    let names: Vec<String> = identity.chain().iter().map(|certificate| subject(certificate).1).collect();
    assert_eq!(names, ["localhost", "two", "one"]);
    assert_eq!(identity.chain_pem().matches("BEGIN CERTIFICATE").count(), 3);
}

#[test]
fn validity_is_what_was_asked_for_to_the_second() {
    let ca = Ca::new("root");
    let (from, until) = (Timestamp::from_second(-5).unwrap(), Timestamp::from_second(1_700_000_000).unwrap());
    let validity = |identity: &Identity| {
        let (_, certificate) = X509Certificate::from_der(identity.leaf()).unwrap();
        (certificate.validity().not_before.timestamp(), certificate.validity().not_after.timestamp())
    };
    assert_eq!(validity(&ca.client("ann").valid(from, until).issue()), (-5, 1_700_000_000));
    assert_eq!(validity(&ca.client("ann").expired().issue()), (PAST.from, PAST.until));
    assert_eq!(validity(&ca.client("ann").not_yet_valid().issue()), (FUTURE.from, FUTURE.until));
}

#[test]
fn server_names_are_those_of_loopback_and_the_ones_added() {
    let ca = Ca::new("root");
    let names = |identity: &Identity| {
        let (_, certificate) = X509Certificate::from_der(identity.leaf()).unwrap();
        let names =
            certificate.subject_alternative_name().unwrap().map(|names| names.value.general_names.clone());
        let text = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => (*name).to_owned(),
            GeneralName::IPAddress(octets) => format!("{octets:?}"),
            other => panic!("{other:?}"),
        };
        names.unwrap_or_default().iter().map(text).collect::<Vec<_>>()
    };
    let usual = names(&ca.server().name("api.example.test").issue());
    assert_eq!(usual[..2], ["localhost".to_owned(), "[127, 0, 0, 1]".to_owned()]);
    assert_eq!(usual.last().unwrap(), "api.example.test");
    assert_eq!(names(&ca.server_without_names().name("only.example.test").issue()), ["only.example.test"]);
}

#[test]
fn a_renewal_keeps_the_key_and_changes_the_certificate() {
    let ca = Ca::new("root");
    let first = ca.client("ann").issue();
    let second = ca.client("ann").renew(&first);
    assert_eq!(first.public_key_der(), second.public_key_der());
    assert_ne!(first.leaf(), second.leaf());
}

#[test]
fn a_key_that_lives_elsewhere_gets_a_certificate_by_its_public_half() {
    let ca = Ca::new("root");
    for kind in KeyKind::ALL {
        let elsewhere = Ca::new("other").client("ann").key(kind).issue();
        let chain = ca.client("ann").issue_for(&elsewhere.public_key_der());
        let (_, certificate) = X509Certificate::from_der(&chain[0]).unwrap();
        assert_eq!(certificate.public_key().raw, elsewhere.public_key_der(), "{kind:?}");
    }
}

#[test]
fn the_debug_text_of_an_identity_does_not_show_its_key() {
    let identity = Ca::new("root").client("ann").issue();
    assert_eq!(format!("{identity:?}"), "Identity { kind: EcP256, .. }");
}
