//! The user of `--context`, or of the current context of `--kubeconfig`.

use std::path::PathBuf;

use navicert_login::args::ParsedFlags;
use navicert_login::kubeconfig_user::KubeconfigUser;
use navicert_login::{Invocation, LoginContext, LoginError};

use super::context;
use crate::command::connect;
use crate::env::Environment;

/// A user of the kubeconfig.
pub(super) struct SelectedUser {
    /// The context's name.
    name: String,
    /// What it is.
    pub(super) user: KubeconfigUser,
    /// The context of a run with this user.
    pub(super) context: LoginContext,
}

impl SelectedUser {
    /// Why there is no session of this program.
    pub(super) fn not_a_login(&self) -> String {
        let what = match &self.user {
            KubeconfigUser::Other(what) => what.as_str(),
            _ => "kubelogin, whose sessions are its own",
        };
        format!("context `{}` does not use navicert login: it uses {what}", self.name)
    }
}

/// The selected user; `None` if no flag names a context.
pub(super) fn read(
    flags: &ParsedFlags,
    environment: &Environment,
) -> Result<Option<SelectedUser>, LoginError> {
    let (name, file) = (flags.filled("context"), flags.filled("kubeconfig").map(PathBuf::from));
    if name.is_none() && file.is_none() {
        return Ok(None);
    }
    let mut options = connect::located(file.as_deref(), environment);
    if let Some(name) = name {
        options = options.context(name);
    }
    let config = options.resolve().map_err(|errors| LoginError::Kubeconfig(errors.to_string()))?;
    let user = KubeconfigUser::read(&config, &environment.inherited, environment.home.as_deref())?;
    let mut context = context(environment, Invocation::ByHand);
    if let KubeconfigUser::Login(login) = &user {
        context.environment = login.environment(&context.environment);
    }
    let name = config.context().unwrap_or_default().to_owned();
    Ok(Some(SelectedUser { name, user, context }))
}
