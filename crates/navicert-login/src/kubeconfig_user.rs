//! The user of a kubeconfig context, as far as logins are concerned: which session a client with this context uses.

use std::ffi::OsStr;
use std::path::Path;

use navicert_client::Config;
use navicert_plugin::Environment;
use navicert_plugin::resolve::resolve;
use navicert_types::Secret;
use navicert_types::kubeconfig::{Cluster, ExecConfig};

use crate::args::{self, ExtensionDefaults, LoginVerb};
use crate::error::LoginError;
use crate::request::LoginRequest;

/// The name of the program.
const PROGRAM: &str = "navicert";
/// kubectl's name of the plugin, and the program that kubectl starts for it.
const KUBECTL_PLUGIN: (&str, &str) = ("oidc-login", "kubectl-oidc_login");

/// What a context's user is.
#[derive(Debug)]
#[non_exhaustive]
pub enum KubeconfigUser {
    /// The exec plugin `navicert login`, under any of its names.
    Login(Box<LoginUser>),
    /// The exec plugin kubelogin, which takes the same arguments and has sessions of its own.
    Kubelogin(Box<LoginUser>),
    /// Anything else, in words.
    Other(String),
}

/// A user whose exec plugin logs in.
#[derive(Debug)]
pub struct LoginUser {
    /// What the plugin is asked for.
    pub request: LoginRequest,
    /// Whether the plugin is told which API server gets the token.
    pub knows_server: bool,
    /// Variables that the kubeconfig sets for the plugin.
    variables: Vec<(String, Secret<String>)>,
}

impl LoginUser {
    /// The environment of the plugin.
    pub fn environment(&self, inherited: &Environment) -> Environment {
        plugin_environment(inherited, &self.variables)
    }
}

/// The environment of a plugin for which a kubeconfig sets variables.
pub fn plugin_environment(inherited: &Environment, variables: &[(String, Secret<String>)]) -> Environment {
    let is_replaced = |name: &OsStr| variables.iter().any(|(set, _)| name == set.as_str());
    let kept = inherited.iter().filter(|(name, _)| !is_replaced(name));
    let own = variables.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value.expose())));
    kept.chain(own).collect()
}

impl KubeconfigUser {
    /// The user of a configuration.
    ///
    /// # Errors
    /// The arguments of the plugin are not those of a login.
    pub fn read(config: &Config, environment: &Environment, home: Option<&Path>) -> Result<Self, LoginError> {
        let user = config.user();
        let Some(exec) = user.exec.as_ref().filter(|_| config.exec_plugin().is_some()) else {
            let kinds = config.credential_kinds();
            return Ok(KubeconfigUser::Other(match (&user.auth_provider, kinds.as_slice()) {
                (Some(provider), ["auth-provider"]) => format!("the auth provider `{}`", provider.name),
                (_, []) => "no credential".to_owned(),
                (_, kinds) => format!("a static credential ({})", kinds.join(", ")),
            }));
        };
        let Some((is_ours, words)) = login_words(exec, environment) else {
            return Ok(KubeconfigUser::Other(format!("the exec plugin `{}`", exec.command)));
        };
        let (verb, words) = args::split_verb(words, is_alias_command(exec));
        let LoginVerb::Get(form) = verb else {
            return Ok(KubeconfigUser::Other(format!("the exec plugin `{}`", exec.command)));
        };
        let flags = args::parse(words)?;
        let defaults =
            ExtensionDefaults::read(extension(config.cluster()).filter(|_| exec.provide_cluster_info))?;
        let login = Box::new(LoginUser {
            request: args::login_request(form, &flags, home, defaults)?,
            knows_server: exec.provide_cluster_info,
            variables: exec
                .env
                .iter()
                .map(|variable| (variable.name.clone(), variable.value.clone()))
                .collect(),
        });
        Ok(if is_ours { KubeconfigUser::Login(login) } else { KubeconfigUser::Kubelogin(login) })
    }
}

/// Whether the words after the command begin with the verb, as under an alias name.
fn is_alias_command(exec: &ExecConfig) -> bool {
    base_name(exec.command.as_ref()) != PROGRAM
}

