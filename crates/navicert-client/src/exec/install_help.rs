//! What to tell people who do not have the plugin, and not too often (client-credentials.md C322).

use std::time::Duration;

/// How often it may be said.
const THRESHOLD: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60 * 60);

const DOCUMENTATION: &str =
    "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins";

/// The text for a command, with the kubeconfig's own hint, which has been cleaned for a terminal.
pub(super) fn text(command: &str, hint: &str) -> String {
    let mut text = format!(
        "The kubeconfig gets its credential from the plugin {command}, which does not seem to be installed.\n\
         See {DOCUMENTATION} about credential plugins."
    );
    if !hint.is_empty() {
        text.push_str("\n\n");
        text.push_str(hint);
    }
    text
}

/// Says yes a number of times in a while. The while begins with the first question, and again with the first that
/// comes when it is over.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    threshold: u32,
    window: Duration,
    begun: Option<Duration>,
    asked: u32,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance::new(THRESHOLD, WINDOW)
    }
}

impl Allowance {
    pub(super) fn new(threshold: u32, window: Duration) -> Self {
        Allowance { threshold, window, begun: None, asked: 0 }
    }

    /// Asks, at this reading of the monotonic clock.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let is_over = |begun: Duration| now.saturating_sub(begun) >= self.window;
        if self.begun.is_none_or(is_over) {
            self.begun = Some(now);
            self.asked = 0;
        }
        self.asked = self.asked.saturating_add(1);
        self.asked <= self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C322, T11
    #[test]
    fn help_is_given_so_often_in_a_while() {
        let given = |threshold, window, step: u64| {
            let mut allowance = Allowance::new(threshold, Duration::from_secs(window));
            (0..10).filter(|call| allowance.take(Duration::from_secs(call * step))).count()
        };
        assert_eq!(given(2, 1, 0), 2, "ten calls at once");
        assert_eq!(given(2, 5, 1), 4, "a call a second, a while of five");
    }

    // C322
    #[test]
    fn help_ends_with_the_hint_of_the_kubeconfig() {
        assert!(text("p", "").ends_with(" about credential plugins."));
        assert!(text("p", "brew install p").ends_with("credential plugins.\n\nbrew install p"));
        assert!(text("p", "").contains(DOCUMENTATION));
    }
}
