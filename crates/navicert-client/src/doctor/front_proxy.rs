//! The last step for a front proxy's context: whether the server accepts identity headers from its certificate, and only those.

use http::HeaderName;

use super::api_server::ServerKind;
use super::kubeconfig::quoted;
use super::rejection::Sent;
use super::report::{DoctorStep, ReportBuilder};
use crate::front_proxy::{FrontProxyTrust, front_proxy_trust};
use crate::transport::Transport;
use crate::whoami::WhoamiError;

/// Why a server may not have started.
// V7
pub(super) const NOT_STARTED: &str = "; kube-apiserver 1.35 and later does not start if --requestheader-client-ca-file and \
    --client-ca-file share a certificate and --requestheader-allowed-names is empty";

/// Names a user in the header, and reports what the server makes of it.
///
/// # Errors
/// [`WhoamiError`]: the server did not say.
pub(super) async fn check(
    sent: &Sent<'_>,
    header: &HeaderName,
    transport: &Transport,
    server: &ServerKind,
    report: &mut ReportBuilder<'_>,
) -> Result<(), WhoamiError> {
    if sent.obtained.credential.identity.is_none() {
        let user = quoted(&sent.effective.user_name);
        let text = format!("a front proxy needs a client certificate, and user {user} has none");
        let to_do = format!(
            "give user {user} a client certificate that the API server's --requestheader-client-ca-file vouches for"
        );
        report.fail_request(text, to_do);
        return Ok(());
    }
    let trust = front_proxy_trust(transport, header, version(server)).await?;
    let (text, to_do) = (trust.to_string(), trust.to_do().unwrap_or_default());
    match trust {
        FrontProxyTrust::Trusted => report.pass(DoctorStep::Request, text),
        FrontProxyTrust::Shared(_) => report.warn(DoctorStep::Request, text, to_do),
        FrontProxyTrust::HeadersIgnored { .. } | FrontProxyTrust::Rejected => {
            report.fail_request(text, to_do);
        }
    }
    Ok(())
}

/// Major and minor version, of `v1.34.0`.
fn version(server: &ServerKind) -> Option<(u32, u32)> {
    let ServerKind::Kubernetes(Some(version)) = server else { return None };
    let mut parts = version.strip_prefix('v')?.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_write_them() {
        let read = |text: &str| version(&ServerKind::Kubernetes(Some(text.to_owned())));
        assert_eq!(read("v1.34.0"), Some((1, 34)));
        assert_eq!(read("v1.35.2-eks-113cf36"), Some((1, 35)));
        assert_eq!(read("v1.36.0-alpha.1+abc"), Some((1, 36)));
        assert_eq!(read("1.x"), None);
        assert_eq!(version(&ServerKind::Unknown), None);
    }
}
