//! Demonstrates PKCS#11 keys: a key is generated in a token, kubectl uses it, and it cannot be exported.

use std::os::unix::fs::PermissionsExt as _;

use navicert_testkit::cli::sibling::{FAKE_SIGNER, PKCS11_SIGNER, Sibling};
use navicert_testkit::{ApiServer, Ca, ClientAuth, KeyKind, Kubeconfig, Program, SoftHsm};
use serde_json::{Value, json};

use super::{Demo, DemoError, link, write};

const PIN: &str = "demo-pin-271828";

/// Uses SoftHSM if it is installed, otherwise a signer whose key is in a file.
pub(super) fn run(demo: &Demo) -> Result<(), DemoError> {
    let ca = Ca::new("demo keys");
    let api = ApiServer::start_with(&ca, |server| server.client_auth(ClientAuth::Required(ca.clone())));
    api.add_pod("web", false);
    write(&demo.dir.path().join("keys-ca.crt"), &ca.pem())?;
    let outcome = if demo.tools.softhsm { in_softhsm(demo, &ca, &api) } else { in_software(demo, &ca, &api) };
    // The plugin policy is for this scene only.
    let _ = std::fs::remove_file(demo.dir.path().join(".kube/kuberc"));
    outcome
}

fn in_softhsm(demo: &Demo, ca: &Ca, api: &ApiServer) -> Result<(), DemoError> {
    let hsm = SoftHsm::new("demo", PIN);
    let module = hsm.module().display().to_string();
    demo.scene("A key is born in a token. Its certificate is issued for the public half; the private half has no copy.")?;
    show!(
        "$ pkcs11-tool --module {module} --token-label demo --login --keypairgen --key-type EC:prime256v1 --id 01 --label ann"
    )?;
    let key = hsm.generate(KeyKind::EcP256, "01", "ann");
    let chain = ca.client("ann").organization("developers").issue_for(&key.public_key);
    show!(
        "$ pkcs11-tool --module {module} --token-label demo --login --write-object ann.der --type cert --id 01 --label ann\n"
    )?;
    hsm.import_certificate(chain.first().ok_or("no certificate")?, "01", "ann");

    let pinentry = demo.dir.path().join("pinentry");
    write(&pinentry, &format!("#!/bin/sh\ncat >/dev/null\nprintf 'OK\\nD {PIN}\\nOK\\n'\n"))?;
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&pinentry, executable).map_err(|error| error.to_string())?;
    let settings = json!({
        "pathExec": stage_link(demo, PKCS11_SIGNER)?, "signerApiVersion": "v1",
        "uri": "pkcs11:token=demo;id=%01;type=private",
    });
    let variables = vec![
        ("SOFTHSM2_CONF", hsm.configuration().display().to_string()),
        ("NAVICERT_PKCS11_MODULE", module.clone()),
        ("NAVICERT_PINENTRY", pinentry.display().to_string()),
    ];
    use_key(demo, api, &settings, &variables)?;

    demo.scene("The private half cannot be read: not by kubectl, not by navicert, not with the PIN.")?;
    let shown = ["--list-objects", "--type", "privkey"];
    let mut program = Program::new("pkcs11-tool")
        .arguments(["--module", &module, "--token-label", "demo", "--login", "--pin", PIN])
        .arguments(shown);
    for (name, value) in &variables {
        program = program.variable(name, value);
    }
    demo.show("pkcs11-tool … --login --list-objects --type privkey", &program, 0)?;
    let objects = hsm.objects();
    if objects.contains("never extractable") {
        Ok(())
    } else {
        Err(format!("the private key is extractable: {objects}").into())
    }
}

/// Uses the tests' signer, whose key is in a file.
fn in_software(demo: &Demo, ca: &Ca, api: &ApiServer) -> Result<(), DemoError> {
    demo.scene("A key that only a signer program reads: here in a file, elsewhere in a token.")?;
    show!()?;
    let dir = demo.dir.path().join("signer");
    std::fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    let ann = ca.client("ann").organization("developers").issue();
    std::fs::write(dir.join("key.der"), ann.key_der()).map_err(|error| error.to_string())?;
    write(&dir.join("chain.pem"), &ann.chain_pem())?;
    let settings = json!({"pathExec": stage_link(demo, FAKE_SIGNER)?, "signerApiVersion": "v1"});
    let variables = vec![("FAKE_SIGNER_FOLDER", dir.display().to_string())];
    use_key(demo, api, &settings, &variables)
}

/// Runs kubectl with the key that these settings of the signer select.
fn use_key(
    demo: &Demo,
    api: &ApiServer,
    settings: &Value,
    variables: &[(&str, String)],
) -> Result<(), DemoError> {
    let config = Kubeconfig::new(api.url())
        .names("key", "demo", "ann")
        .ca_file("keys-ca.crt")
        .user(json!({"auth-provider": {"name": "externalSigner", "config": settings}}));
    write(&demo.dir.path().join("key.yaml"), &config.to_string())?;
    let kuberc = json!({
        "apiVersion": "kubectl.config.k8s.io/v1beta1", "kind": "Preference", "credentialPluginPolicy": "Allowlist",
        "credentialPluginAllowlist": [{"command": settings["pathExec"]}],
    });
    std::fs::create_dir_all(demo.dir.path().join(".kube")).map_err(|error| error.to_string())?;
    write(&demo.dir.path().join(".kube/kuberc"), &kuberc.to_string())?;

    demo.scene("kubectl uses it, through a gateway that asks the signer for one signature per connection.")?;
    let run = |line: &str, arguments: &[&str]| {
        show!("$ navicert {line}")?;
        let mut program = Program::new(&demo.navicert).arguments(arguments);
        for (name, value) in variables {
            program = program.variable(name, value);
        }
        demo.show_with("key.yaml", &program, 0)
    };
    run("whoami", &["whoami"])?;
    let get = ["run", "--", "kubectl", "get", "pods", "-o", "name"];
    run("run -- kubectl get pods -o name", &get)?;
    let requests = api.requests();
    let is_anns = |name: Option<&str>| name == Some("ann");
    if requests
        .iter()
        .all(|request| is_anns(request.client.as_ref().map(|client| client.common_name.as_str())))
    {
        Ok(())
    } else {
        Err("the API server received a request without ann's certificate".into())
    }
}

/// Links one of navicert's programs into the demo's `PATH` and returns its name.
fn stage_link(demo: &Demo, program: Sibling) -> Result<&'static str, String> {
    link(&program.find()?, &demo.dir.path().join("bin").join(program.name()))?;
    Ok(program.name())
}
