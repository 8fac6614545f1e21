//! Draws docs/diagrams/*.svg from docs/diagrams/source.txt: one layout, one style, text that a reader can select.

use std::fmt::Write as _;

use navicert_testkit::cli::transcript::check_generated;

use super::{read, workspace};

const WIDTH: usize = 480;
const MARGIN: usize = 16;
const NODE_WIDTH: usize = 222;
const SIDE_LEFT: usize = 286;
const SIDE_WIDTH: usize = WIDTH - MARGIN - SIDE_LEFT;
const LINE: usize = 17;
const PADDING: usize = 9;
/// Average width of a letter, in tenths of a pixel.
const LETTER: usize = 71;

const STYLE: &str = "\
  .panel{fill:#f6f8fa;stroke:#d0d7de}text{font:13px system-ui,-apple-system,\"Segoe UI\",sans-serif;fill:#1f2328}\
.title{font-weight:600;font-size:15px}.label{font-size:12px;fill:#57606a}.line{stroke:#57606a;fill:none;stroke-width:1.4}\
.head{fill:#57606a}.user{fill:#ddf4ff;stroke:#0969da}.navicert{fill:#dafbe1;stroke:#1a7f37}\
.kubernetes{fill:#fbefff;stroke:#8250df}.other{fill:#fff8c5;stroke:#9a6700}\
@media (prefers-color-scheme:dark){.panel{fill:#1c2128;stroke:#444c56}text{fill:#e6edf3}.label{fill:#adbac7}\
.line{stroke:#adbac7}.head{fill:#adbac7}.user{fill:#0c2d6b;stroke:#58a6ff}.navicert{fill:#04391b;stroke:#3fb950}\
.kubernetes{fill:#3c1e70;stroke:#bc8cff}.other{fill:#4b2900;stroke:#d29922}}";

#[derive(Debug, Default)]
struct Diagram {
    name: String,
    title: String,
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    kind: String,
    text: String,
    sides: Vec<Side>,
    /// What crosses to the next node.
    arrow: String,
    /// What comes back from it, or from this node if it is the last.
    answer: String,
}

#[derive(Debug)]
struct Side {
    kind: String,
    label: String,
    text: String,
}

#[test]
fn diagrams_are_drawn_from_their_source() {
    let diagrams = parse(&read("docs/diagrams/source.txt"));
    let names: Vec<&str> = diagrams.iter().map(|diagram| diagram.name.as_str()).collect();
    assert_eq!(names, ["client", "gateway", "proxy", "webhook", "node"]);
    let page = read("docs/paths.md");
    for diagram in &diagrams {
        let link = format!("](diagrams/{}.svg)", diagram.name);
        assert!(page.contains(&link), "docs/paths.md does not show {}", diagram.name);
        let path = workspace().join(format!("docs/diagrams/{}.svg", diagram.name));
        check_generated(&path, &draw(diagram));
    }
}

fn parse(source: &str) -> Vec<Diagram> {
    let mut diagrams: Vec<Diagram> = Vec::new();
    for line in source.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap();
        if word == "diagram" {
            let (name, title) = rest.split_once(": ").unwrap();
            diagrams.push(Diagram { name: name.into(), title: title.into(), nodes: Vec::new() });
            continue;
        }
        let nodes = &mut diagrams.last_mut().unwrap().nodes;
        match word {
            "node" => {
                let (kind, text) = rest.split_once(": ").unwrap();
                nodes.push(Node { kind: kind.into(), text: text.into(), ..Node::default() });
            }
            "side" => {
                let (kind, text) = rest.split_once(": ").unwrap();
                let (label, text) = text.split_once(" > ").unwrap();
                let side = Side { kind: kind.into(), label: label.into(), text: text.into() };
                nodes.last_mut().unwrap().sides.push(side);
            }
            "arrow" => nodes.last_mut().unwrap().arrow = rest.into(),
            "answer" => {
                // Behind a node without an arrow of its own it belongs to the arrow before that node.
                let from_end = usize::from(nodes.last().unwrap().arrow.is_empty());
                nodes.iter_mut().nth_back(from_end).unwrap().answer = rest.into();
            }
            other => panic!("unknown word `{other}` in docs/diagrams/source.txt"),
        }
    }
    diagrams
}

