//! Every verb that needs a client gives the same verdict, the same sentence and the same exit code for a kubeconfig.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::path::Path;

use navicert_testkit::cli::program::Outcome;
use navicert_testkit::{Ca, Program};

#[path = "agreement/cases.rs"]
mod cases;

use cases::{Case, Kuberc, Verdict};

/// A directory with every file that the cases name.
struct Setup {
    dir: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let setup = Setup { dir: tempfile::tempdir().unwrap() };
        let ca = Ca::new("agreement");
        let pem = ca.pem();
        ca.client("ann").issue().write_to(setup.dir.path(), "tls");
        ca.client("ben").issue().write_to(setup.dir.path(), "other");
        ca.server().issue().write_to(setup.dir.path(), "server");
        let base64 = |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
        for (name, content) in [
            ("ca.crt", pem.clone()),
            ("ca.twice", base64(pem.as_bytes())),
            ("garbage.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()),
            ("text", "no PEM at all\n".to_owned()),
            ("empty", String::new()),
            ("blank", " \n".to_owned()),
            ("token", "t0ken\n".to_owned()),
            ("control", "a\u{1}b".to_owned()),
            ("plugin", "#!/bin/sh\n".to_owned()),
            (
                "authentication.yaml",
                "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: \
                 'https://issuer.example', audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: 'x:'}}\n"
                    .to_owned(),
            ),
            (
                "providers.yaml",
                "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: plugin\n  \
                 matchImages: [registry.example]\n  defaultCacheDuration: 10m\n  \
                 apiVersion: credentialprovider.kubelet.k8s.io/v1\n"
                    .to_owned(),
            ),
        ] {
            fs::write(setup.path(name), content).unwrap();
        }
        fs::create_dir(setup.path("run")).unwrap();
        set_mode(&setup.path("run"), 0o700);
        set_mode(&setup.path("plugin"), 0o755);
        fs::create_dir(setup.path(".kube")).unwrap();
        setup
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, case: &Case) {
        let text = case.text.replace("$DIR", self.dir.path().to_str().unwrap());
        let ca = fs::read(self.path("ca.crt")).unwrap();
        let encode = |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
        let text = text.replace("$CA_TWICE", &encode(encode(&ca).as_bytes())).replace("$CA", &encode(&ca));
        let (certificate, key) =
            (fs::read(self.path("tls.crt")).unwrap(), fs::read(self.path("tls.key")).unwrap());
        let other = fs::read(self.path("other.key")).unwrap();
        let text = text.replace("$CERT", &encode(&certificate)).replace("$OTHER_KEY", &encode(&other));
        fs::write(self.path("config"), text.replace("$KEY", &encode(&key))).unwrap();
        let kuberc = match case.kuberc {
            Kuberc::None => String::new(),
            Kuberc::DenyAll => "credentialPluginPolicy: DenyAll".to_owned(),
            Kuberc::Allow(program) => format!(
                "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: {}",
                program.replace("$DIR", self.dir.path().to_str().unwrap())
            ),
            Kuberc::Broken => "credentialPluginPolicy: Sometimes".to_owned(),
        };
        let head = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n";
        fs::write(self.path(".kube/kuberc"), format!("{head}{kuberc}\n")).unwrap();
    }

    fn navicert(&self, case: &Case, verb: &[&str]) -> Outcome {
        let (arguments, command) = match verb.split(|word| *word == "--").collect::<Vec<_>>().as_slice() {
            [arguments, command] => (arguments.to_vec(), [&["--"], *command].concat()),
            _ => (verb.to_vec(), Vec::new()),
        };
        let file: &[&str] = if case.has_file { &["--kubeconfig", "config"] } else { &[] };
        Program::new(env!("CARGO_BIN_EXE_navicert"))
            .arguments(arguments)
            .arguments(file)
            .arguments(case.flags)
            .arguments(command)
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", self.dir.path())
            .variable("XDG_RUNTIME_DIR", self.path("run"))
            .variable("HTTPS_PROXY", case.proxy)
            .directory(self.dir.path())
            .run()
            .unwrap()
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

const VERBS: [(&str, &[&str]); 6] = [
    ("kubeconfig check", &["kubeconfig", "check"]),
    ("doctor", &["doctor"]),
    ("whoami", &["whoami"]),
    ("run", &["run", "--", "true"]),
    (
        "serve proxy",
        &[
            "serve",
            "proxy",
            "--check",
            "--authentication-config",
            "authentication.yaml",
            "--tls-cert-file",
            "server.crt",
            "--tls-private-key-file",
            "server.key",
        ],
    ),
    (
        "image explain",
        &[
            "image",
            "explain",
            "registry.example/app",
            "--config",
            "providers.yaml",
            "--bin-dir",
            ".",
            "--pod",
            "a/b",
        ],
    ),
];

#[test]
fn all_verbs_agree_on_every_kubeconfig() {
    let setup = Setup::new();
    let cases = cases::all();
    assert!(cases.len() >= 80, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        setup.write(case);
        for (name, verb) in VERBS {
            // Overrides other than the context are no flags of image verbs.
            if name == "image explain"
                && case.flags.iter().any(|flag| flag.starts_with("--") && *flag != "--context")
            {
                continue;
            }
            let outcome = setup.navicert(case, verb);
            let printed = format!(
                "{}{}",
                String::from_utf8_lossy(&outcome.stderr),
                String::from_utf8_lossy(&outcome.stdout)
            );
            let code = outcome.code();
            let is_right = match case.verdict {
                // A usable context: only what happens afterwards differs between the verbs.
                Verdict::Usable => match name {
                    "kubeconfig check" | "run" => code == Some(0),
                    "serve proxy" => code == Some(0) || case.name.contains("http"),
                    _ => !matches!(code, Some(3 | 5)),
                },
                Verdict::Invalid(sentence) => code == Some(3) && says(&printed, sentence),
                // The steps of doctor before the policy fail first: there is no server.
                Verdict::Denied(_) if name == "doctor" => matches!(code, Some(4 | 5)),
                Verdict::Denied(sentence) => code == Some(5) && says(&printed, sentence),
            };
            if !is_right {
                wrong.push(format!("{}: {name} exits with {code:?}:\n{printed}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether the first error is this sentence.
fn says(printed: &str, sentence: &str) -> bool {
    let first = printed.lines().find_map(|line| {
        let doctor = line.strip_prefix("FAIL").and_then(|rest| rest.trim_start().split_once(' '));
        line.strip_prefix("error: ").or_else(|| doctor.map(|(_, text)| text.trim_start()))
    });
    first.is_some_and(|first| first.contains(sentence))
}
