//! Installation help for a missing plugin, rate limited.
// C322

use std::time::Duration;

/// How often help may be printed per window.
const MAX_HELP_PER_WINDOW: u32 = 10;
const HELP_WINDOW: Duration = Duration::from_secs(60 * 60);

const DOCUMENTATION: &str =
    "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins";

/// The help text for a command, with the kubeconfig's install hint, which is already escaped for a terminal.
pub(super) fn message(command: &str, hint: &str) -> String {
    let mut text = format!(
        "The kubeconfig uses the credential plugin {command}, which does not appear to be installed.\n\
         See {DOCUMENTATION} for more about credential plugins."
    );
    if !hint.is_empty() {
        text.push_str("\n\n");
        text.push_str(hint);
    }
    text
}

/// Allows a number of calls per window. A window begins with the first call after the previous one has ended.
#[derive(Clone, Debug)]
pub(super) struct HelpRateLimiter {
    threshold: u32,
    window: Duration,
    window_start: Option<Duration>,
    count: u32,
}

impl Default for HelpRateLimiter {
    fn default() -> Self {
        HelpRateLimiter::new(MAX_HELP_PER_WINDOW, HELP_WINDOW)
    }
}

impl HelpRateLimiter {
    pub(super) fn new(threshold: u32, window: Duration) -> Self {
        HelpRateLimiter { threshold, window, window_start: None, count: 0 }
    }

    /// Takes one call at this reading of the monotonic clock.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let is_over = |begun: Duration| now.saturating_sub(begun) >= self.window;
        if self.window_start.is_none_or(is_over) {
            self.window_start = Some(now);
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count <= self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C322, T11
    #[test]
    fn help_is_rate_limited() {
        let given = |threshold, window, step: u64| {
            let mut allowance = HelpRateLimiter::new(threshold, Duration::from_secs(window));
            (0..10).filter(|call| allowance.take(Duration::from_secs(call * step))).count()
        };
        assert_eq!(given(2, 1, 0), 2, "ten calls at once");
        assert_eq!(given(2, 5, 1), 4, "a call a second, a window of five");
    }

    // C322
    #[test]
    fn help_ends_with_the_kubeconfig_hint() {
        assert!(message("p", "").ends_with(" for more about credential plugins."));
        assert!(message("p", "brew install p").ends_with("credential plugins.\n\nbrew install p"));
        assert!(message("p", "").contains(DOCUMENTATION));
    }
}
