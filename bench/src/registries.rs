//! A registry's password from a cloud, process start included: our ECR provider against the two in common use,
//! each asking the same Amazon on loopback, by time and by memory.

mod weighed;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use navicert_testkit::Ca;
use navicert_testkit::services::cloud::Amazon;
use tempfile::TempDir;

use crate::needs::{self, Need};
use crate::race::{Contest, Fault, Race, Shared};
use weighed::Done;

const OURS: &str = "ecr-credential-provider";
const HOST: &str = "123456789012.dkr.ecr.us-west-2.amazonaws.com";
const REQUEST: &str = r#"{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"123456789012.dkr.ecr.us-west-2.amazonaws.com/team/app"}"#;
/// What the test kit's Amazon hands out.
const PASSWORD: &[u8] = b"password-of-the-registry";

/// A peer, the names of its three races, and whether it is docker's kind of program.
const PEERS: [(&str, [&str; 3], bool); 2] = [
    (
        "ecr-credential-provider",
        [
            "registries: one ECR call / ecr-credential-provider",
            "registries: one ECR call over TLS / ecr-credential-provider",
            "registries: its memory / ecr-credential-provider",
        ],
        false,
    ),
    (
        "docker-credential-ecr-login",
        [
            "registries: one ECR call / docker-credential-ecr-login",
            "registries: one ECR call over TLS / docker-credential-ecr-login",
            "registries: its memory / docker-credential-ecr-login",
        ],
        true,
    ),
];

pub(crate) fn races() -> Vec<Race> {
    let (plain, tls) = (Shared::new(|| Setup::new(false)), Shared::new(|| Setup::new(true)));
    let mut races = Vec::new();
    for (peer, [time, time_tls, memory], is_helper) in PEERS {
        for (what, setup) in [(time, plain.clone()), (time_tls, tls.clone())] {
            let prepare = move || {
                let setup = setup.get()?;
                let timed = |program: PathBuf| {
                    let setup = Rc::clone(&setup);
                    move || setup.run(&program, is_helper)
                };
                Ok(Contest::time(timed(setup.ours(is_helper)?), timed(needs::installed(peer)?)))
            };
            races.push(Race::new(what, 0.5, prepare).needs(&[Need::Installed(peer), Need::Built(OURS)]));
        }
        let setup = plain.clone();
        let prepare = move || {
            let setup = setup.get()?;
            let launcher = Rc::new(weighed::launcher(setup.dir.path())?);
            let weighed = |program: PathBuf| {
                let (setup, launcher) = (Rc::clone(&setup), Rc::clone(&launcher));
                move || setup.weigh(&launcher, &program, is_helper)
            };
            Ok(Contest::sizes(weighed(setup.ours(is_helper)?), weighed(needs::installed(peer)?)))
        };
        races.push(Race::new(memory, 1.0 / 3.0, prepare).needs(&[
            Need::Installed(peer),
            Need::Installed("cc"),
            Need::Built(OURS),
        ]));
    }
    races
}

/// The fake Amazon API, and the home directory of every program.
struct Setup {
    amazon: Amazon,
    dir: TempDir,
}

impl Setup {
    fn new(over_tls: bool) -> Result<Self, Fault> {
        let dir = tempfile::tempdir()?;
        symlink(needs::built(OURS)?, dir.path().join("docker-credential-ecr"))?;
        let ca = Ca::new("bench");
        fs::write(dir.path().join("ca.pem"), ca.pem())?;
        let amazon = if over_tls { Amazon::start_tls(&ca) } else { Amazon::start() };
        Ok(Setup { amazon, dir })
    }

    /// Our program under the name it has to have.
    fn ours(&self, is_helper: bool) -> Result<PathBuf, Fault> {
        if is_helper { Ok(self.dir.path().join("docker-credential-ecr")) } else { needs::built(OURS) }
    }

    /// One call, from the start of the process to its end.
    fn run(&self, program: &Path, is_helper: bool) -> Result<(), Fault> {
        self.call(program, &[], is_helper).map(drop)
    }

    /// The most memory that one call holds.
    fn weigh(&self, launcher: &Path, program: &Path, is_helper: bool) -> Result<u64, Fault> {
        let program = program.to_str().ok_or("a path that is no text")?;
        self.call(launcher, &[program], is_helper)?.peak().ok_or_else(|| "nothing was weighed".into())
    }

    fn call(&self, program: &Path, first: &[&str], is_helper: bool) -> Result<Done, Fault> {
        let home = self.dir.path().display().to_string();
        let url = self.amazon.server().url();
        let nowhere = self.dir.path().join("nowhere").display().to_string();
        let authorities = self.dir.path().join("ca.pem").display().to_string();
        let environment = [
            ("AWS_ENDPOINT_URL", url.as_str()),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", Amazon::SECRET),
            // The helper would otherwise answer from its cache, without a call.
            ("AWS_ECR_DISABLE_CACHE", "true"),
            ("HOME", &home),
            ("SSL_CERT_FILE", &authorities),
            // Or some would also read every file of the system's dir.
            ("SSL_CERT_DIR", &nowhere),
        ];
        let (verb, stdin) = if is_helper { (&["get"][..], HOST) } else { (&[][..], REQUEST) };
        let done = weighed::run(program, &[first, verb].concat(), &environment, stdin)?;
        let answered = done.stdout.windows(PASSWORD.len()).any(|window| window == PASSWORD);
        if answered { Ok(done) } else { Err(String::from_utf8_lossy(&done.stdout).into()) }
    }
}
