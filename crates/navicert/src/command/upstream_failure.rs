//! Prints why requests through a gateway fail: commands show only that they do, and often several times.

use std::io::{self, Write};

use anstream::AutoStream;
use navicert_server::gateway::upstream_failure::{FailureClass, FailureReceiver, UpstreamFailure};
use navicert_types::redact;

use crate::output::style;

/// Prints every distinct cause on standard error.
pub(super) fn printer() -> FailureReceiver {
    FailureReceiver::new(|failure| {
        let line = format!("{}error:{} {}\n", style::ERROR, style::END, text(failure));
        // If standard error is closed, the cause cannot be shown.
        let _ = AutoStream::auto(io::stderr()).write_all(line.as_bytes());
    })
}

/// The cause, with the command that fixes or diagnoses it where the cause does not say what to do.
fn text(failure: &UpstreamFailure) -> String {
    let cause = redact::terminal(&failure.message);
    match failure.class {
        FailureClass::SlowSigner => format!("{cause}; `navicert signer serve` asks for it once"),
        FailureClass::CredentialRejected | FailureClass::Unreachable => {
            format!("{cause}; run `navicert doctor` to diagnose")
        }
        _ => cause.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use navicert_client::transport::TransportError;

    use super::*;

    #[test]
    fn causes_without_advice_name_the_command_that_helps() {
        let slow = TransportError::SlowSigner { name: "api.example".to_owned(), seconds: 40 };
        let slow = text(&UpstreamFailure::from_transport(&slow).unwrap());
        assert!(slow.contains("signing took 40 s") && slow.contains("`navicert signer serve`"), "{slow}");
        assert!(text(&UpstreamFailure::unauthorized()).ends_with("run `navicert doctor` to diagnose"));
        let rejected = TransportError::CertificateRejected { alert: "\u{1b}[2J".to_owned() };
        let rejected = text(&UpstreamFailure::from_transport(&rejected).unwrap());
        assert!(rejected.contains("U+001B") && !rejected.contains('\u{1b}'), "{rejected}");
    }
}
