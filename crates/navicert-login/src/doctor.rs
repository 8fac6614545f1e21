//! Sessions as `navicert_client::doctor` sees them.

use navicert_client::Config;
use navicert_client::credential::BoxFuture;
use navicert_client::doctor::{FoundSession, InspectLogin, LoginFacts, LoginSessionFacts};

use crate::cache::CacheFolder;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::grant::requested_scopes;
use crate::key::KeyFields;
use crate::kubeconfig_user::{KubeconfigUser, LoginUser};
use crate::provider::{Metadata, ProviderClient};

/// The scope that stands for a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// Examines the session of a kubeconfig's user, and asks its provider for the discovery document.
#[derive(Debug)]
pub struct LoginInspector {
    context: LoginContext,
}

impl LoginInspector {
    /// An inspector with the clock and the environment of a run.
    pub fn new(context: LoginContext) -> Self {
        LoginInspector { context }
    }
}

impl InspectLogin for LoginInspector {
    /// On a thread of its own: files and the keyring are read there, and requests have a runtime of their own.
    fn inspect<'a>(&'a self, config: &'a Config) -> BoxFuture<'a, Option<LoginFacts>> {
        let (context, config) = (self.context.clone(), config.clone());
        let inspecting = tokio::task::spawn_blocking(move || facts(&context, &config));
        Box::pin(async move { inspecting.await.ok().flatten() })
    }
}

fn facts(context: &LoginContext, config: &Config) -> Option<LoginFacts> {
    let (user, is_ours) = match KubeconfigUser::read(config, &context.environment, context.home.as_deref()) {
        Ok(KubeconfigUser::Login(user)) => (user, true),
        Ok(KubeconfigUser::Kubelogin(user)) => (user, false),
        Ok(KubeconfigUser::Other(_)) => return None,
        Err(error) => {
            let mut facts = LoginFacts::new("", "");
            facts.session = LoginSessionFacts::Unusable(error.to_string());
            return Some(facts);
        }
    };
    let mut context = context.clone();
    context.environment = user.environment(&context.environment);
    let mut facts = LoginFacts::new(&user.request.issuer, user.request.command_line());
    facts.knows_server = user.knows_server;
    facts.session = match is_ours {
        true => {
            session(&user, &context).unwrap_or_else(|error| LoginSessionFacts::Unusable(error.to_string()))
        }
        false => LoginSessionFacts::Foreign,
    };
    match discover(&user, &context) {
        Ok(metadata) => {
            let scopes = requested_scopes(&user.request, &metadata);
            facts.requests_refresh_token = scopes.split(' ').any(|scope| scope == OFFLINE_ACCESS);
        }
        Err(error) => facts.discovery_error = Some(error.to_string()),
    }
    Some(facts)
}

fn session(user: &LoginUser, context: &LoginContext) -> Result<LoginSessionFacts, LoginError> {
    let folder = CacheFolder::locate(&user.request, context)?;
    let found = crate::status::session_of(&folder, &user.request, context)?;
    Ok(found.map_or(LoginSessionFacts::Missing, |session| {
        LoginSessionFacts::Found(FoundSession {
            user: session.display,
            expires: session.expires,
            is_fresh: session.is_fresh,
            has_refresh_token: session.has_refresh_token,
            skew_seconds: session.skew_seconds.unwrap_or_default(),
        })
    }))
}

/// The discovery document, from the provider itself. Nothing is kept.
fn discover(user: &LoginUser, context: &LoginContext) -> Result<Metadata, LoginError> {
    let request = &user.request;
    let folder = CacheFolder::without_entries(context)?;
    let key = KeyFields::new(request)?;
    let client = ProviderClient::new(request, context, &folder, &key)?;
    crate::runtime::runtime()?.block_on(Box::pin(client.metadata()))
}
