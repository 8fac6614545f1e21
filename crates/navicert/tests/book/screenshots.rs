//! Draws docs/screenshots/*.svg: terminals with what a transcript shows, which a test has compared with the program.

use std::fmt::Write as _;

use navicert_testkit::cli::transcript::check_generated;

use super::{read, workspace};

/// A picture, the transcript it is drawn from, and the command in it.
const SCREENSHOTS: [(&str, &str, &str); 3] = [
    ("doctor", "doctor/unknown-token", "navicert doctor"),
    (
        "authn-explain",
        "authn-explain",
        "navicert authn explain --config authn.yaml --jwks keys.json --now 1800000000 --token-file audience.jwt",
    ),
    (
        "image-explain",
        "image",
        "navicert image explain registry.example/team/app:v1 --config config.yaml --bin-dir bin",
    ),
];

const COLUMNS: usize = 88;
const MARGIN: usize = 14;
const LINE: usize = 18;
/// Width of a letter, in tenths of a pixel.
const LETTER: usize = 79;

const STYLE: &str = "\
  .panel{fill:#161b22;stroke:#30363d}text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;\
fill:#e6edf3;white-space:pre}.command{fill:#79c0ff;font-weight:600}.PASS{fill:#3fb950}.FAIL{fill:#ff7b72;font-weight:600}\
.WARN{fill:#d29922}.SKIP{fill:#8b949e}.todo{fill:#ffa657;font-weight:600}";

#[test]
fn screenshots_show_what_transcripts_show() {
    let book = read("docs/README.md");
    for (name, transcript, command) in SCREENSHOTS {
        let text = read(&format!("crates/navicert/tests/transcripts/{transcript}.md"));
        let (_, session) =
            text.split_once(&format!("\n$ {command}\n")).unwrap_or_else(|| panic!("{transcript}"));
        let is_end =
            |line: &&str| line.starts_with("$ ") || line.starts_with("```") || line.starts_with("[exit");
        let lines: Vec<&str> = session.lines().take_while(|line| !is_end(line)).collect();
        let path = workspace().join(format!("docs/screenshots/{name}.svg"));
        check_generated(&path, &draw(command, &lines));
        assert!(book.contains(&format!("](screenshots/{name}.svg)")), "docs/README.md does not show {name}");
    }
}

fn draw(command: &str, lines: &[&str]) -> String {
    // The options that make a transcript repeatable are not what a user types.
    let command = command.replace(" --now 1800000000", "");
    let mut rows: Vec<(String, String)> =
        wrap(&format!("$ {command}")).into_iter().map(|row| ("command".to_owned(), row)).collect();
    for line in lines {
        let line = line.replace("[PORT]", "6443").replace("[DIRECTORY]/", "");
        let class = class(&line);
        rows.extend(wrap(&line).into_iter().map(|row| (class.to_owned(), row)));
    }
    let (width, height) = (2 * MARGIN + COLUMNS * LETTER / 10, 2 * MARGIN + rows.len() * LINE);
    let mut body = String::new();
    for (index, (class, row)) in rows.iter().enumerate().filter(|(_, (_, row))| !row.is_empty()) {
        let y = MARGIN + 13 + index * LINE;
        let (word, rest) = match class.as_str() {
            "PASS" | "FAIL" | "WARN" | "SKIP" if row.starts_with(class) => row.split_at(4),
            _ => ("", row.as_str()),
        };
        let class = if word.is_empty() { class } else { "" };
        let class = if class.is_empty() || ["PASS", "SKIP"].contains(&class) {
            String::new()
        } else {
            format!(" class=\"{class}\"")
        };
        let word =
            if word.is_empty() { String::new() } else { format!("<tspan class=\"{word}\">{word}</tspan>") };
        let _ = writeln!(
            body,
            "<text{class} x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\">{word}{}</text>",
            escape(rest)
        );
    }
    let label = escape(&command);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{label}\">\n<style>\n{STYLE}\n</style>\n<title>{label}</title>\n<rect class=\"panel\" x=\"0.5\" y=\"0.5\" \
         width=\"{}\" height=\"{}\" rx=\"8\"/>\n{body}</svg>\n",
        width - 1,
        height - 1,
    )
}

fn class(line: &str) -> &'static str {
    let known = ["PASS", "FAIL", "WARN", "SKIP"].into_iter().find(|word| line.starts_with(word));
    known.unwrap_or(if line.starts_with("to do: ") { "todo" } else { "" })
}

/// Breaks a line at spaces, as far as the terminal goes; what follows is indented.
fn wrap(line: &str) -> Vec<String> {
    let mut rows = vec![String::new()];
    for (index, word) in line.split(' ').enumerate() {
        let row = rows.last_mut().unwrap();
        if index > 0 && row.chars().count() + 1 + word.chars().count() > COLUMNS {
            rows.push(format!("  {word}"));
        } else {
            if index > 0 {
                row.push(' ');
            }
            row.push_str(word);
        }
    }
    rows
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
