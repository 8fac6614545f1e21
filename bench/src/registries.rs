//! A registry's password from a cloud, process start included: our ECR provider against the two that everybody runs,
//! each asking the same Amazon on loopback, by time and by memory.

mod weighed;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_testkit::Ca;
use navicert_testkit::cloud::Amazon;
use tempfile::TempDir;

use crate::frame::{Fault, Race};
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

pub(crate) fn races() -> Result<Vec<Race>, Fault> {
    let ours = std::env::current_exe()?.with_file_name(OURS);
    if !ours.exists() {
        weighed::say(&format!("no {OURS} beside this program: build it with `scripts/build-registries`"));
        return Ok(Vec::new());
    }
    let (plain, tls) = (Arc::new(Place::new(&ours, false)?), Arc::new(Place::new(&ours, true)?));
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers/tools");
    let mut races = Vec::new();
    for (peer, [time, time_tls, memory], is_helper) in PEERS {
        let program = tools.join(peer);
        if !program.exists() {
            weighed::say(&format!("no {peer} in target/peers/tools (`make peers-tools`): not raced"));
            continue;
        }
        for (what, place) in [(time, &plain), (time_tls, &tls)] {
            let timed = |program: PathBuf| {
                let place = Arc::clone(place);
                move || place.run(&program, is_helper)
            };
            races.push(Race::new(what, 0.5, timed(place.ours(&ours, is_helper)), timed(program.clone())));
        }
        let weighed = |program: PathBuf| {
            let place = Arc::clone(&plain);
            move || place.weigh(&program, is_helper)
        };
        if plain.launcher.is_some() {
            let own = weighed(plain.ours(&ours, is_helper));
            races.push(Race::sizes(memory, 1.0 / 3.0, own, weighed(program)));
        } else {
            weighed::say("no C compiler: memory is not raced");
        }
    }
    Ok(races)
}

/// Amazon, and a folder that is everybody's home.
struct Place {
    amazon: Amazon,
    folder: TempDir,
    launcher: Option<PathBuf>,
}

impl Place {
    fn new(ours: &Path, over_tls: bool) -> Result<Self, Fault> {
        let folder = tempfile::tempdir()?;
        symlink(ours, folder.path().join("docker-credential-ecr"))?;
        let launcher = weighed::launcher(folder.path())?;
        let ca = Ca::new("bench");
        fs::write(folder.path().join("ca.pem"), ca.pem())?;
        let amazon = if over_tls { Amazon::start_tls(&ca) } else { Amazon::start() };
        Ok(Place { amazon, folder, launcher })
    }

    /// Our program under the name it has to have.
    fn ours(&self, ours: &Path, is_helper: bool) -> PathBuf {
        if is_helper { self.folder.path().join("docker-credential-ecr") } else { ours.to_owned() }
    }

    /// One call, from the start of the process to its end.
    fn run(&self, program: &Path, is_helper: bool) -> Result<(), Fault> {
        self.call(program, &[], is_helper).map(drop)
    }

    /// The most memory that one call holds.
    fn weigh(&self, program: &Path, is_helper: bool) -> Result<u64, Fault> {
        let launcher = self.launcher.as_deref().ok_or("no launcher")?;
        let program = program.to_str().ok_or("a path that is no text")?;
        self.call(launcher, &[program], is_helper)?.peak().ok_or_else(|| "nothing was weighed".into())
    }

    fn call(&self, program: &Path, first: &[&str], is_helper: bool) -> Result<Done, Fault> {
        let home = self.folder.path().display().to_string();
        let url = self.amazon.server().url();
        let nowhere = self.folder.path().join("nowhere").display().to_string();
        let authorities = self.folder.path().join("ca.pem").display().to_string();
        let environment = [
            ("AWS_ENDPOINT_URL", url.as_str()),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", Amazon::SECRET),
            // The helper would remember, and race against nobody.
            ("AWS_ECR_DISABLE_CACHE", "true"),
            ("HOME", &home),
            ("SSL_CERT_FILE", &authorities),
            // Or some would also read every file of the system's folder.
            ("SSL_CERT_DIR", &nowhere),
        ];
        let (verb, stdin) = if is_helper { (&["get"][..], HOST) } else { (&[][..], REQUEST) };
        let done = weighed::run(program, &[first, verb].concat(), &environment, stdin)?;
        let answered = done.stdout.windows(PASSWORD.len()).any(|window| window == PASSWORD);
        if answered { Ok(done) } else { Err(String::from_utf8_lossy(&done.stdout).into()) }
    }
}
