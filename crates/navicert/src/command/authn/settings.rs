//! What the verbs of `authn` have in common: whose rules decide, our own file beside the configuration, and where keys
//! come from.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use navicert_authn::config::{BaseProfile, Compiled, CompiledIssuer, NavicertConfiguration, load_beside};
use navicert_authn::jwks::Keys;
use navicert_authn::revocation::{RevocationList, Revocations};
use navicert_authn::{Authenticators, Profile, batch};
use navicert_types::Diagnostics;
use serde_json::Value;

use super::online;
use crate::args;
use crate::args::authn::SettingsArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::snippet::{self, Problem};
use crate::output::{Failure, Output};

/// Rules, and our own file.
pub(super) struct Settings {
    /// Whose rules decide.
    pub(super) profile: Profile,
    /// Our own file; empty if there is none.
    pub(super) side_car: NavicertConfiguration,
    revocations: Arc<Revocations>,
    /// The content of key files, by issuer.
    key_files: HashMap<String, String>,
}

/// Where the keys of issuers come from.
pub(super) enum KeySource {
    /// A file: see [`batch::eval`].
    File(Value),
    /// The issuers themselves: their keys as the chosen profile reads them, and as kube-apiserver does.
    Online { chosen: HashMap<String, Arc<dyn Keys>>, kube: HashMap<String, Arc<dyn Keys>> },
}

impl Settings {
    /// Reads what the command line names; hardened if it names nothing.
    pub(super) fn read(args: &SettingsArgs, output: &mut Output) -> Result<Self, Failure> {
        Settings::of(args, None, output)
    }

    /// The same with another profile to begin with.
    pub(super) fn read_or(
        args: &SettingsArgs,
        otherwise: args::Profile,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        Settings::of(args, Some(otherwise), output)
    }

    fn of(
        args: &SettingsArgs,
        otherwise: Option<args::Profile>,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        let side_car = match &args.navicert_config {
            None => NavicertConfiguration::default(),
            Some(path) => {
                let bytes = bytes(path)?;
                let refused = |wrong| refused(&wrong, &path.display().to_string(), &bytes, output);
                let folder = path.parent().unwrap_or(Path::new(""));
                NavicertConfiguration::parse(&bytes).map_err(refused)?.in_folder(folder)
            }
        };
        let named = args.profile.or(otherwise.filter(|_| side_car.profile.is_none()));
        let named = named.map(|profile| match profile {
            args::Profile::Kube => BaseProfile::Kube,
            args::Profile::Hardened => BaseProfile::Hardened,
        });
        let mut list = RevocationList::default();
        if let Some(path) = &side_car.revocation_list {
            let bytes = bytes(path)?;
            list = RevocationList::parse(&bytes)
                .map_err(|wrong| refused(&wrong, &path.display().to_string(), &bytes, output))?;
        }
        let mut key_files = HashMap::new();
        for issuer in &side_car.issuers {
            if let Some(path) = &issuer.jwks_file {
                key_files.insert(issuer.url.clone(), text(path)?);
            }
        }
        let revocations = Arc::new(Revocations::new(list));
        Ok(Settings { profile: side_car.profile(named), side_car, revocations, key_files })
    }

    /// A configuration with what our own file says of its issuers.
    pub(super) fn compile(&self, config: &[u8], profile: &Profile) -> Result<Compiled, String> {
        let loaded = load_beside(config, profile, &self.side_car.disallowed_issuers)
            .map_err(|error| format!("the configuration is not valid: {error}"))?;
        let mut compiled = loaded.compiled;
        self.side_car.apply(&mut compiled).map_err(|wrong| {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            format!("the NavicertConfiguration does not fit: {}", wrong.join("; "))
        })?;
        Ok(compiled)
    }

