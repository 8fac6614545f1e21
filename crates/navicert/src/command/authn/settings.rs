//! Shared by the verbs of `authn`: the profile, the NavicertConfiguration and the source of keys.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use navicert_authn::batch::BatchSettings;
use navicert_authn::config::{BaseProfile, CompiledConfig, CompiledIssuer, NavicertConfiguration};
use navicert_authn::jwks::KeySource;
use navicert_authn::revocation::{RevocationList, Revocations};
use navicert_authn::{Authenticators, AuthnOutcome, AuthnProfile, AuthnRequest, batch};
use navicert_types::Diagnostics;
use serde_json::Value;

use super::online::OnlineIssuers;
use crate::args;
use crate::args::authn::SettingsArgs;
use crate::command::connect::block_on;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::snippet::{self, SnippetProblem};
use crate::output::{Failure, Output};

/// The profile and the NavicertConfiguration.
pub(super) struct AuthnSettings {
    /// Rules to apply.
    pub(super) profile: AuthnProfile,
    /// The NavicertConfiguration; empty without a file.
    pub(super) navicert_config: NavicertConfiguration,
    revocations: Arc<Revocations>,
    /// Contents of the key files, by issuer.
    key_files: HashMap<String, String>,
}

/// Source of the issuers' keys.
pub(super) enum KeyOrigin {
    /// A file: see [`batch::eval`].
    File(Value),
    /// Fetched from the issuers.
    Online(OnlineIssuers),
}

impl KeyOrigin {
    /// Reports that the keys of the token's issuer could not be fetched, if that decided the outcome.
    pub(super) fn report_failure(&self, outcome: &AuthnOutcome, output: &mut Output) -> Option<Exit> {
        let KeyOrigin::Online(issuers) = self else { return None };
        let (message, exit) = issuers.failure(outcome)?;
        output.error(&message);
        Some(exit)
    }
}

impl AuthnSettings {
    /// Reads the settings from the command line; the default profile is hardened.
    pub(super) fn read(args: &SettingsArgs, output: &mut Output) -> Result<Self, Failure> {
        AuthnSettings::from_args(args, None, output)
    }

    /// Reads the settings from the command line, with another default profile.
    pub(super) fn read_with_default(
        args: &SettingsArgs,
        otherwise: args::Profile,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        AuthnSettings::from_args(args, Some(otherwise), output)
    }

    fn from_args(
        args: &SettingsArgs,
        otherwise: Option<args::Profile>,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        let navicert_config = match &args.navicert_config {
            None => NavicertConfiguration::default(),
            Some(path) => {
                let bytes = bytes(path)?;
                let refused = |wrong| report_diagnostics(&wrong, &path.display().to_string(), &bytes, output);
                let dir = path.parent().unwrap_or(Path::new(""));
                NavicertConfiguration::parse(&bytes).map_err(refused)?.resolve_paths(dir)
            }
        };
        let named = args.profile.or(otherwise.filter(|_| navicert_config.profile.is_none()));
        let named = named.map(|profile| match profile {
            args::Profile::Kube => BaseProfile::Kube,
            args::Profile::Hardened => BaseProfile::Hardened,
        });
        let mut list = RevocationList::default();
        if let Some(path) = &navicert_config.revocation_list {
            let bytes = bytes(path)?;
            list = RevocationList::parse(&bytes)
                .map_err(|wrong| report_diagnostics(&wrong, &path.display().to_string(), &bytes, output))?;
        }
        let mut key_files = HashMap::new();
        for issuer in &navicert_config.issuers {
            if let Some(path) = &issuer.jwks_file {
                key_files.insert(issuer.url.clone(), text(path)?);
            }
        }
        let revocations = Arc::new(Revocations::new(list));
        let profile = navicert_config.profile(named, args.kube_version);
        for ignored in navicert_config.ignored_settings(&profile) {
            output.warning(&ignored);
        }
        Ok(AuthnSettings { profile, navicert_config, revocations, key_files })
    }

