//! Whether a person is present, and whether that person may be asked.

use crate::context::{Invocation, LoginContext};
use crate::request::{LoginRequest, PromptWhen};

/// Who may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// A person is at the terminal, or at the client that started the run.
    pub is_present: bool,
    /// A person may be asked to log in.
    pub may_be_asked: bool,
    /// The run was started by hand or with `--force-refresh`: it is never delayed by an earlier failure.
    pub is_explicit: bool,
    /// A person can type an answer on standard input.
    pub can_type: bool,
    /// A person reads standard error.
    pub reads_messages: bool,
}

impl Person {
    /// Decides for a run.
    pub fn decide(request: &LoginRequest, context: &LoginContext) -> Self {
        let by_hand = context.invocation == Invocation::ByHand;
        let is_interactive = matches!(context.invocation, Invocation::Exec { is_interactive: true });
        let stderr = context.terminals.stderr;
        let is_automated = context.text_variable("CI").is_some_and(|value| value == "true" || value == "1");
        let is_present = match is_automated {
            true => by_hand && stderr,
            false => is_interactive || stderr || by_hand,
        };
        let when = context.text_variable("NAVICERT_LOGIN_PROMPT");
        let when = when.and_then(|text| PromptWhen::from_text(&text)).unwrap_or(request.prompt_when);
        let may_be_asked = match when {
            PromptWhen::Terminal => is_present,
            PromptWhen::Interactive => is_present && (is_interactive || by_hand),
            PromptWhen::Always => true,
            PromptWhen::Never => false,
        };
        Person {
            is_present,
            may_be_asked,
            is_explicit: by_hand || request.force_refresh,
            can_type: (is_interactive || by_hand) && context.terminals.stdin && may_be_asked,
            reads_messages: stderr,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use navicert_plugin::Environment;

    use super::*;
    use crate::context::Terminals;
    use crate::request::Form;
    use crate::test_support::Silent;

    fn decide(when: PromptWhen, invocation: Invocation, stderr: bool, variables: &[(&str, &str)]) -> Person {
        let environment: Environment = variables.iter().copied().collect();
        let mut context = LoginContext::new(environment, None, invocation, Arc::new(Silent));
        context.terminals = Terminals { stdin: true, stdout: false, stderr };
        let mut request = LoginRequest::new(Form::Own, "https://i", "c");
        request.prompt_when = when;
        Person::decide(&request, &context)
    }

    // L210, L211
    #[test]
    fn person_is_asked_by_mode_stream_and_environment() {
        use PromptWhen::{Always, Interactive, Never, Terminal};
        let exec = |is_interactive| Invocation::Exec { is_interactive };
        for (when, invocation, stderr, ci, asked) in [
            (Terminal, exec(false), false, "", false),
            (Terminal, exec(false), true, "", true),
            (Terminal, exec(true), false, "", true),
            (Terminal, Invocation::ByHand, false, "", true),
            (Terminal, exec(true), true, "true", false),
            (Terminal, exec(true), true, "1", false),
            (Terminal, exec(true), true, "false", true),
            (Terminal, Invocation::ByHand, true, "true", true),
            (Terminal, Invocation::ByHand, false, "true", false),
            (Interactive, exec(false), true, "", false),
            (Interactive, exec(true), false, "", true),
            (Interactive, Invocation::ByHand, false, "", true),
            (Always, exec(false), false, "", true),
            (Never, Invocation::ByHand, true, "", false),
        ] {
            let person = decide(when, invocation, stderr, &[("CI", ci)]);
            assert_eq!(person.may_be_asked, asked, "{when:?} {invocation:?} stderr {stderr} CI {ci}");
        }
    }

    // L210
    #[test]
    fn variable_overrides_the_flag() {
        let exec = Invocation::Exec { is_interactive: false };
        assert!(!decide(PromptWhen::Always, exec, true, &[("NAVICERT_LOGIN_PROMPT", "never")]).may_be_asked);
        assert!(decide(PromptWhen::Never, exec, false, &[("NAVICERT_LOGIN_PROMPT", "always")]).may_be_asked);
        assert!(!decide(PromptWhen::Never, exec, true, &[("NAVICERT_LOGIN_PROMPT", "odd")]).may_be_asked);
    }
}
