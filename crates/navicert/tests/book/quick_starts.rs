//! The quick starts, the hardware guide and the recipes, run from top to bottom: every command prints what the page shows.
//! `make test-quickstarts` types the quick starts on a fresh machine besides.

use navicert_testkit::cli::tools;
use navicert_testkit::cli::transcript::{TestContext, check_file};
use navicert_testkit::{ApiServer, Ca, Kubeconfig, Program, SoftTpm};

use super::{hsm_support, read, recipes, workspace};

/// A page whose commands run here.
struct Page {
    path: &'static str,
    /// What its folder and its programs are; `None`, reported as skipped, if a tool is not installed.
    context: fn() -> Option<Prepared>,
}

/// A sandbox, and the servers that it needs, which end with it.
pub(crate) struct Prepared {
    pub(crate) context: TestContext,
    pub(crate) _servers: Box<dyn std::any::Any>,
}

const PAGES: [Page; 10] = [
    Page { path: "docs/quickstart/operator.md", context: operator },
    Page { path: "docs/quickstart/platform.md", context: with_examples },
    Page { path: "docs/quickstart/hardware-key.md", context: hardware_key },
    Page { path: "docs/quickstart/node.md", context: with_examples },
    Page { path: "docs/expressions.md", context: with_examples },
    Page { path: "docs/hsm.md", context: hardware_guide },
    Page { path: "docs/recipes.md", context: with_kubectl },
    Page { path: "docs/recipes/ci-job.md", context: recipes::ci_job },
    Page { path: "docs/recipes/spiffe.md", context: recipes::spiffe },
    // Its program is a test of navicert-kube; no command of the page is run.
    Page { path: "docs/quickstart/rust.md", context: || None },
];

/// Runs with a control plane in recipes.rs.
const WITH_CONTROL_PLANE: &str = "docs/recipes/helm.md";

/// The pages whose console blocks run.
pub(crate) fn pages_that_run() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|page| page.path).chain([WITH_CONTROL_PLANE])
}

/// The longest quick start: one page.
const MAX_LINES: usize = 150;

#[test]
fn commands_print_what_the_pages_show() {
    for page in PAGES {
        if let Some(prepared) = (page.context)() {
            check_file(&workspace().join(page.path), prepared.context);
        }
    }
}

#[test]
fn quick_starts_are_one_page_and_end_in_their_success_line() {
    let quick_starts: Vec<&Page> =
        PAGES.iter().filter(|page| page.path.starts_with("docs/quickstart/")).collect();
    assert_eq!(quick_starts.len(), 5);
    for page in quick_starts {
        let text = read(page.path);
        assert!(text.lines().count() <= MAX_LINES, "{} is longer than a page", page.path);
        let success = text.lines().find_map(|line| line.strip_prefix("It worked when you see: ")).unwrap();
        let shown = text.lines().any(|line| line.trim_start().starts_with(success));
        assert!(shown, "{}: no command prints `{success}`", page.path);
    }
}

/// The repository's examples beside the commands that a reader types.
pub(crate) fn context() -> TestContext {
    let context = TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"));
    let context = context.program("sed", "/bin/sed").program("cp", "/bin/cp");
    let examples = context.directory().join("examples");
    for folder in ["kubeconfig", "token", "authentication"] {
        std::fs::create_dir_all(examples.join(folder)).unwrap();
        for entry in std::fs::read_dir(workspace().join("examples").join(folder)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), examples.join(folder).join(entry.file_name())).unwrap();
        }
    }
    // Derived from the memory of the machine.
    context.filter(r"limits: \d+ connections.*", "limits: …")
}

fn with_examples() -> Option<Prepared> {
    Some(Prepared { context: context(), _servers: Box::new(()) })
}

/// The stand-in that the page starts (`--example api_server` of the test kit).
fn operator() -> Option<Prepared> {
    let ca = Ca::new("cluster root");
    let api = ApiServer::start(&ca);
    api.accept_token("canary-token", "ann", &["developers", "system:authenticated"]);
    let config =
        Kubeconfig::new(api.url()).names("prod", "east", "ann").ca_file("ca.crt").token("canary-token");
    let context =
        context().file("~/stand-in/config", &config.to_string()).file("~/stand-in/ca.crt", &ca.pem());
    let kubeconfig = context.home().join("stand-in/config").display().to_string();
    let context = context.variable("KUBECONFIG", &kubeconfig);
    Some(Prepared { context, _servers: Box::new(api) })
}

