//! AWS shared files, `~/.aws/config` and `~/.aws/credentials`: keys, roles with a source profile, web identity, and
//! `credential_process`.

mod ini;

use std::path::{Path, PathBuf};
use std::time::Duration;

use navicert_plugin::{Command, Policy, ProcessGroup, ProcessRunner, Runner, Stderr};
use navicert_types::Secret;

use super::{AwsCredentials, CredentialsDocument, SourceResult, session_name};
use crate::context::ProviderContext;
use crate::ecr::endpoint::Endpoints;
use crate::ecr::{path_or_home, sts};
use crate::error::RegistryError;
use ini::{Profiles, Section};

/// Maximum length of a `source_profile` chain.
const MAX_SOURCE_PROFILES: usize = 5;
/// Time limit of a `credential_process`.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) fn find(context: &ProviderContext, endpoints: &Endpoints) -> SourceResult {
    let chosen = context.variable("AWS_PROFILE").or_else(|| context.variable("AWS_DEFAULT_PROFILE"));
    let name = chosen.unwrap_or("default");
    let profiles = load(context)?;
    let Some(section) = profiles.section(name) else {
        return match chosen {
            Some(_) => Err(RegistryError::Environment(format!("unknown profile `{name}` in AWS_PROFILE"))),
            None => Ok(Err("no profile found".to_owned())),
        };
    };
    let files = ProfileResolver { context, endpoints, profiles: &profiles };
    match files.credentials(name, section, 0)? {
        Some(credentials) => Ok(Ok(credentials)),
        None => Ok(Err(format!("profile `{name}` has no credentials"))),
    }
}

fn load(context: &ProviderContext) -> Result<Profiles, RegistryError> {
    let mut profiles = Profiles::default();
    let files = [
        ("AWS_CONFIG_FILE", ".aws/config", true),
        ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", false),
    ];
    for (variable, default, is_config) in files {
        let Some(path) = path_or_home(context, variable, default) else { continue };
        if path.exists() {
            profiles.add(context.read_file(&path)?.expose(), is_config);
        } else if context.variable(variable).is_some() {
            context.journal.note("identity", format!("profile: `{}` not found", path.display()));
        }
    }
    Ok(profiles)
}

struct ProfileResolver<'a> {
    context: &'a ProviderContext,
    endpoints: &'a Endpoints,
    profiles: &'a Profiles,
}

