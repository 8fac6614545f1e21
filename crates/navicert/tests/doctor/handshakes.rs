//! Server certificates that cannot be verified.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_testkit::{ApiServer, Ca};
use serde_json::json;

use super::setup::{Setup, check, check_fix};

const REPLACE: &str =
    "replace the certificate authority of cluster `east` with the one that issued the server certificate";

#[test]
fn names_of_the_server_certificate_are_explained() {
    let setup = Setup::new();
    setup.api.present(&setup.ca.server_without_names().issue());
    let fix = "reissue the server certificate of cluster `east` with `127.0.0.1` as subject alternative name: clients ignore the common name";
    check_fix("certificate-with-common-name-only", fix, setup.context(34));
    let setup = Setup::new().cluster("tls-server-name", json!("nameless"));
    setup.api.present(&setup.ca.server_without_names().issue());
    let fix = "reissue the server certificate of cluster `east` with `nameless` as subject alternative name: clients ignore the common name";
    check_fix("certificate-with-matching-common-name", fix, setup.context(34));
    let setup = Setup::new();
    setup.api.present(&setup.ca.server_without_names().name("*.example").issue());
    let fix = "use a host name that matches `*.example` in the server of cluster `east`";
    check_fix("certificate-with-wildcard-only", fix, setup.context(34));
    let setup = Setup::new();
    setup.api.present(&setup.ca.server_without_names().name("*.example").name("api.example").issue());
    let fix = "set `tls-server-name` of cluster `east` to `api.example`";
    check_fix("certificate-with-other-names", fix, setup.context(34));
    let setup = Setup::new().cluster("tls-server-name", json!("other.example"));
    let fix = "set `tls-server-name` of cluster `east` to `localhost`";
    check_fix("wrong-tls-server-name", fix, setup.context(34));
}

#[test]
fn issuers_of_the_server_certificate_are_explained() {
    let setup = Setup::new();
    setup.api.present(&Ca::new("cluster root").server().issue());
    check_fix("authority-with-same-name", REPLACE, setup.context(34));
    let setup = Setup::new();
    let cluster = json!({"server": setup.api.url()});
    let fix = "add `certificate-authority-data` to cluster `east`: the certificate of `cluster root`";
    check_fix("no-authority-configured", fix, Setup { cluster, ..setup }.context(34));
    let setup = Setup::new();
    let client = setup.ca.client("ann").name("127.0.0.1").issue();
    setup.api.present(&client);
    let fix = "reissue the server certificate of cluster `east` with the extended key usage `serverAuth`";
    check_fix("client-certificate-as-server-certificate", fix, setup.context(34));
    let root = Ca::new("cluster root");
    let api = ApiServer::start(&root.intermediate("issuing"));
    let intermediate = root.intermediate("issuing");
    let cluster =
        json!({"server": api.url(), "certificate-authority-data": STANDARD.encode(intermediate.pem())});
    check_fix(
        "authority-is-another-intermediate",
        REPLACE,
        Setup { ca: root, api, cluster, user: json!({"token": "t0"}) }.context(34),
    );
}

#[test]
fn certificate_authorities_that_cannot_be_used_are_reported() {
    let setup = Setup::new();
    let twice = STANDARD.encode(STANDARD.encode(setup.ca.pem()));
    let cluster = json!({"server": setup.api.url(), "certificate-authority-data": twice});
    let fix = "decode certificate-authority-data of cluster `east` once: it is encoded in base64 twice";
    check_fix("authority-encoded-twice", fix, Setup { cluster, ..setup }.context(34));
    let setup = Setup::new();
    let garbage = STANDARD.encode("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let cluster = json!({"server": setup.api.url(), "certificate-authority-data": garbage});
    let fix = "put the PEM certificate of the certificate authority into cluster `east`";
    check_fix("authority-is-garbage", fix, Setup { cluster, ..setup }.context(34));
    let setup = Setup::new().cluster("insecure-skip-tls-verify", json!(true));
    check_fix("authority-and-insecure", "remove `insecure-skip-tls-verify`", setup.context(34));
    let setup = Setup::new();
    let cluster = json!({"server": setup.api.url(), "certificate-authority": "empty.crt"});
    let setup = Setup { cluster, ..setup };
    check_fix("authority-file-is-empty", REPLACE, setup.context(34).file("empty.crt", ""));
    let setup = Setup::new();
    let cluster = json!({"server": setup.api.url(), "insecure-skip-tls-verify": true});
    check("insecure", "no errors; recommended: ", Setup { cluster, ..setup }.context(34));
}
