//! The table of whether there is a browser, and which one.

use super::*;

const URL: &str = "http://127.0.0.1:8000/start/x";

fn context(command: Option<&str>, variables: &[(&str, &str)], platform: Platform) -> BrowserContext {
    BrowserContext {
        command: command.map(str::to_owned),
        environment: variables.iter().copied().collect(),
        platform,
    }
}

/// Each candidate as a command line.
fn chosen(command: Option<&str>, variables: &[(&str, &str)], platform: Platform) -> Option<Vec<String>> {
    let candidates = candidates(&context(command, variables, platform)).unwrap()?;
    let show = |candidate: &Candidate| {
        let mut words = vec![candidate.program.clone()];
        words.extend(candidate.arguments_for(URL));
        words.join(" ")
    };
    Some(candidates.iter().map(show).collect())
}

#[test]
fn browser_is_there_only_on_a_desktop_or_if_named() {
    // L720
    const DISPLAY: (&str, &str) = ("DISPLAY", ":0");
    const SSH: (&str, &str) = ("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22");
    for (variables, platform, is_there) in [
        (&[][..], Platform::Unix, false),
        (&[DISPLAY], Platform::Unix, true),
        (&[("DISPLAY", "")], Platform::Unix, false),
        (&[("WAYLAND_DISPLAY", "wayland-0")], Platform::Unix, true),
        // Forwarded X11 shows the window, but a browser on this machine is not the one the person uses.
        (&[DISPLAY, SSH], Platform::Unix, false),
        (&[DISPLAY, ("SSH_TTY", "/dev/pts/1")], Platform::Unix, false),
        (&[DISPLAY, ("SSH_CLIENT", "x")], Platform::Unix, false),
        (&[DISPLAY, ("SSH_CONNECTION", "")], Platform::Unix, true),
        (&[SSH, ("BROWSER", "helper")], Platform::Unix, true),
        (&[("BROWSER", "helper")], Platform::Unix, true),
        (&[("BROWSER", "")], Platform::Unix, false),
        (&[], Platform::Wsl, true),
        (&[SSH], Platform::Wsl, false),
        (&[], Platform::MacOs, true),
        (&[SSH], Platform::MacOs, false),
        (&[], Platform::Windows, true),
    ] {
        assert_eq!(chosen(None, variables, platform).is_some(), is_there, "{variables:?} {platform:?}");
        assert!(chosen(Some("firefox"), variables, platform).is_some(), "--browser-command always counts");
    }
}

#[test]
fn programs_are_tried_in_order() {
    // L722
    let desktop = [("DISPLAY", ":0"), ("BROWSER", "firefox --new-tab %s:chromium --app=%s:plain")];
    let listed = ["firefox --new-tab", "chromium --app="]
        .map(|start| format!("{start}{}{URL}", if start.ends_with('=') { "" } else { " " }));
    let unix =
        ["xdg-open", "gio open", "x-www-browser", "sensible-browser"].map(|start| format!("{start} {URL}"));
    let all: Vec<String> = listed.into_iter().chain([format!("plain {URL}")]).chain(unix).collect();
    assert_eq!(chosen(None, &desktop, Platform::Unix).unwrap(), all);
    let remote = [("SSH_TTY", "/dev/pts/0"), ("BROWSER", "/opt/helper.sh")];
    assert_eq!(chosen(None, &remote, Platform::Unix).unwrap(), [format!("/opt/helper.sh {URL}")]);
    assert_eq!(
        chosen(None, &[], Platform::Wsl).unwrap(),
        [format!("wslview {URL}"), format!("powershell.exe -NoProfile -Command Start-Process '{URL}'"),]
    );
    assert_eq!(chosen(None, &[], Platform::MacOs).unwrap(), [format!("open {URL}")]);
    assert_eq!(
        chosen(None, &[], Platform::Windows).unwrap(),
        [format!("rundll32 url.dll,FileProtocolHandler {URL}")]
    );
    // What the user names is the only one.
    assert_eq!(chosen(Some("mine"), &desktop, Platform::Unix).unwrap(), [format!("mine {URL}")]);
}

#[test]
fn command_is_one_program_if_it_names_one_and_words_otherwise() {
    // L721
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("Program Files").join("chrome.exe");
    std::fs::create_dir(program.parent().unwrap()).unwrap();
    std::fs::copy("/bin/sh", &program).unwrap();
    let path = program.parent().unwrap().to_str().unwrap().to_owned();
    let arguments = |command: &str| {
        let context = context(Some(command), &[("PATH", &path)], Platform::Unix);
        let candidates = candidates(&context).unwrap().unwrap();
        assert_eq!(candidates.len(), 1);
        (candidates[0].program.clone(), candidates[0].arguments_for(URL))
    };
    let whole = program.to_str().unwrap();
    assert_eq!(arguments(whole), (whole.to_owned(), vec![URL.to_owned()]));
    assert_eq!(arguments("chrome.exe"), ("chrome.exe".to_owned(), vec![URL.to_owned()]));
    for (command, expected) in [
        ("chrome.exe --profile-directory='Profile 2'", &["--profile-directory=Profile 2", URL][..]),
        ("chrome.exe %u --new-window", &[URL, "--new-window"]),
        ("chrome.exe --app={}", &["--app=http://127.0.0.1:8000/start/x"]),
        ("chrome.exe '%s'", &[URL]),
        ("chrome.exe $HOME `id`", &["$HOME", "`id`", URL]),
    ] {
        assert_eq!(arguments(command).1, expected, "{command}");
    }
    let open_quote = candidates(&context(Some("chrome.exe 'x"), &[("PATH", &path)], Platform::Unix));
    assert!(open_quote.is_err());
}

#[test]
fn placeholder_in_the_address_is_not_replaced_again() {
    let candidate = Candidate::fixed("p", &["%u"]);
    assert_eq!(candidate.arguments_for("http://h/%s{}%u"), ["http://h/%s{}%u"]);
}

#[test]
fn programs_that_use_the_terminal_are_passed_over_by_name_and_by_link() {
    // L722
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for name in ["w3m", "firefox"] {
        std::fs::copy("/bin/sh", path(name)).unwrap();
    }
    std::os::unix::fs::symlink(path("w3m"), path("alternative")).unwrap();
    std::os::unix::fs::symlink(path("alternative"), path("x-www-browser")).unwrap();
    let is_text = |name: &str| Candidate::fixed(name, &[]).is_text_browser(&path(name));
    assert!(is_text("w3m") && is_text("x-www-browser"));
    assert!(!is_text("firefox"));
    let explicit = Candidate { is_explicit: true, ..Candidate::fixed("w3m", &[]) };
    assert!(!explicit.is_text_browser(&path("w3m")), "the user has said so");
}
