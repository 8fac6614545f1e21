//! The verbs that do not look up credentials: `match`, `keyring`, `response`, `plugin-check`.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_image::conformance::{ImagePluginUnderTest, check};
use navicert_image::docker_config::read_config_json;
use navicert_image::report::{
    ConformanceReport, KeyringCredential, KeyringReport, MatchReport, ResponseReport,
};
use navicert_image::response::Response;
use navicert_image::{ImagePattern, Keyring, Location, Profile};
use navicert_plugin::ProcessRunner;
use navicert_types::image_credential::WireVersion;
use navicert_types::{SystemClock, error_chain};

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
    let report = MatchReport {
        pattern: text.to_owned(),
        image: image.as_str().to_owned(),
        matches: reason.is_none(),
        reason,
    };
    output.report(&report)?;
    Ok(if report.matches { Exit::Done } else { Exit::No })
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
    let credentials = found.iter().map(|found| KeyringCredential::new(found, args.show_secrets)).collect();
    output.report(&KeyringReport { image: image.as_str().to_owned(), credentials })?;
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
        output.json(&ResponseReport::from(&decoded))?;
    } else if let Ok(response) = &decoded {
        output.text(&response.to_string())?;
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
    let report = ConformanceReport::from(check(&subject, &ProcessRunner::new(Arc::new(SystemClock))));
    output.report(&report)?;
    Ok(if report.conforms { Exit::Done } else { Exit::No })
}
