//! A person with a real browser: Debian's Chromium without a window, driven by npm's `playwright-core`. `scripts/install-tools`
//! installs both.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::node_program::NodeProgram;
use crate::cli::program::Program;
use crate::cli::tools;

/// What the person does with every page that a program opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Fills in every form, and submits it.
    Answer,
    /// Looks at the first page.
    Ignore,
    /// Refuses where a page offers it, else fills in the form.
    Deny,
    /// First visits another page that calls the address again and again, then answers.
    VisitHostilePage,
}

/// The browser, running until dropped, with a profile of its own.
#[derive(Debug)]
pub struct Browser {
    program: NodeProgram,
    opener: PathBuf,
}

impl Browser {
    /// Starts it with its files in `dir`. `None`, reported as skipped, if it is not installed.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(dir: &Path) -> Option<Self> {
        let chromium = tools::installed("chromium", "chromium")?;
        let (fifo, opener) = (dir.join("addresses"), dir.join("open-browser"));
        let made = Program::new("mkfifo").arguments([&fifo]).run().expect("mkfifo starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let arguments = [chromium, dir.join("profile"), fifo.clone()];
        let variables = [("HOME", dir)];
        let program = NodeProgram::start("browser/browser.mjs", "playwright-core", arguments, &variables)?;
        // It is written by another process, because a program that another test starts could inherit the open file.
        let script = format!(
            "printf '%s\\n' '#!/bin/sh' 'echo \"$1\" >{}' >\"$0\" && chmod 755 \"$0\"",
            fifo.display()
        );
        let made =
            Program::new("/bin/sh").arguments(["-c".as_ref(), script.as_ref(), opener.as_os_str()]).run();
        assert!(made.is_ok_and(|made| made.status.success()), "the program that opens the browser");
        let browser = Browser { program, opener };
        browser.tabs().await; // it has started when it answers
        Some(browser)
    }

    /// A program that opens its argument in a tab, for `--browser-command` or `BROWSER`.
    pub fn opener(&self) -> &Path {
        &self.opener
    }

    /// Sets what the person does from now on.
    ///
    /// # Panics
    /// If the browser does not answer.
    pub async fn behave(&self, behaviour: Behaviour) {
        let mode = match behaviour {
            Behaviour::Answer => "fill",
            Behaviour::Ignore => "ignore",
            Behaviour::Deny => "deny",
            Behaviour::VisitHostilePage => "attack",
        };
        self.program.ask(&format!("behave {}", json!({"mode": mode}))).await;
    }

    /// The name and password that the person types.
    ///
    /// # Panics
    /// If the browser does not answer.
    pub async fn be(&self, user: &str, password: &str) {
        self.program.ask(&format!("behave {}", json!({"user": user, "password": password}))).await;
    }

    /// Opens an address in a tab, and returns the report of the page on which the person ended.
    ///
    /// # Panics
    /// If the browser does not answer.
    pub async fn open(&self, url: &str) -> PageReport {
        let answer = self.program.ask(&format!("open {}", json!(url))).await;
        PageReport(answer.get("report").cloned().unwrap_or_default())
    }

    /// The addresses that were opened so far.
    ///
    /// # Panics
    /// If the browser does not answer.
    pub async fn tabs(&self) -> Vec<String> {
        let answer = self.program.ask("tabs").await;
        strings(answer.get("tabs"))
    }

    /// The report of the last tab, when there are this many.
    ///
    /// # Panics
    /// If there are more, or fewer after a few minutes.
    pub async fn last_report(&self, tabs: usize) -> PageReport {
        let answer = self.program.ask(&format!("reports {tabs}")).await;
        let reports = answer.get("reports").and_then(Value::as_array).expect("a list of reports");
        assert_eq!(reports.len(), tabs, "{reports:?}");
        PageReport(reports.last().cloned().unwrap_or_default())
    }

    /// Presses `back` or `reload` in the last tab, or opens its address `again`, and returns what is shown then.
    ///
    /// # Panics
    /// If the browser does not answer.
    pub async fn press(&self, key: &str) -> PageReport {
        let answer = self.program.ask(&format!("press {}", json!(key))).await;
        PageReport(answer.get("page").cloned().unwrap_or_default())
    }

    /// The addresses in the history that the browser keeps on disk. It is started again for that: tabs are closed.
    ///
    /// # Panics
    /// If it cannot be read.
    pub async fn visits(&self) -> Vec<String> {
        let answer = self.program.ask("visits").await;
        strings(answer.get("visits"))
    }
}

/// What a reader, a screen reader and an auditor see of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageReport(pub Value);

impl PageReport {
    /// A text, such as `title`, `lang`, `text` or `url`; empty if it is missing.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number, such as `mains`, `alerts` or `scripts`.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// A list of texts, such as `headings` or `history`.
    pub fn list(&self, name: &str) -> Vec<String> {
        strings(self.0.get(name))
    }

    /// The lowest contrast of a text with the colour scheme `light` or `dark`.
    pub fn contrast(&self, scheme: &str) -> Option<f64> {
        self.0.pointer(&format!("/contrast/{scheme}")).and_then(Value::as_f64)
    }

    /// The addresses that the tab asked for.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.0.get("requests").and_then(Value::as_array);
        let url = |request: &Value| request.get("url").and_then(Value::as_str).map(str::to_owned);
        requests.map(|requests| requests.iter().filter_map(url).collect()).unwrap_or_default()
    }
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