    /// The authenticators of a configuration, ready to judge.
    pub(super) fn authenticators(
        &self,
        config: &[u8],
        profile: &Profile,
        keys: &KeySource,
    ) -> Result<Authenticators, String> {
        let compiled = self.compile(config, profile)?;
        let authenticators = Authenticators::new(compiled, |issuer| self.keys(issuer, profile, keys));
        // kube-apiserver knows nothing of revoked tokens; its word is asked for beside that of another profile.
        let is_kube_beside = *profile == Profile::KUBE && self.profile != Profile::KUBE;
        if is_kube_beside {
            return Ok(authenticators);
        }
        Ok(authenticators.with_revocations(Arc::clone(&self.revocations)))
    }

    /// Whether an issuer's keys are in a file that our own file names.
    pub(super) fn has_key_file(&self, issuer: &str) -> bool {
        self.key_files.contains_key(issuer)
    }

    /// The raw key set of an issuer, where it is known.
    pub(super) fn key_set(&self, issuer: &CompiledIssuer, keys: &KeySource) -> Option<String> {
        match (self.key_files.get(&issuer.url), keys) {
            (Some(body), _) => Some(body.clone()),
            (None, KeySource::File(jwks)) => batch::key_set(jwks, &issuer.url),
            (None, KeySource::Online { .. }) => None,
        }
    }

    fn keys(&self, issuer: &CompiledIssuer, profile: &Profile, keys: &KeySource) -> Arc<dyn Keys> {
        if let Some(body) = self.key_files.get(&issuer.url) {
            return Arc::new(batch::fixed(&Value::String(body.clone()), &issuer.url, profile));
        }
        match keys {
            KeySource::File(jwks) => Arc::new(batch::fixed(jwks, &issuer.url, profile)),
            KeySource::Online { chosen, kube } => {
                let known = if *profile == Profile::KUBE { kube } else { chosen };
                known
                    .get(&issuer.url)
                    .cloned()
                    .unwrap_or_else(|| Arc::new(batch::fixed(&Value::Null, "", profile)))
            }
        }
    }

    /// Where the keys for a configuration come from, as the command line says.
    pub(super) fn key_source(
        &self,
        config: &[u8],
        jwks: Option<&Path>,
        online: bool,
        environment: &Environment,
    ) -> Result<KeySource, Failure> {
        let compiled = self.compile(config, &self.profile).map_err(Failure::bad_input)?;
        if online {
            return online::keys(self, &compiled, environment);
        }
        match jwks {
            Some(path) => key_sets(path).map(KeySource::File),
            None if compiled.authenticators.iter().all(|one| self.has_key_file(&one.issuer.url)) => {
                Ok(KeySource::File(Value::Null))
            }
            None => Err(Failure::bad_input(
                "keys are needed: name a file with --jwks, ask the issuers with --online, or set `jwksFile` in a \
                 NavicertConfiguration",
            )),
        }
    }
}

/// A file of keys: one document for every issuer, or one per issuer.
pub(super) fn key_sets(path: &Path) -> Result<Value, Failure> {
    let jwks = text(path)?;
    // A map of issuers is an object; a document of keys goes as it is, odd spellings included.
    let by_issuer = serde_json::from_str::<Value>(&jwks)
        .ok()
        .filter(|jwks| jwks.is_object() && jwks.get("keys").is_none());
    Ok(by_issuer.unwrap_or(Value::String(jwks)))
}

pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    fs::read_to_string(path).map_err(|error| Failure::bad_input(format!("cannot read `{name}`: {error}")))
}

pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    fs::read(path).map_err(|error| Failure::bad_input(format!("cannot read `{name}`: {error}")))
}

/// Draws everything that is wrong with a file of ours.
pub(super) fn refused(wrong: &Diagnostics, name: &str, bytes: &[u8], output: &mut Output) -> Failure {
    let text = String::from_utf8_lossy(bytes);
    for one in wrong {
        let message =
            if one.path.is_root() { one.message.clone() } else { format!("{}: {}", one.path, one.message) };
        let problem = Problem {
            file: name,
            text: &text,
            hidden: one.is_secret,
            span: one.span,
            message,
            hint: one.hint.clone(),
            fatal: true,
        };
        output.note(&if one.is_secret { snippet::render(&problem) } else { snippet::render_open(&problem) });
    }
    Failure::Told(Exit::BadInput)
}
