//! What prevents building a client: every problem with its location, class and fix.

use std::fmt;
use std::path::{Path, PathBuf};

use navicert_types::error_chain;
use navicert_types::tree::Span;

use super::options::{file_errors, suggestion};
use super::problem::Problem;
use crate::kubeconfig::{
    KubeconfigFileError, KubeconfigText, MergedKubeconfig, Overrides, SelectedNames, ValidationError,
};

/// Every problem that prevents building a client. Never empty.
#[derive(Debug)]
pub struct ConfigErrors(Vec<ConfigError>);

/// One problem of a configuration. `Display` and [`source`](std::error::Error::source) contain no secret.
#[derive(Debug)]
pub struct ConfigError {
    pub(crate) problem: Problem,
    pub(crate) location: Option<ConfigLocation>,
    pub(crate) help: Option<String>,
}

/// What a problem concerns, for programs that react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigErrorClass {
    /// A kubeconfig file cannot be read.
    Unreadable,
    /// A kubeconfig file cannot be decoded.
    Malformed,
    /// There is no configuration: no file, no context, and no service account.
    NoConfiguration,
    /// The context does not exist.
    ContextNotFound,
    /// The cluster does not exist.
    ClusterNotFound,
    /// The user does not exist.
    UserNotFound,
    /// The server's address or TLS server name.
    Server,
    /// The proxy's address.
    Proxy,
    /// The certificate authority.
    Authority,
    /// The client certificate or its key.
    ClientCertificate,
    /// A token, a token file or a password.
    Token,
    /// The exec plugin.
    Exec,
    /// The auth provider, except an external signer.
    AuthProvider,
    /// The external signer.
    ExternalSigner,
    /// Impersonation.
    Impersonation,
    /// The credential needs a feature that this crate was built without.
    MissingFeature,
    /// The plugin policy does not permit the plugin or signer.
    PolicyDenied,
}

/// When kubectl reports the same problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ConfigErrorStage {
    /// When it loads the files.
    Load,
    /// When it validates the selected context.
    Validate,
    /// When it creates the client.
    Build,
    /// With the first request.
    Request,
    /// When it is about to run the plugin.
    Policy,
}

/// A position in a kubeconfig file.
#[derive(Clone, Debug)]
pub struct ConfigLocation {
    pub(crate) path: PathBuf,
    pub(crate) span: Span,
    pub(crate) text: KubeconfigText,
}

impl ConfigErrors {
    /// `None` without errors.
    pub(crate) fn new(errors: Vec<ConfigError>) -> Option<Self> {
        (!errors.is_empty()).then_some(ConfigErrors(errors))
    }

    /// For a failure without a reported problem, which does not happen.
    pub(crate) fn unknown() -> Self {
        ConfigErrors(vec![ConfigError::new(ValidationError::NoConfiguration)])
    }

    /// Files that cannot be loaded.
    pub(crate) fn from_files(errors: Vec<KubeconfigFileError>) -> Self {
        let found = errors.into_iter().flat_map(file_errors).collect();
        ConfigErrors::new(found).unwrap_or_else(ConfigErrors::unknown)
    }

    /// Adds less important problems.
    pub(crate) fn and(mut self, more: Vec<ConfigError>) -> Self {
        self.0.extend(more);
        self
    }

    /// A missing entry, with the existing ones as help.
    pub(crate) fn missing_entry(error: ValidationError, merged: &MergedKubeconfig) -> Self {
        let help = suggestion(merged, &error);
        ConfigErrors(vec![ConfigError::new(error).with_help(help)])
    }

    /// The problems, most important first.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigError> {
        self.0.iter()
    }

    /// The class of the first problem.
    pub fn class(&self) -> ConfigErrorClass {
        self.0.first().map_or(ConfigErrorClass::NoConfiguration, ConfigError::class)
    }
}

impl<'a> IntoIterator for &'a ConfigErrors {
    type Item = &'a ConfigError;
    type IntoIter = std::slice::Iter<'a, ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_load = self.0.first().is_some_and(|error| error.stage() == ConfigErrorStage::Load);
        let prefix = if is_load { "failed to load configuration" } else { "invalid configuration" };
        let texts: Vec<String> = self.0.iter().map(|error| error_chain(error)).collect();
        write!(f, "{prefix}: {}", texts.join(", "))
    }
}

impl std::error::Error for ConfigErrors {}

impl ConfigError {
    pub(crate) fn new(problem: impl Into<Problem>) -> Self {
        let problem = problem.into();
        ConfigError { help: problem.help(), problem, location: None }
    }

    pub(crate) fn at(self, location: Option<ConfigLocation>) -> Self {
        ConfigError { location, ..self }
    }

    pub(crate) fn with_help(self, help: Option<String>) -> Self {
        ConfigError { help, ..self }
    }

    /// What the problem concerns.
    pub fn class(&self) -> ConfigErrorClass {
        self.problem.class()
    }

    /// When kubectl reports it.
    pub fn stage(&self) -> ConfigErrorStage {
        self.problem.stage()
    }

    /// The kubeconfig file, if it concerns one.
    pub fn file(&self) -> Option<&Path> {
        self.location.as_ref().map(ConfigLocation::path).or_else(|| self.problem.file())
    }

    /// Its position in a file, if known.
    pub fn location(&self) -> Option<&ConfigLocation> {
        self.location.as_ref()
    }

    /// Whether the text at the location may be a secret.
    pub fn is_secret(&self) -> bool {
        self.problem.is_secret()
    }

    /// How to fix it, if the message does not say so.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

impl ConfigLocation {
    /// The file as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.span.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.span.column
    }

    /// The position in the text.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The file's text, which contains secrets.
    pub fn text(&self) -> &KubeconfigText {
        &self.text
    }
}

impl MergedKubeconfig {
    /// The names of the selected context, cluster and user.
    ///
    /// # Errors
    /// An entry requested by name does not exist, or no context is selected.
    pub fn selected_names(&self, overrides: &Overrides) -> Result<SelectedNames, ConfigErrors> {
        let effective =
            self.selection(overrides).map_err(|error| ConfigErrors::missing_entry(error, self))?;
        match effective.context.filter(|_| effective.context_exists) {
            Some(context) => {
                Ok(SelectedNames { context, cluster: effective.cluster_name, user: effective.user_name })
            }
            None => Err(ConfigErrors::missing_entry(ValidationError::NoConfiguration, self)),
        }
    }
}
