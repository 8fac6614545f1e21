//! SoftHSM in a temporary directory: a PKCS#11 token with a module, a PIN and real keys, one per test.
//!
//! The tools come from Debian's `softhsm2` and `opensc`; `make test` installs them.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::cli::program::{Outcome, Program};
use crate::cli::tools;
use crate::pki::ca::{Identity, KeyKind, pem, subject_public_key_info};
use crate::report;

const MODULES: [&str; 5] = [
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so",
    "/usr/lib/aarch64-linux-gnu/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/opt/homebrew/lib/softhsm/libsofthsm2.so",
];
/// Packages and their programs.
const TOOLS: [(&str, &str); 2] = [("softhsm2", "softhsm2-util"), ("opensc", "pkcs11-tool")];
const SECURITY_OFFICER_PIN: &str = "security-officer";

/// A token of its own; it is gone when dropped.
///
/// ```
/// use navicert_testkit::{Ca, KeyKind, SoftHsm};
///
/// let Some(hsm) = SoftHsm::start("example token", "1234") else { return };
/// let key = hsm.generate(KeyKind::EcP256, "01", "my key");
/// let chain = Ca::new("root").client("ann").issue_for(&key.public_key);
/// hsm.import_certificate(&chain[0], "01", "my key");
/// // Run the program under test with hsm.module() and hsm.variables().
/// assert!(hsm.module().exists());
/// ```
pub struct SoftHsm {
    directory: Arc<TempDir>,
    configuration: PathBuf,
    module: PathBuf,
    label: String,
    pin: String,
}

/// A key in the token.
#[derive(Clone, Debug)]
pub struct HsmKey {
    /// `CKA_ID` in hex.
    pub id: String,
    /// `CKA_LABEL`.
    pub label: String,
    /// Its kind.
    pub kind: KeyKind,
    /// The public half as DER SubjectPublicKeyInfo.
    pub public_key: Vec<u8>,
}

impl SoftHsm {
    /// Whether there is a module and the two tools that make tokens and keys.
    pub fn is_installed() -> bool {
        module().is_some() && TOOLS.iter().all(|(_, tool)| tools::find(tool).is_some())
    }

    /// An initialized token with this label and user PIN; `None`, reported as skipped, if SoftHSM or OpenSC is not
    /// installed.
    ///
    /// # Panics
    /// If it cannot be made although they are installed, or if nothing may be skipped.
    pub fn start(label: &str, pin: &str) -> Option<Self> {
        if TOOLS.iter().filter(|(package, tool)| tools::installed(package, tool).is_none()).count() > 0 {
            return None;
        }
        if module().is_none() {
            report::skipped("softhsm2", "SoftHSM's module is not installed");
            return None;
        }
        Some(Self::new(label, pin))
    }

