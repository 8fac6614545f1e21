//! The verbs that do not look up credentials: `match`, `keyring`, `response`, `plugin-check`.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_image::conformance::{ImagePluginUnderTest, check};
use navicert_image::docker_config::read_config_json;
use navicert_image::response::Response;
use navicert_image::{ImagePattern, Keyring, Location, Profile};
use navicert_plugin::ProcessRunner;
use navicert_types::image_credential::WireVersion;
use navicert_types::redact::{self, REDACTED};
use navicert_types::{SystemClock, error_chain};
use serde_json::{Value, json};

use super::{profile, repository};
use crate::args::image::{KeyringArgs, MatchArgs, PluginCheckArgs, ResponseArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// `image match PATTERN IMAGE`
pub(super) fn matches(args: &MatchArgs, output: &mut Output) -> Result<Exit, Failure> {
    let text = args.pattern.as_deref().unwrap_or_default();
    let pattern = ImagePattern::parse(text, profile(args.profile, Profile::Hardened))
        .map_err(|error| Failure::bad_input(format!("invalid pattern `{text}`: {error}")))?;
    let image = repository(args.image.as_deref().unwrap_or_default())?;
    let location = Location::parse(image.as_str().as_bytes());
    let location = location.map_err(|error| Failure::bad_input(format!("`{image}`: {error}")))?;
    let reason = pattern.compare(&location).err().map(|mismatch| mismatch.to_string());
    if output.is_json() {
        output.json(
            &json!({"pattern": text, "image": image.as_str(), "match": reason.is_none(), "reason": reason}),
        )?;
    } else {
        let verdict =
            reason.clone().map_or("matches".to_owned(), |reason| format!("does not match: {reason}"));
        output.text(&format!("{text} {image}: {verdict}\n"))?;
    }
    Ok(if reason.is_none() { Exit::Done } else { Exit::No })
}

/// `image keyring FILE IMAGE`
pub(super) fn keyring(args: &KeyringArgs, output: &mut Output) -> Result<Exit, Failure> {
    let path = args.docker_config.clone().unwrap_or_default();
    let cannot = |error: &dyn std::fmt::Display| Failure::bad_input(format!("`{}`: {error}", path.display()));
    let unreadable = |error| Failure::bad_input(format!("failed to read `{}`: {error}", path.display()));
    let config = read_config_json(&fs::read(&path).map_err(unreadable)?).map_err(|error| cannot(&error))?;
    let image = repository(args.image.as_deref().unwrap_or_default())?;
    let keyring = Keyring::new(config, profile(args.profile, Profile::Hardened));
    for refused in keyring.rejected_keys() {
        output.warning(&format!("ignored key `{}`: {}", refused.key, refused.reason));
    }
    let found = keyring.lookup(image.as_str());
    let password = |found: &navicert_image::RegistryCredential| {
        if args.show_secrets { found.password.expose().clone() } else { REDACTED.to_owned() }
    };
    if output.is_json() {
        let shown =
            found.iter().map(|found| json!({"username": found.username, "password": password(found)}));
        output.json(&json!({"image": image.as_str(), "credentials": shown.collect::<Vec<Value>>()}))?;
    } else {
        let lines =
            found.iter().map(|found| format!("{}\t{}\n", redact::terminal(&found.username), password(found)));
        output.text(&lines.collect::<String>())?;
    }
    Ok(if found.is_empty() { Exit::No } else { Exit::Done })
}

/// `image response [FILE]`
pub(super) fn response(args: &ResponseArgs, output: &mut Output) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    let read = match &args.file {
        Some(path) => fs::read(path).map(|bytes| text = bytes),
        None => io::stdin().take(16 << 20).read_to_end(&mut text).map(drop),
    };
    let name = args.file.as_ref().map_or("standard input".to_owned(), |path| format!("`{}`", path.display()));
    read.map_err(|error| Failure::bad_input(format!("failed to read {name}: {error}")))?;
    let decoded = Response::decode_as(&text, &args.api_version);
    if output.is_json() {
        let stage = decoded.as_ref().err().map(|error| error.stage().as_str());
        let message = decoded.as_ref().err().map(|error| error_chain(error));
        output.json(&json!({"ok": decoded.is_ok(), "stage": stage, "error": message}))?;
    } else if let Ok(response) = &decoded {
        let duration =
            response.cache_duration.map_or("as configured".to_owned(), |duration| duration.to_string());
        output.text(&format!(
            "valid: applies to {}, cache duration {duration}\n",
            super::explain::cache_scope(response.cache_key_type.as_str())
        ))?;
        for (key, credential) in &response.auth {
            let user = if credential.is_anonymous() {
                "anonymous".into()
            } else {
                redact::terminal(&credential.username)
            };
            output.text(&format!("  {}  {user}\n", redact::terminal(key)))?;
        }
    } else if let Err(error) = &decoded {
        output.error(&error_chain(error));
    }
    Ok(if decoded.is_ok() { Exit::Done } else { Exit::No })
}

/// `image plugin-check -- CMD`
pub(super) fn plugin_check(
    args: PluginCheckArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let version = WireVersion::from_api_version(&args.api_version).ok_or_else(|| Failure::Message {
        exit: Exit::Usage,
        text: format!(
            "unknown API version `{}`; expected one of {}",
            args.api_version,
            WireVersion::ALL.map(|version| format!("`{}`", version.api_version())).join(", ")
        ),
    })?;
    let image = repository(&args.image)?;
    let mut command = args.command.into_iter();
    let subject = ImagePluginUnderTest {
        program: PathBuf::from(command.next().unwrap_or_default()),
        args: command.collect(),
        environment: environment.inherited.clone(),
        image: image.as_str().to_owned(),
        version,
        limit: Duration::from_secs(args.limit),
    };
    let verdicts = check(&subject, &ProcessRunner::new(Arc::new(SystemClock)));
    let broken = verdicts.iter().any(|verdict| verdict.result.is_err());
    if output.is_json() {
        let shown = verdicts.iter().map(|verdict| json!({"rule": verdict.rule.as_str(), "holds": verdict.result.is_ok(), "reason": verdict.result.as_ref().err()}));
        output.json(&json!({"conforms": !broken, "rules": shown.collect::<Vec<Value>>()}))?;
    } else {
        for verdict in &verdicts {
            let line = match &verdict.result {
                Ok(()) => format!("pass  {}\n", verdict.rule),
                Err(reason) => format!("fail  {}: {}\n", verdict.rule, redact::terminal(reason)),
            };
            output.text(&line)?;
        }
    }
    Ok(if broken { Exit::No } else { Exit::Done })
}
