//! `navicert signer list`: tokens and keys, with the kubeconfig lines to use them.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use navicert_signer::pkcs11::{FoundKey, PinState, Pkcs11Module, Pkcs11Token, inventory, known_modules};
use navicert_signer::program::SignerEnvironment;
use navicert_types::tree::yaml_quoted;
use navicert_types::{error_chain, redact};
use serde_json::{Value, json};

use crate::args::signer::ListArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints all tokens and keys.
pub(super) fn run(args: &ListArgs, around: &SignerEnvironment, output: &mut Output) -> Result<Exit, Failure> {
    let (paths, named) = modules(args, around);
    let mut listed = Vec::new();
    for path in paths {
        match Pkcs11Module::load(&path).and_then(|module| Ok((module.tokens()?, module))) {
            Ok((tokens, module)) => listed.push((module, tokens)),
            // A broken module on the default search path is only a warning: the user did not name it.
            Err(error) if named => return Err(super::failure(&error)),
            Err(error) => output.warning(&redact::terminal(&error_chain(&error))),
        }
    }
    let mut keys = 0;
    let (mut text, mut json) = (String::new(), Vec::new());
    for (module, tokens) in &listed {
        let mut shown = Vec::new();
        for token in tokens {
            let found = inventory(module, token).map_err(|error| super::failure(&error))?;
            keys += found.len();
            text.push_str(&token_text(module, token, &found));
            shown.push(token_json(token, &found));
        }
        json.push(json!({"path": module.path(), "description": module.description(), "tokens": shown}));
    }
    if output.is_json() {
        output.json(&json!({"modules": json}))?;
    } else {
        if keys == 0 {
            let looked: Vec<String> =
                listed.iter().map(|(module, _)| module.path().display().to_string()).collect();
            let _ = writeln!(
                text,
                "no key found (modules: {})",
                if looked.is_empty() { "none".to_owned() } else { looked.join(", ") }
            );
        }
        output.text(&redact::terminal(&text))?;
    }
    Ok(if keys == 0 { Exit::No } else { Exit::Done })
}

/// The modules to search: from the command line, the environment or the default paths; and whether the user named them.
fn modules(args: &ListArgs, around: &SignerEnvironment) -> (Vec<PathBuf>, bool) {
    match around.default_module() {
        _ if !args.module.is_empty() => (args.module.clone(), true),
        Some(module) => (vec![module], true),
        None => (known_modules(), false),
    }
}

fn token_text(module: &Arc<Pkcs11Module>, token: &Pkcs11Token, keys: &[FoundKey]) -> String {
    let mut text = format!(
        "token   {}\nmodule  {} ({})\nmodel   {} {}, serial number {}, slot {}\npin     {}\n",
        token.label,
        module.path().display(),
        module.description(),
        token.manufacturer,
        token.model,
        token.serial,
        token.slot_id(),
        pin(token),
    );
    for key in keys {
        text.push_str(&key_text(key));
    }
    if keys.is_empty() {
        text.push_str("\n  no key is visible without the PIN\n");
    }
    text.push('\n');
    text
}

fn key_text(key: &FoundKey) -> String {
    let kind =
        key.public_key.as_ref().map_or("unknown key type".to_owned(), |key| key.algorithm().to_string());
    let mut text = format!("\n  key          {} (id {}), {kind}\n", key.label, hex(&key.id));
    let schemes: Vec<&str> = key.schemes.iter().map(|scheme| scheme.name()).collect();
    let reach = match (key.schemes.is_empty(), key.schemes.iter().any(|scheme| scheme.is_in_tls13())) {
        (true, _) => "no signature scheme that TLS supports".to_owned(),
        (false, true) => schemes.join(", "),
        (false, false) => format!("{} (TLS 1.2 only: no RSA-PSS)", schemes.join(", ")),
    };
    let _ = writeln!(text, "  can sign     {reach}");
    let Some(holder) = key.holder() else {
        text.push_str("  certificate  none: import one with the same id to use this key\n");
        return text;
    };
    let _ = writeln!(text, "  certificate  {}, until {}", holder.subject, holder.not_after);
    let uri = key.uri.to_string();
    let (name, uri, module) = (
        yaml_quoted(&holder.name),
        yaml_quoted(&uri),
        yaml_quoted(key.uri.module_path.as_deref().unwrap_or_default()),
    );
    let _ = write!(
        text,
        "\n  kubeconfig:\n\
         \n    users:\n    - name: {name}\n      user:\n        auth-provider:\n          name: externalSigner\n          config:\n\
         \x20           pathExec: navicert-signer-pkcs11\n\
         \x20           signerApiVersion: v1\n\
         \x20           uri: {uri}\n\
         \n  kuberc (allows it):\n\
         \n    apiVersion: kubectl.config.k8s.io/v1beta1\n    kind: Preference\n    credentialPluginPolicy: Allowlist\n    credentialPluginAllowlist:\n\
         \x20   - command: navicert-signer-pkcs11\n      pathLib: [{module}]\n"
    );
    text
}

fn token_json(token: &Pkcs11Token, keys: &[FoundKey]) -> Value {
    let keys: Vec<Value> = keys
        .iter()
        .map(|key| {
            let holder = key.holder();
            json!({
                "id": hex(&key.id),
                "label": key.label,
                "kind": key.public_key.as_ref().map(|key| key.algorithm().name()),
                "schemes": key.schemes.iter().map(|scheme| scheme.name()).collect::<Vec<_>>(),
                "certificate": holder.map(|holder| json!({
                    "subject": holder.subject, "commonName": holder.name, "notAfter": holder.not_after.to_string(),
                    "chainLength": key.chain.len(),
                })),
                "uri": key.uri.to_string(),
            })
        })
        .collect();
    json!({
        "label": token.label, "manufacturer": token.manufacturer, "model": token.model, "serial": token.serial,
        "slotId": token.slot_id(), "needsLogin": token.needs_login, "pin": pin(token), "keys": keys,
    })
}

fn pin(token: &Pkcs11Token) -> &'static str {
    match token.pin {
        PinState::Locked => "locked",
        PinState::LastTry => "one attempt left before the token is locked",
        PinState::CountLow => "incorrect PIN entered since the last login",
        PinState::Fine if !token.needs_login => "not required",
        PinState::Fine if token.has_pin_pad => "entered at the device",
        PinState::Fine => "required to sign",
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
