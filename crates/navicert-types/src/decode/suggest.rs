//! Suggests the known field for a misspelled one.

/// The known name that differs in case or separators only, or in at most two letters.
pub fn closest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let folded = fold(unknown);
    let same = known.iter().find(|name| fold(name) == folded);
    let near = || {
        let allowed = if unknown.len() < 4 { 1 } else { 2 };
        let distances = known.iter().map(|name| (distance(unknown, name, allowed), name));
        distances
            .filter(|(distance, _)| *distance <= allowed)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name)
    };
    same.or_else(near).copied()
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// The edit distance, or any value above `limit` if it exceeds `limit`.
fn distance(left: &str, right: &str, limit: usize) -> usize {
    let right: Vec<char> = right.chars().collect();
    if left.len() > 64 || left.chars().count().abs_diff(right.len()) > limit {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, c) in left.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(index + 1);
        for ((pair, other), last) in row.windows(2).zip(&right).zip(0..) {
            let [diagonal, above] = pair else { continue };
            let beside = next.get(last).copied().unwrap_or(usize::MAX - 1);
            next.push((diagonal + usize::from(c != *other)).min(above + 1).min(beside + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_close_names_only() {
        let known = ["audiences", "url", "certificateAuthority", "jwt"];
        let cases = [
            ("audience", Some("audiences")),
            ("JWT", Some("jwt")),
            ("Url", Some("url")),
            ("urk", Some("url")),
            ("certificate-authority", Some("certificateAuthority")),
            ("certificatAuthorty", Some("certificateAuthority")),
            ("metadata", None),
            ("a", None),
            ("", None),
        ];
        for (unknown, expected) in cases {
            assert_eq!(closest(unknown, &known), expected, "{unknown}");
        }
    }
}