fn with_kubectl() -> Option<Prepared> {
    let Prepared { context, _servers } = operator()?;
    Some(Prepared { context: context.program("kubectl", tools::kubectl()?), _servers })
}

fn hardware_key() -> Option<Prepared> {
    Some(Prepared { context: token_context()?, _servers: Box::new(()) })
}

/// SoftHSM and a TPM, each with its tools.
fn hardware_guide() -> Option<Prepared> {
    // Its own token is not used: the page makes one in a store of its own.
    let tpm = SoftTpm::start("unused")?;
    let mut context = token_context()?
        .file("softhsm2.conf", "directories.tokendir = .\nlog.level = ERROR\n")
        .program("tpm2_ptool", tools::installed("libtpm2-pkcs11-tools", "tpm2_ptool")?);
    let store = context.directory().join("store");
    std::fs::create_dir(&store).unwrap();
    for (name, value) in tpm.variables() {
        let (name, value) = (name.into_string().unwrap(), value.into_string().unwrap());
        let value = if name == "TPM2_PKCS11_STORE" { store.display().to_string() } else { value };
        if name == "TPM2_PKCS11_TCTI" {
            context = context.variable("TPM2TOOLS_TCTI", &value);
        }
        context = context.variable(&name, &value);
    }
    Some(Prepared { context, _servers: Box::new(tpm) })
}

/// The programs of the hardware pages, and their output without what differs from run to run.
fn token_context() -> Option<TestContext> {
    let mut context = TestContext::new()
        .program("navicert", env!("CARGO_BIN_EXE_navicert"))
        .program("navicert-signer-pkcs11", hsm_support::signer());
    let needed = [("softhsm2", "softhsm2-util"), ("opensc", "pkcs11-tool"), ("openssl", "openssl")];
    for (package, program) in needed {
        context = context.program(program, tools::installed(package, program)?);
    }
    // In place of the reader, who enters the PIN.
    let pinentry = hsm_support::pinentry(&context.home(), "1234").display().to_string();
    let conf = context.directory().join("softhsm2.conf").display().to_string();
    let context = context
        .variable("SOFTHSM2_CONF", &conf)
        .variable("NAVICERT_PINENTRY", &pinentry)
        .filter(r"slot \d+", "slot [SLOT]")
        .filter(r"slot 0x[0-9a-f]+", "slot [SLOT]")
        .filter(r"EC_POINT:   [0-9a-f]+", "EC_POINT:   [POINT]")
        .filter(r"serial number [0-9a-f]+", "serial number [SERIAL]")
        .filter(r"serial:     [0-9A-F]+", "serial:     [SERIAL]")
        .filter(r"[0-9]+\.[0-9]{3} ms", "[TIME] ms")
        .filter(r"PKCS11 \d+\.\d+", "PKCS11 [VERSION]");
    Some(context)
}

/// The flags of the YubiKey commands, which cannot be run without one, are those that ykman's help lists.
#[test]
#[ignore = "needs ykman: `make test-recipes`"]
fn yubikey_commands_are_those_of_ykman() {
    let ykman = tools::installed("yubikey-manager", "ykman").unwrap();
    let text = read("docs/hsm.md");
    let shown = text.lines().filter_map(|line| line.trim_start_matches("$ ").strip_prefix("ykman "));
    let quoted = text.split("`ykman ").skip(1).filter_map(|rest| rest.split('`').next());
    let commands: Vec<&str> = shown.chain(quoted).collect();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let outcome = Program::new(&ykman).arguments(&words[..3]).arguments(["--help"]).run().unwrap();
        let help = String::from_utf8_lossy(&outcome.stdout);
        assert_eq!(outcome.code(), Some(0), "ykman {command}");
        assert!(help.contains(&format!("Usage: ykman {}", words[..3].join(" "))), "{help}");
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "ykman {command}: no {flag} in {help}");
        }
        for value in words
            .iter()
            .filter(|word| word.chars().all(|symbol| symbol.is_ascii_uppercase() || symbol.is_ascii_digit()))
            .filter(|word| word.len() > 2)
        {
            assert!(help.contains(value), "ykman {command}: no {value} in {help}");
        }
    }
}
