//! Both sides of a comparison: each decides on the same tokens with its own configuration and profile.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use navicert_types::Timestamp;
use serde_json::Value;

use super::DiffSide;
use super::tokens::{KeyVariant, TokenSigner};
use crate::authenticator::Authenticators;
use crate::config::{CompiledConfig, CompiledIssuer, ConfigError, LoadedConfig, load_excluding_issuers};
use crate::explain::{UpstreamDecision, upstream_decision};
use crate::given_keys::{key_set, static_keys};
use crate::jwks::{KeySet, KeySource, KeysUnavailable};
use crate::model::AuthnRequest;
use crate::model::outcome::{AuthnOutcome, RefusalClass};
use crate::profile::AuthnProfile;
use crate::report::{OutcomeReport, ReportedUser};

/// Returns the key set document of an issuer.
type KeyDocuments = Box<dyn Fn(&CompiledIssuer) -> Option<String>>;

/// One side, ready to decide.
pub(super) struct SideAuthenticator {
    authenticators: Authenticators,
    profile: AuthnProfile,
    /// The key sets of a search.
    keys: Option<Arc<SelectableKeys>>,
    documents: KeyDocuments,
    /// The texts of all expressions, longest first: log lines quote them.
    expressions: Vec<String>,
}

/// The key sets of a search, of which one is in use.
struct SelectableKeys {
    sets: Vec<(Result<Arc<KeySet>, KeysUnavailable>, String)>,
    selected: AtomicUsize,
}

/// The decision of one side on one token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComparableDecision {
    pub(super) outcome: OutcomeReport,
    /// The class of a rejection.
    pub(super) class: Option<RefusalClass>,
    /// What is logged for a token that is not accepted, if its words are known.
    pub(super) log: Option<String>,
    /// The same without the texts of expressions, which mean the same when they are written differently.
    pub(super) log_template: Option<String>,
}

impl SideAuthenticator {
    /// Loads the configuration of a side.
    pub(super) fn load(side: &DiffSide<'_>) -> Result<LoadedConfig, ConfigError> {
        load_excluding_issuers(side.config, &side.profile, &side.navicert_config.disallowed_issuers)
    }

    /// An authenticator with the key sets of a search.
    pub(super) fn new(mut compiled: CompiledConfig, side: &DiffSide<'_>, signer: &TokenSigner) -> Self {
        // The algorithm that signs here is unrelated to the issuer's.
        let mut settings = side.navicert_config.clone();
        settings.issuers.iter_mut().for_each(|issuer| issuer.allowed_algorithms = None);
        settings.apply_known(&mut compiled);
        let set = |variant: KeyVariant| {
            let body = signer.key_set(variant).to_string();
            let parsed = KeySet::parse(body.as_bytes(), &side.profile).map(Arc::new);
            (parsed.map_err(|error| KeysUnavailable::Failed(error.to_string())), body)
        };
        let sets = KeyVariant::all().map(set).collect();
        let keys = Arc::new(SelectableKeys { sets, selected: AtomicUsize::new(0) });
        let expressions = expressions(&compiled);
        let (source, documents) = (Arc::clone(&keys), Arc::clone(&keys));
        let authenticators =
            Authenticators::new(compiled, move |_| Arc::clone(&source) as Arc<dyn KeySource>);
        let documents: KeyDocuments = Box::new(move |_| documents.body());
        SideAuthenticator { authenticators, profile: side.profile, keys: Some(keys), documents, expressions }
    }

    /// An authenticator with given keys: see `batch::eval_line`.
    pub(super) fn with_given_keys(side: &DiffSide<'_>, jwks: &Value) -> Result<Self, ConfigError> {
        let mut compiled = SideAuthenticator::load(side)?.compiled;
        side.navicert_config.apply_known(&mut compiled);
        let expressions = expressions(&compiled);
        let source = |issuer: &CompiledIssuer| -> Arc<dyn KeySource> {
            Arc::new(static_keys(jwks, &issuer.url, &side.profile))
        };
        let authenticators = Authenticators::new(compiled, source);
        let jwks = jwks.clone();
        let documents: KeyDocuments = Box::new(move |issuer| key_set(&jwks, &issuer.url));
        Ok(SideAuthenticator { authenticators, profile: side.profile, keys: None, documents, expressions })
    }

    /// Decides on a token of a search.
    pub(super) fn decide_with(&self, token: &str, keys: KeyVariant, now: Timestamp) -> ComparableDecision {
        if let Some(selectable) = &self.keys {
            selectable.selected.store(keys.index(), Ordering::Relaxed);
        }
        self.decide(token, now)
    }

    /// Decides on a token.
    pub(super) fn decide(&self, token: &str, now: Timestamp) -> ComparableDecision {
        let request = AuthnRequest::new(token, now);
        let outcome = self.authenticators.authenticate(&request);
        self.decision(&outcome, &request)
    }

    fn decision(&self, outcome: &AuthnOutcome, request: &AuthnRequest<'_>) -> ComparableDecision {
        let class = match outcome {
            AuthnOutcome::Rejected(rejection) => Some(rejection.refusal.class()),
            _ => None,
        };
        let log = match outcome {
            AuthnOutcome::Authenticated(_) => None,
            _ if self.profile.is_kube() => {
                match upstream_decision(&self.authenticators, request, &self.documents) {
                    UpstreamDecision::Rejects(Some(line)) => Some(line.shown()),
                    _ => None,
                }
            }
            AuthnOutcome::NoOpinion(why) => Some(why.to_string()),
            AuthnOutcome::Rejected(rejection) => Some(rejection.to_string()),
        };
        let log_template = log.as_ref().map(|log| {
            let without = |log: String, text: &String| log.replace(&format!("'{text}'"), "'…'");
            self.expressions.iter().fold(log.clone(), without)
        });
        ComparableDecision { outcome: OutcomeReport::from(outcome), class, log, log_template }
    }
}

impl ComparableDecision {
    /// The user, if the token is accepted.
    pub(super) fn user(&self) -> Option<&ReportedUser> {
        match &self.outcome {
            OutcomeReport::Authenticated { user } => Some(user),
            _ => None,
        }
    }
}

impl SelectableKeys {
    fn selected(&self) -> Option<&(Result<Arc<KeySet>, KeysUnavailable>, String)> {
        self.sets.get(self.selected.load(Ordering::Relaxed))
    }

    fn body(&self) -> Option<String> {
        self.selected().map(|(_, body)| body.clone())
    }
}

impl KeySource for SelectableKeys {
    fn current(&self) -> Result<Arc<KeySet>, KeysUnavailable> {
        self.selected().map_or(Err(KeysUnavailable::NotReady), |(keys, _)| keys.clone())
    }
}

impl fmt::Debug for SelectableKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectableKeys").field("sets", &self.sets.len()).finish_non_exhaustive()
    }
}

/// The texts of all expressions, longest first.
fn expressions(compiled: &CompiledConfig) -> Vec<String> {
    let all = compiled.authenticators.iter().flat_map(super::constants::expressions);
    let mut texts: Vec<String> = all.map(|expression| expression.text.clone()).collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    texts
}