    /// An initialized token with this label and user PIN, and nothing in it.
    ///
    /// # Panics
    /// If SoftHSM or OpenSC's `pkcs11-tool` is not installed.
    pub fn new(label: &str, pin: &str) -> Self {
        let module = module().unwrap_or_else(|| panic!("missing SoftHSM's module: {INSTALL}"));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let tokens = directory.path().join("tokens");
        std::fs::create_dir(&tokens).expect("a directory for tokens");
        let configuration = directory.path().join("softhsm2.conf");
        let text = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\nslots.removable = false\n",
            tokens.display()
        );
        std::fs::write(&configuration, text).expect("SoftHSM's configuration");
        let directory = Arc::new(directory);
        let hsm = SoftHsm { directory, configuration, module, label: label.to_owned(), pin: pin.to_owned() };
        hsm.initialize();
        hsm
    }

    /// A second token beside this one: a module shows both.
    pub fn another_token(&self, label: &str, pin: &str) -> Self {
        let other = SoftHsm {
            directory: Arc::clone(&self.directory),
            configuration: self.configuration.clone(),
            module: self.module.clone(),
            label: label.to_owned(),
            pin: pin.to_owned(),
        };
        other.initialize();
        other
    }

    fn initialize(&self) {
        let named = ["--init-token", "--free", "--label", &self.label, "--pin", &self.pin];
        self.run("softhsm2-util", named.into_iter().chain(["--so-pin", SECURITY_OFFICER_PIN]));
    }

    /// The PKCS#11 module to load.
    pub fn module(&self) -> &Path {
        &self.module
    }

    /// The token's label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The user PIN.
    pub fn pin(&self) -> &str {
        &self.pin
    }

    /// What a program that loads the module needs in its environment.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        vec![("SOFTHSM2_CONF".into(), self.configuration.clone().into())]
    }

    /// SoftHSM's configuration file: the value of `SOFTHSM2_CONF`.
    pub fn configuration(&self) -> &Path {
        &self.configuration
    }

    /// Makes a key inside the token, never to leave it.
    pub fn generate(&self, kind: KeyKind, id: &str, label: &str) -> HsmKey {
        self.generate_with(kind, id, label, &[])
    }

    /// The same with a key that wants its PIN for every signature, as PIV slot 9c does.
    pub fn generate_always_authenticating(&self, kind: KeyKind, id: &str, label: &str) -> HsmKey {
        self.generate_with(kind, id, label, &["--always-auth"])
    }

    fn generate_with(&self, kind: KeyKind, id: &str, label: &str, flags: &[&str]) -> HsmKey {
        let key_type = match kind {
            KeyKind::Rsa2048 => "rsa:2048",
            KeyKind::EcP256 => "EC:prime256v1",
            KeyKind::EcP384 => "EC:secp384r1",
            KeyKind::EcP521 => "EC:secp521r1",
            KeyKind::Ed25519 => "EC:edwards25519",
        };
        let keypair = ["--keypairgen", "--key-type", key_type, "--id", id, "--label", label];
        let outcome = self.pkcs11_tool(keypair.into_iter().chain(flags.iter().copied()));
        let public_key = match kind {
            KeyKind::Rsa2048 => self.read_public_key(id),
            curve => subject_public_key_info(curve, &point(&outcome)),
        };
        HsmKey { id: id.to_owned(), label: label.to_owned(), kind, public_key }
    }

    /// Puts the key and the leaf certificate of an identity into the token.
    pub fn import(&self, identity: &Identity, id: &str, label: &str) -> HsmKey {
        let key = self.write("key.pem", identity.key_pem().as_bytes());
        let key = key.to_str().expect("a temporary path is text");
        let arguments =
            ["--import", key, "--token", &self.label, "--label", label, "--id", id, "--pin", &self.pin];
        self.run("softhsm2-util", arguments);
        self.import_certificate(identity.leaf(), id, label);
        let public_key = identity.public_key_der();
        HsmKey { id: id.to_owned(), label: label.to_owned(), kind: identity.key_kind(), public_key }
    }

    /// Puts a certificate into the token.
    pub fn import_certificate(&self, der: &[u8], id: &str, label: &str) {
        let file = self.write("certificate.der", der);
        let file = file.to_str().expect("a temporary path is text");
        self.pkcs11_tool(["--write-object", file, "--type", "cert", "--id", id, "--label", label]);
    }

    /// Signs with a key in the token through `pkcs11-tool`, an independent implementation.
    ///
    /// Mechanisms are named as that tool does: `SHA256-RSA-PKCS`, `RSA-PKCS-PSS`, `ECDSA` (over a digest), `EDDSA`.
    pub fn sign(&self, key: &HsmKey, mechanism: &str, data: &[u8]) -> Vec<u8> {
        let input = self.write("data", data);
        let output = self.directory.path().join("signature");
        let input = input.to_str().expect("a temporary path is text");
        let arguments = ["--sign", "--mechanism", mechanism, "--id", &key.id, "--input-file", input];
        let output_text = output.to_str().expect("a temporary path is text");
        self.pkcs11_tool(arguments.into_iter().chain(["--output-file", output_text]));
        std::fs::read(&output).expect("the signature pkcs11-tool wrote")
    }

    /// The objects a logged-in user sees in the token, as `pkcs11-tool` prints them.
    pub fn objects(&self) -> String {
        String::from_utf8_lossy(&self.pkcs11_tool(["--list-objects"]).stdout).into_owned()
    }

    /// OpenSC 0.23 reads RSA keys well; of curves it fails on some, so those come from what it prints.
    fn read_public_key(&self, id: &str) -> Vec<u8> {
        let file = self.directory.path().join("public.der");
        let name = file.to_str().expect("a temporary path is text");
        self.pkcs11_tool(["--read-object", "--type", "pubkey", "--id", id, "--output-file", name]);
        std::fs::read(&file).expect("the public key pkcs11-tool wrote")
    }

    fn pkcs11_tool<'a>(&'a self, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
        let module = self.module.to_str().expect("a path we named ourselves");
        let login = ["--module", module, "--token-label", &self.label, "--login", "--pin", &self.pin];
        self.run("pkcs11-tool", login.into_iter().chain(arguments))
    }

    fn run<'a>(&self, tool: &str, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
        let program = Program::new(tool).arguments(arguments).variable("SOFTHSM2_CONF", &self.configuration);
        let outcome = program.run().unwrap_or_else(|error| panic!("cannot run {tool} ({error}): {INSTALL}"));
        let stderr = String::from_utf8_lossy(&outcome.stderr);
        assert!(outcome.status.success(), "{tool} failed with {}: {stderr}", outcome.status);
        outcome
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, bytes).expect("a file in our own temporary directory");
        path
    }
}

impl fmt::Debug for SoftHsm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SoftHsm").field("label", &self.label).finish_non_exhaustive()
    }
}

impl HsmKey {
    /// The public half as PEM.
    pub fn public_key_pem(&self) -> String {
        pem("PUBLIC KEY", &self.public_key)
    }
}

fn module() -> Option<PathBuf> {
    MODULES.iter().map(PathBuf::from).find(|path| path.exists())
}

const INSTALL: &str = "install Debian's packages `softhsm2` and `opensc`, or run `make test`, which does";

/// The public point out of `EC_POINT:   0441…`, an OCTET STRING in hex.
pub(crate) fn point(outcome: &Outcome) -> Vec<u8> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let hex = text.lines().find_map(|line| line.trim().strip_prefix("EC_POINT:"));
    let hex = hex.unwrap_or_else(|| panic!("pkcs11-tool printed no EC_POINT but: {text}")).trim();
    let octets: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap_or_else(|_| panic!("`{hex}` is not hex")))
        .collect();
    // A length above 127 takes a second octet: P-521 is the only curve that needs it.
    let header = if octets[1] == 0x81 { 3 } else { 2 };
    octets[header..].to_vec()
}

#[cfg(test)]
mod tests;