impl ProfileResolver<'_> {
    /// Credentials of a profile; `None` if it configures none.
    fn credentials(
        &self,
        name: &str,
        section: &Section,
        depth: usize,
    ) -> Result<Option<AwsCredentials>, RegistryError> {
        let invalid = |what: &str| RegistryError::Environment(format!("profile `{name}`: {what}"));
        if depth > MAX_SOURCE_PROFILES {
            return Err(invalid("source_profile chain is circular or too deep"));
        }
        // A profile that is its own source contains the keys for its role.
        if let Some(role) = section.get("role_arn")
            && !(depth > 0 && section.get("source_profile") == Some(name))
        {
            return self.role(name, section, role, depth).map(Some);
        }
        if let (Some(id), Some(secret)) =
            (section.get("aws_access_key_id"), section.get("aws_secret_access_key"))
        {
            return Ok(Some(AwsCredentials {
                access_key_id: id.to_owned(),
                secret_access_key: Secret::new(secret.to_owned()),
                session_token: section.get("aws_session_token").map(|token| Secret::new(token.to_owned())),
                expires: None,
            }));
        }
        if let Some(command) = section.get("credential_process") {
            return self.process(name, command).map(Some);
        }
        if section.get("sso_session").or(section.get("sso_start_url")).is_some() {
            return Err(invalid(
                "single sign-on requires an interactive login; give the node a role instead",
            ));
        }
        Ok(None)
    }

    fn role(
        &self,
        name: &str,
        section: &Section,
        role: &str,
        depth: usize,
    ) -> Result<AwsCredentials, RegistryError> {
        let invalid = |what: &str| RegistryError::Environment(format!("profile `{name}`: {what}"));
        let session = section.get("role_session_name").unwrap_or_else(|| session_name(self.context));
        self.context.journal.note("identity", format!("profile `{name}`: role `{role}`"));
        if let Some(file) = section.get("web_identity_token_file") {
            let token = self.context.read_file(Path::new(file))?;
            return sts::assume_role_with_web_identity(self.context, self.endpoints, role, session, &token);
        }
        if section.get("mfa_serial").is_some() {
            return Err(invalid("mfa_serial requires an interactive login"));
        }
        let source = match (section.get("source_profile"), section.get("credential_source")) {
            (Some(source), None) => {
                let found = self
                    .profiles
                    .section(source)
                    .ok_or_else(|| invalid("source_profile names an unknown profile"))?;
                self.credentials(source, found, depth + 1)?
                    .ok_or_else(|| invalid("source_profile has no credentials"))?
            }
            (None, Some(source)) => {
                let found = match source {
                    "Environment" => super::environment::find(self.context)?,
                    "EcsContainer" => super::container::find(self.context)?,
                    "Ec2InstanceMetadata" => super::imds::find(self.context)?,
                    _ => {
                        return Err(invalid(
                            "credential_source is not one of Environment, EcsContainer, Ec2InstanceMetadata",
                        ));
                    }
                };
                found.map_err(|absent| invalid(&format!("credential_source {source}: {absent}")))?
            }
            (Some(_), Some(_)) => {
                return Err(invalid("source_profile and credential_source are mutually exclusive"));
            }
            (None, None) => {
                return Err(invalid(
                    "role_arn without source_profile, credential_source or web_identity_token_file",
                ));
            }
        };
        let external_id = section.get("external_id");
        sts::assume_role(
            self.context,
            self.endpoints,
            &source,
            sts::AssumedRole { arn: role, session, external_id },
        )
    }

    /// Runs a `credential_process` program, for example the IAM Roles Anywhere signing helper.
    fn process(&self, name: &str, command: &str) -> Result<AwsCredentials, RegistryError> {
        const SERVICE: &str = "credential_process";
        let failed =
            |what: &str| RegistryError::Environment(format!("profile `{name}`: credential_process {what}"));
        let mut words =
            split_command_line(command).ok_or_else(|| failed("has an unterminated quote"))?.into_iter();
        let program = words.next().ok_or_else(|| failed("is empty"))?;
        let command = Command::new(PathBuf::from(program), self.context.environment.clone())
            .args(words)
            .stderr(Stderr::Tail(1 << 10))
            .limit(Some(PROCESS_TIMEOUT))
            .process_group(ProcessGroup::NewKilledAtEnd);
        let permitted =
            Policy::AllowAll.permit(command).map_err(|error| failed(&format!("is not allowed: {error}")))?;
        let runner = ProcessRunner::new(std::sync::Arc::clone(&self.context.clock));
        let completed = runner.run(permitted).map_err(|error| failed(&format!("failed: {error}")))?;
        if !completed.exit.is_success() {
            return Err(failed(&format!("exited with {}", completed.exit)));
        }
        self.context.journal.note("identity", format!("profile `{name}`: credential_process"));
        CredentialsDocument::read(SERVICE, completed.stdout.expose())
    }
}

/// Splits a command line at white space, with shell-like quotes and backslashes but no expansion.
fn split_command_line(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().push(characters.next()?),
            (Some(_), inside) => word.get_or_insert_default().push(inside),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, space) if space.is_whitespace() => words.extend(word.take()),
            (None, other) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_command_line_without_shell_expansion() {
        assert_eq!(
            split_command_line(r#"/opt/x --a "b c" 'd "e' f\ g "" $(h)"#).unwrap(),
            ["/opt/x", "--a", "b c", "d \"e", "f g", "", "$(h)"]
        );
        assert_eq!(split_command_line("  ").unwrap(), [""; 0]);
        assert_eq!(split_command_line("a 'b"), None);
        assert_eq!(split_command_line("a \\"), None);
    }
}
