//! Two texts as a unified diff.

use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT_LINES: usize = 3;
/// Above this many pairs of lines the changed part is shown as removed and added as a whole.
const MAX_COMPARED: usize = 4_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffLine<'t> {
    Kept(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// The unified diff of two texts, as `diff -u` prints it; empty if they are equal.
pub(super) fn unified(name: &str, exists: bool, old: &str, new: &str) -> String {
    let lines = compare(
        &old.split_inclusive('\n').collect::<Vec<_>>(),
        &new.split_inclusive('\n').collect::<Vec<_>>(),
    );
    let hunks = hunks(&lines);
    if hunks.is_empty() {
        return String::new();
    }
    let before = if exists { name } else { "/dev/null" };
    let mut text = format!("--- {before}\n+++ {name}\n");
    for hunk in hunks {
        write_hunk(&mut text, &lines, hunk);
    }
    text
}

/// The ranges of lines to show: every change with the lines around it.
fn hunks(lines: &[DiffLine<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if matches!(line, DiffLine::Kept(_)) {
            continue;
        }
        let range = index.saturating_sub(CONTEXT_LINES)..(index + 1 + CONTEXT_LINES).min(lines.len());
        match hunks.last_mut() {
            Some(last) if last.end >= range.start => last.end = range.end,
            _ => hunks.push(range),
        }
    }
    hunks
}

fn write_hunk(text: &mut String, lines: &[DiffLine<'_>], hunk: std::ops::Range<usize>) {
    let is_old = |line: &&DiffLine<'_>| !matches!(line, DiffLine::Added(_));
    let is_new = |line: &&DiffLine<'_>| !matches!(line, DiffLine::Removed(_));
    let before = lines.get(..hunk.start).unwrap_or_default();
    let shown = lines.get(hunk).unwrap_or_default();
    let position = |skipped: usize, count: usize| {
        let first = if count == 0 { skipped } else { skipped + 1 };
        if count == 1 { first.to_string() } else { format!("{first},{count}") }
    };
    let old = position(before.iter().filter(is_old).count(), shown.iter().filter(is_old).count());
    let new = position(before.iter().filter(is_new).count(), shown.iter().filter(is_new).count());
    // Writing to a String cannot fail.
    let _ = writeln!(text, "@@ -{old} +{new} @@");
    for line in shown {
        let (sign, line) = match line {
            DiffLine::Kept(line) => (' ', line),
            DiffLine::Removed(line) => ('-', line),
            DiffLine::Added(line) => ('+', line),
        };
        let content = line.trim_end_matches(['\n', '\r']);
        let _ = writeln!(text, "{sign}{content}");
        if !line.ends_with('\n') {
            text.push_str("\\ No newline at end of file\n");
        }
    }
}

/// The lines of both texts in order: the longest common subsequence is kept.
fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffLine<'t>> {
    let prefix = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let rest = |lines: &[&'t str]| lines.get(prefix..).unwrap_or_default().to_vec();
    let (old_rest, new_rest) = (rest(old), rest(new));
    let suffix =
        old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let middle = |lines: &[&'t str]| lines.get(..lines.len() - suffix).unwrap_or_default().to_vec();
    let mut lines: Vec<DiffLine<'t>> = old.iter().take(prefix).map(|line| DiffLine::Kept(line)).collect();
    lines.extend(compare_middle(&middle(&old_rest), &middle(&new_rest)));
    lines.extend(old_rest.iter().skip(old_rest.len() - suffix).map(|line| DiffLine::Kept(line)));
    lines
}

fn compare_middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffLine<'t>> {
    let removed = old.iter().map(|line| DiffLine::Removed(line));
    if old.len().saturating_mul(new.len()) > MAX_COMPARED {
        return removed.chain(new.iter().map(|line| DiffLine::Added(line))).collect();
    }
    // Length of the longest common subsequence of what follows each pair of lines.
    let width = new.len() + 1;
    let mut lengths = vec![0_usize; (old.len() + 1) * width];
    let at = |lengths: &[usize], row: usize, column: usize| {
        lengths.get(row * width + column).copied().unwrap_or_default()
    };
    for (row, one) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            let length = match one == other {
                true => at(&lengths, row + 1, column + 1) + 1,
                false => at(&lengths, row + 1, column).max(at(&lengths, row, column + 1)),
            };
            if let Some(place) = lengths.get_mut(row * width + column) {
                *place = length;
            }
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    loop {
        match (old.get(row), new.get(column)) {
            (Some(one), Some(other)) if one == other => {
                lines.push(DiffLine::Kept(one));
                (row, column) = (row + 1, column + 1);
            }
            (Some(one), other)
                if other.is_none() || at(&lengths, row + 1, column) >= at(&lengths, row, column + 1) =>
            {
                lines.push(DiffLine::Removed(one));
                row += 1;
            }
            (_, Some(other)) => {
                lines.push(DiffLine::Added(other));
                column += 1;
            }
            _ => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_each_change_with_three_lines_around_it() {
        let old: String = (1..=20).map(|number| format!("{number}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("17\n", "").replace("20\n", "20");
        assert_eq!(
            unified("f", true, &old, &new),
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
             @@ -14,7 +14,6 @@\n 14\n 15\n 16\n-17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n"
        );
        assert_eq!(unified("f", true, &old, &old), "");
        assert_eq!(unified("f", false, "", "a\nb\n"), "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(unified("f", true, "a\n", ""), "--- f\n+++ f\n@@ -1 +0,0 @@\n-a\n");
    }
}