    /// The settings of a batch.
    pub(super) fn for_batch(&self) -> BatchSettings<'_> {
        BatchSettings { profile: &self.profile, navicert_config: Some(&self.navicert_config) }
    }

    /// Compiles a configuration and applies the NavicertConfiguration's issuer settings.
    pub(super) fn compile(&self, config: &[u8], profile: &AuthnProfile) -> Result<CompiledConfig, String> {
        self.navicert_config.compile(config, profile, |path| fs::read(path))
    }

    /// Compiles the authenticators of a configuration for one token. With `--online`, also fetches its distributed claims.
    pub(super) fn authenticators(
        &self,
        config: &[u8],
        profile: &AuthnProfile,
        keys: &KeyOrigin,
        request: &AuthnRequest<'_>,
    ) -> Result<Authenticators, String> {
        let compiled = self.compile(config, profile)?;
        let source = |issuer: &CompiledIssuer| self.keys(issuer, profile, keys);
        let mut authenticators = match keys {
            KeyOrigin::File(_) => Authenticators::new(compiled, source),
            KeyOrigin::Online(issuers) => Authenticators::with_fetch(compiled, source, issuers.context()),
        };
        // kube-apiserver has no revocation list: ignore it when comparing another profile with kube-apiserver.
        let is_kube_beside = profile.is_kube() && !self.profile.is_kube();
        if !is_kube_beside {
            authenticators = authenticators.with_revocations(Arc::clone(&self.revocations));
        }
        if matches!(keys, KeyOrigin::Online(_)) {
            block_on(authenticators.prefetch(request)).map_err(|_| "failed to start the async runtime")?;
        }
        Ok(authenticators)
    }

    /// Whether the NavicertConfiguration sets a key file for an issuer.
    pub(super) fn has_key_file(&self, issuer: &str) -> bool {
        self.key_files.contains_key(issuer)
    }

    /// The raw key set of an issuer, if it comes from a file.
    pub(super) fn key_set(&self, issuer: &CompiledIssuer, keys: &KeyOrigin) -> Option<String> {
        match (self.key_files.get(&issuer.url), keys) {
            (Some(body), _) => Some(body.clone()),
            (None, KeyOrigin::File(jwks)) => batch::key_set(jwks, &issuer.url),
            (None, KeyOrigin::Online(_)) => None,
        }
    }

    fn keys(&self, issuer: &CompiledIssuer, profile: &AuthnProfile, keys: &KeyOrigin) -> Arc<dyn KeySource> {
        if let Some(body) = self.key_files.get(&issuer.url) {
            return Arc::new(batch::static_keys(&Value::String(body.clone()), &issuer.url, profile));
        }
        match keys {
            KeyOrigin::File(jwks) => Arc::new(batch::static_keys(jwks, &issuer.url, profile)),
            KeyOrigin::Online(issuers) => issuers
                .keys(&issuer.url, profile)
                .unwrap_or_else(|| Arc::new(batch::static_keys(&Value::Null, "", profile))),
        }
    }

    /// Selects the source of keys from the command line.
    pub(super) fn key_source(
        &self,
        config: &[u8],
        jwks: Option<&Path>,
        online: bool,
        environment: &Environment,
    ) -> Result<KeyOrigin, Failure> {
        let compiled = self.compile(config, &self.profile).map_err(Failure::bad_input)?;
        if online {
            return OnlineIssuers::fetch(self, &compiled, environment).map(KeyOrigin::Online);
        }
        match jwks {
            Some(path) => key_sets(path).map(KeyOrigin::File),
            None if compiled.authenticators.iter().all(|one| self.has_key_file(&one.issuer.url)) => {
                Ok(KeyOrigin::File(Value::Null))
            }
            None => Err(Failure::bad_input(
                "missing keys: set --jwks, fetch them with --online, or set `jwksFile` in a NavicertConfiguration",
            )),
        }
    }
}

/// Reads a file with one JWKS document for all issuers, or one document per issuer URL.
pub(super) fn key_sets(path: &Path) -> Result<Value, Failure> {
    let jwks = text(path)?;
    // A map by issuer is an object without `keys`; a JWKS document is passed on verbatim.
    let by_issuer = serde_json::from_str::<Value>(&jwks)
        .ok()
        .filter(|jwks| jwks.is_object() && jwks.get("keys").is_none());
    Ok(by_issuer.unwrap_or(Value::String(jwks)))
}

pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    fs::read_to_string(path).map_err(|error| Failure::bad_input(format!("failed to read `{name}`: {error}")))
}

pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    fs::read(path).map_err(|error| Failure::bad_input(format!("failed to read `{name}`: {error}")))
}

/// Prints all diagnostics of a file with their source lines.
pub(super) fn report_diagnostics(
    wrong: &Diagnostics,
    name: &str,
    bytes: &[u8],
    output: &mut Output,
) -> Failure {
    let text = String::from_utf8_lossy(bytes);
    for one in wrong {
        let message =
            if one.path.is_root() { one.message.clone() } else { format!("{}: {}", one.path, one.message) };
        let problem = SnippetProblem {
            file: name,
            text: &text,
            hidden: one.is_secret,
            span: one.span,
            message,
            hint: one.hint.clone(),
            fatal: true,
        };
        if one.is_secret {
            snippet::print(&problem, output);
        } else {
            snippet::print_open(&problem, output);
        }
    }
    Failure::AlreadyReported(Exit::BadInput)
}
