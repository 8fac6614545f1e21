//! The proxy on the way to the server: which setting names it, and why it cannot be used.

use std::fmt;

use super::DoctorInputs;
use super::connection::{ProbeError, Target, printable};
use super::kubeconfig::quoted;
use crate::kubeconfig::Effective;
use crate::transport::{
    BuildError, ProxyChoice, ProxyEnvironment, ProxyError, TransportError, TransportSettings,
};

/// A proxy that requests go through, and the setting that names it.
pub(super) struct UsedProxy {
    /// Without user information.
    address: String,
    /// `HTTPS_PROXY`, or the cluster's `proxy-url`.
    setting: String,
    from_environment: bool,
}

impl fmt::Display for UsedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", quoted(&self.address), self.setting)
    }
}

/// The proxy that requests to the server go through.
pub(super) fn in_use(
    inputs: &DoctorInputs,
    effective: &Effective,
    settings: &TransportSettings,
) -> Result<Option<UsedProxy>, BuildError> {
    let Some(proxy) = settings.proxy_in_use()? else { return Ok(None) };
    let from_environment = matches!(settings.proxy, ProxyChoice::Environment(_));
    let setting = if from_environment {
        let environment = &inputs.client_context.environment;
        let lookup = |name: &str| Some(environment.variable(name)?.to_string_lossy().into_owned());
        ProxyEnvironment::variable(effective.is_https(), lookup).to_owned()
    } else {
        format!("`proxy-url` of cluster {}", quoted(&effective.cluster_name))
    };
    Ok(Some(UsedProxy { address: proxy.address(), setting, from_environment }))
}

/// Text and fix if the proxy is the cause of an error; `None` if the server behind it is.
pub(super) async fn explain(
    target: &Target<'_>,
    proxy: &UsedProxy,
    error: &TransportError,
) -> Option<(String, String)> {
    let (address, setting) = (quoted(&proxy.address), &proxy.setting);
    let (host, port) = target.host_and_port();
    let server = quoted(&format!("{host}:{port}"));
    let avoid = match proxy.from_environment {
        true => format!(", or add {} to NO_PROXY", quoted(&host)),
        false => String::new(),
    };
    let to_do = match error {
        TransportError::Lookup { .. } => {
            format!("correct {setting}: the host of proxy {address} does not resolve")
        }
        TransportError::Connect { .. } | TransportError::ConnectTimeout { .. } => {
            format!("correct {setting}: proxy {address} does not accept connections")
        }
        TransportError::Proxy { source: ProxyError::Credentials, .. } => {
            format!("put the proxy's user name and password into {setting}")
        }
        TransportError::Proxy { source: ProxyError::Rejected(_), .. } => {
            format!("check that proxy {address} ({setting}) may and can connect to {server}{avoid}")
        }
        TransportError::Proxy { .. } => format!("correct {setting}: {address} is not a proxy"),
        TransportError::Handshake { .. } | TransportError::HandshakeTimeout { .. }
            if proxy.address.starts_with("https:") && fails_itself(target, proxy).await =>
        {
            format!("correct {setting}: TLS with proxy {address} fails")
        }
        _ => return None,
    };
    let text = printable(error);
    let origin = match text.contains(&proxy.address) {
        true => format!("from {setting}"),
        false => format!("proxy {address} from {setting}"),
    };
    Some((format!("{text} ({origin})"), to_do))
}

/// Whether TLS with the proxy itself fails.
async fn fails_itself(target: &Target<'_>, proxy: &UsedProxy) -> bool {
    let settings = TransportSettings {
        server: proxy.address.clone(),
        tls_server_name: String::new(),
        proxy: ProxyChoice::None,
        ..target.settings.clone()
    };
    let failed = target.probe(settings).await.err();
    matches!(
        failed,
        Some(ProbeError::Transport(
            TransportError::Handshake { .. } | TransportError::HandshakeTimeout { .. }
        ))
    )
}