/// The words after `login`, and whether the program is this one rather than kubelogin.
fn login_words<'e>(exec: &'e ExecConfig, environment: &Environment) -> Option<(bool, &'e [String])> {
    let words = exec.args.as_slice();
    if args::is_alias(exec.command.as_ref()) {
        return Some((is_navicert(exec.command.as_ref(), environment), words));
    }
    let (first, rest) = words.split_first()?;
    match (base_name(exec.command.as_ref()), first.as_str()) {
        (PROGRAM, "login") => Some((true, rest)),
        ("kubectl", plugin) if plugin == KUBECTL_PLUGIN.0 => {
            Some((is_navicert(KUBECTL_PLUGIN.1.as_ref(), environment), rest))
        }
        _ => None,
    }
}

fn base_name(program: &OsStr) -> &str {
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Whether a name leads to this program: a link whose target has its name.
fn is_navicert(program: &OsStr, environment: &Environment) -> bool {
    let found = resolve(program, environment.variable("PATH")).ok();
    let target = found.and_then(|path| std::fs::canonicalize(path).ok());
    target.is_some_and(|target| base_name(target.as_os_str()) == PROGRAM)
}

/// The cluster's configuration for exec plugins.
fn extension(cluster: &Cluster) -> Option<&navicert_types::tree::Node> {
    let named = cluster.extensions.iter().find(|extension| extension.name == Cluster::EXEC_EXTENSION);
    named.map(|found| &found.extension)
}

#[cfg(test)]
mod tests {
    use navicert_client::ConfigOptions;
    use serde_json::json;

    use super::*;
    use crate::request::Form;

    fn read(user: &serde_json::Value, variables: &[(&str, &str)]) -> KubeconfigUser {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let kubeconfig = navicert_testkit::Kubeconfig::new("https://127.0.0.1:1");
        kubeconfig.user(user.clone()).write(&file);
        let environment: Environment = variables.iter().copied().collect();
        let options = ConfigOptions::new(environment.clone(), dir.path()).kubeconfig(&file);
        KubeconfigUser::read(&options.resolve().unwrap(), &environment, None).unwrap()
    }

    fn exec(command: &str, words: &[&str]) -> serde_json::Value {
        let flags = ["--oidc-issuer-url=https://id.example", "--oidc-client-id=c"];
        let args: Vec<&str> = words.iter().chain(&flags).copied().collect();
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": args,
            "interactiveMode": "Never", "env": [{"name": "NAVICERT_LOGIN_DIR", "value": "/x"}],
        }})
    }

    // L1106, L1114
    #[test]
    fn plugin_of_a_context_is_recognised_by_its_name_and_first_words() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("navicert");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let path = dir.path().to_str().unwrap();
        let variables = [("PATH", path)];
        let link = dir.path().join("kubectl-oidc_login");
        let kubectl = exec("kubectl", &["oidc-login", "get-token"]);
        assert!(matches!(read(&kubectl, &variables), KubeconfigUser::Kubelogin(_)));
        std::os::unix::fs::symlink(&program, &link).unwrap();
        let KubeconfigUser::Login(user) = read(&kubectl, &variables) else { panic!("not a login") };
        assert_eq!(
            (user.request.form, user.request.issuer.as_str()),
            (Form::Compatible, "https://id.example")
        );
        let environment = user.environment(&variables.iter().copied().collect());
        assert_eq!(environment.variable("NAVICERT_LOGIN_DIR"), Some("/x".as_ref()));
        for (command, words) in
            [("/usr/bin/navicert", &["login"][..]), (link.to_str().unwrap(), &["get-token"])]
        {
            let found = read(&exec(command, words), &variables);
            assert!(matches!(found, KubeconfigUser::Login(_)), "{command}: {found:?}");
        }
        for (user, text) in [
            (exec("aws", &["eks"]), "the exec plugin `aws`"),
            (exec("navicert", &["login", "setup"]), "the exec plugin `navicert`"),
            (json!({"token": "canary"}), "a static credential (token)"),
        ] {
            let found = read(&user, &variables);
            assert!(matches!(&found, KubeconfigUser::Other(found) if found == text), "{found:?}");
        }
    }
}