fn draw(diagram: &Diagram) -> String {
    let mut body = String::new();
    let mut y = MARGIN;
    text(&mut body, "title", MARGIN, y + 14, std::slice::from_ref(&diagram.title));
    y += 34;
    for node in &diagram.nodes {
        y = draw_node(&mut body, node, y);
        if !node.arrow.is_empty() {
            y = draw_arrow(&mut body, node, y);
        }
    }
    let height = y + MARGIN;
    let title = escape(&diagram.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{title}\">\n<style>\n{STYLE}\n</style>\n<title>{title}</title>\n<rect class=\"panel\" x=\"0.5\" y=\"0.5\" \
         width=\"{}\" height=\"{}\" rx=\"8\"/>\n{body}</svg>\n",
        WIDTH - 1,
        height - 1,
    )
}

/// A node with its side boxes; returns the bottom of both columns.
fn draw_node(body: &mut String, node: &Node, top: usize) -> usize {
    let lines = wrap(&node.text, NODE_WIDTH - 2 * PADDING);
    let mut side_top = top;
    let mut middles = Vec::new();
    for side in &node.sides {
        let label = wrap(&side.label, SIDE_WIDTH);
        text(body, "label", SIDE_LEFT, side_top + 11, &label);
        let box_top = side_top + label.len() * LINE;
        let lines = wrap(&side.text, SIDE_WIDTH - 2 * PADDING);
        let height = rectangle(body, &side.kind, (SIDE_LEFT, box_top), SIDE_WIDTH, &lines, 0);
        middles.push(box_top + height / 2);
        side_top = box_top + height + 12;
    }
    let side_height = side_top.saturating_sub(top + 12);
    let height = rectangle(body, &node.kind, (MARGIN, top), NODE_WIDTH, &lines, side_height);
    for middle in middles {
        let (from, to) = (MARGIN + NODE_WIDTH, SIDE_LEFT);
        let _ = writeln!(body, "<path class=\"line\" stroke-dasharray=\"4 3\" d=\"M{from} {middle}H{to}\"/>");
    }
    top + height.max(side_height)
}

/// The arrow below a node with what crosses it, and the one back; returns where the next node begins.
fn draw_arrow(body: &mut String, node: &Node, top: usize) -> usize {
    let width = WIDTH - 3 * MARGIN - 64;
    let there = wrap(&node.arrow, width);
    let back = if node.answer.is_empty() { Vec::new() } else { wrap(&node.answer, width) };
    let height = (there.len() + back.len()) * LINE + 16;
    let (down, up, bottom) = (MARGIN + 26, MARGIN + 48, top + height);
    let _ = writeln!(body, "<path class=\"line\" d=\"M{down} {top}V{}\"/>", bottom - 6);
    let _ = writeln!(body, "<path class=\"head\" d=\"M{} {}h10l-5 8z\"/>", down - 5, bottom - 8);
    if !back.is_empty() {
        let _ = writeln!(body, "<path class=\"line\" d=\"M{up} {bottom}V{}\"/>", top + 6);
        let _ = writeln!(body, "<path class=\"head\" d=\"M{} {}h10l-5 -8z\"/>", up - 5, top + 8);
    }
    let left = MARGIN + 64;
    text(
        body,
        "label",
        left,
        top + 19,
        &there.iter().enumerate().map(|(row, line)| mark("↓", row, line)).collect::<Vec<_>>(),
    );
    let back: Vec<String> = back.iter().enumerate().map(|(row, line)| mark("↑", row, line)).collect();
    text(body, "label", left, top + 19 + there.len() * LINE, &back);
    bottom
}

/// The direction in front of the first line of a label.
fn mark(direction: &str, row: usize, line: &str) -> String {
    if row == 0 { format!("{direction} {line}") } else { format!("\u{2003}{line}") }
}

/// A box around lines, at least this high; returns its height.
fn rectangle(
    body: &mut String,
    kind: &str,
    (x, y): (usize, usize),
    width: usize,
    lines: &[String],
    least: usize,
) -> usize {
    let height = (lines.len() * LINE + 2 * PADDING).max(least);
    let _ = writeln!(
        body,
        "<rect class=\"{kind}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>"
    );
    let first = y + (height - lines.len() * LINE) / 2 + 13;
    text(body, "", x + PADDING, first, lines);
    height
}

fn text(body: &mut String, class: &str, x: usize, y: usize, lines: &[String]) {
    for (row, line) in lines.iter().enumerate() {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(body, "<text{class} x=\"{x}\" y=\"{}\">{}</text>", y + row * LINE, escape(line));
    }
}

/// Breaks a text at spaces into lines of this many pixels.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let most = width * 10 / LETTER;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        assert!(word.chars().count() <= most, "`{word}` is wider than its box");
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
