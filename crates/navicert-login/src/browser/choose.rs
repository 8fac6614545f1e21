//! Whether there is a browser, and which programs open it.

use std::ffi::OsStr;
use std::path::Path;

use navicert_plugin::Environment;
use navicert_plugin::resolve::resolve;

use super::words::{BrowserCommandError, split};

/// Programs that would take the terminal.
const TEXT_BROWSERS: [&str; 6] = ["w3m", "lynx", "links", "elinks", "www-browser", "browsh"];
/// Stand for the address in a command.
const PLACEHOLDERS: [&str; 3] = ["%u", "%s", "{}"];
const WSL_RELEASE: &str = "/proc/sys/kernel/osrelease";

/// What the choice of a browser depends on.
#[derive(Clone, Debug)]
pub struct BrowserContext {
    /// `--browser-command`.
    pub command: Option<String>,
    /// The process's environment.
    pub environment: Environment,
    /// The system.
    pub platform: Platform,
}

/// The system, as far as browsers are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Platform {
    /// Linux and other Unix systems with X11 or Wayland.
    Unix,
    /// Linux inside Windows.
    Wsl,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The system that this process runs on.
    pub fn detect(environment: &Environment) -> Self {
        if cfg!(target_os = "macos") {
            return Platform::MacOs;
        }
        if cfg!(windows) {
            return Platform::Windows;
        }
        let release = std::fs::read_to_string(WSL_RELEASE).unwrap_or_default();
        let is_wsl =
            is_set(environment, "WSL_DISTRO_NAME") || release.to_ascii_lowercase().contains("microsoft");
        if is_wsl { Platform::Wsl } else { Platform::Unix }
    }
}

/// A program with its arguments before and after the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    /// The user named this very program: it is not passed over because it uses the terminal.
    is_explicit: bool,
}

impl Candidate {
    fn from_words(mut words: Vec<String>) -> Self {
        let arguments = words.split_off(1.min(words.len()));
        let program = words.pop().unwrap_or_default();
        Candidate { program, arguments, is_explicit: false }
    }

    fn fixed(program: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Candidate { program: program.to_owned(), arguments, is_explicit: false }
    }

    /// The arguments with the address at its placeholders, or at the end if there is none.
    pub(super) fn arguments_for(&self, url: &str) -> Vec<String> {
        let has_placeholder = |argument: &String| PLACEHOLDERS.iter().any(|mark| argument.contains(mark));
        let is_marked = self.arguments.iter().any(has_placeholder);
        // One pass: an address with `%s` in it is not replaced again.
        let replaced = self.arguments.iter().map(|argument| replace_placeholders(argument, url));
        let appended = (!is_marked).then(|| url.to_owned());
        replaced.chain(appended).collect()
    }

    /// Whether the program takes the terminal, by its own name or by that of the program it is a link to.
    // L722
    pub(super) fn is_text_browser(&self, resolved: &Path) -> bool {
        let is_listed = |path: &Path| {
            path.file_name().and_then(OsStr::to_str).is_some_and(|name| TEXT_BROWSERS.contains(&name))
        };
        let target = std::fs::canonicalize(resolved);
        !self.is_explicit && (is_listed(resolved) || target.is_ok_and(|target| is_listed(&target)))
    }
}

fn replace_placeholders(argument: &str, url: &str) -> String {
    let mut replaced = String::new();
    let mut rest = argument;
    while !rest.is_empty() {
        let mark = PLACEHOLDERS.iter().find_map(|mark| rest.strip_prefix(mark));
        if let Some(after) = mark {
            replaced.push_str(url);
            rest = after;
        } else {
            let mut characters = rest.chars();
            replaced.extend(characters.next());
            rest = characters.as_str();
        }
    }
    replaced
}

/// The programs to try in order; `None` if there is no browser.
// L720, L721, L722
pub(super) fn candidates(context: &BrowserContext) -> Result<Option<Vec<Candidate>>, BrowserCommandError> {
    let environment = &context.environment;
    if let Some(command) = context.command.as_deref().filter(|command| !command.is_empty()) {
        return explicit(command, environment).map(|candidate| Some(vec![candidate]));
    }
    let listed = text_variable(environment, "BROWSER");
    let mut candidates: Vec<Candidate> =
        listed.split(':').filter_map(|command| split(command).ok()).map(Candidate::from_words).collect();
    if is_desktop(context) {
        candidates.extend(defaults(context.platform));
    }
    Ok((!listed.is_empty() || !candidates.is_empty()).then_some(candidates))
}

/// `--browser-command`: a program if the whole text names one, otherwise words.
fn explicit(command: &str, environment: &Environment) -> Result<Candidate, BrowserCommandError> {
    let names_program = resolve(command.as_ref(), environment.variable("PATH")).is_ok();
    let candidate = match names_program {
        true => Candidate::fixed(command, &[]),
        false => Candidate::from_words(split(command)?),
    };
    Ok(Candidate { is_explicit: true, ..candidate })
}

/// Whether a window can be shown to the person who started this process.
fn is_desktop(context: &BrowserContext) -> bool {
    let environment = &context.environment;
    let is_remote = ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"].iter().any(|name| is_set(environment, name));
    !is_remote
        && match context.platform {
            Platform::MacOs | Platform::Windows | Platform::Wsl => true,
            Platform::Unix => ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| is_set(environment, name)),
        }
}

fn defaults(platform: Platform) -> Vec<Candidate> {
    match platform {
        Platform::Unix => vec![
            Candidate::fixed("xdg-open", &[]),
            Candidate::fixed("gio", &["open"]),
            Candidate::fixed("x-www-browser", &[]),
            Candidate::fixed("sensible-browser", &[]),
        ],
        Platform::Wsl => vec![
            Candidate::fixed("wslview", &[]),
            // The address has no single quote, and PowerShell expands nothing between two.
            Candidate::fixed("powershell.exe", &["-NoProfile", "-Command", "Start-Process '%s'"]),
        ],
        Platform::MacOs => vec![Candidate::fixed("open", &[])],
        Platform::Windows => vec![Candidate::fixed("rundll32", &["url.dll,FileProtocolHandler"])],
    }
}

fn is_set(environment: &Environment, name: &str) -> bool {
    environment.variable(name).is_some_and(|value| !value.is_empty())
}

fn text_variable<'e>(environment: &'e Environment, name: &str) -> &'e str {
    environment.variable(name).and_then(OsStr::to_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
