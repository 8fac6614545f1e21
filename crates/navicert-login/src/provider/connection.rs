//! How the provider of a request is reached: its roots, proxy, client certificate and headers.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use navicert_client::ClientContext;
use navicert_client::credential::ClientIdentity;
use navicert_client::oauth::{OAuthConnection, OAuthHttp, ObserveRequests, RequestSummary};
use navicert_client::transport::{Proxy, ProxyChoice, ProxyEnvironment, Trust};
use navicert_types::error_chain;
use zeroize::Zeroizing;

use crate::context::{LoginContext, Messages};
use crate::error::LoginError;
use crate::key::read_file;
use crate::request::LoginRequest;

/// The verbosity that shows requests.
const SHOWS_REQUESTS: u8 = 2;

/// A client for the provider of a request. Reads the files that the request names, and sends nothing.
pub(super) fn connect(request: &LoginRequest, context: &LoginContext) -> Result<OAuthHttp, LoginError> {
    let connection = &request.connection;
    let mut client = ClientContext::new(context.environment.clone());
    client.clock = Arc::clone(&context.clock);
    let lookup = |name: &str| context.environment.variable(name)?.to_str().map(ToOwned::to_owned);
    let proxy = if connection.proxy_url.is_empty() {
        ProxyChoice::Environment(ProxyEnvironment::read(lookup))
    } else {
        let parsed = Proxy::parse(&connection.proxy_url);
        ProxyChoice::Always(
            parsed.map_err(|error| LoginError::Usage(format!("invalid --proxy-url: {error}")))?,
        )
    };
    let identity = connection.client_certificate.as_ref().map(|(certificate, key)| {
        let identity = ClientIdentity::from_pem(&read_file(certificate)?, &Zeroizing::new(read_file(key)?));
        let failed = |error: navicert_client::credential::IdentityError| LoginError::File {
            path: certificate.display().to_string(),
            why: error_chain(&error),
        };
        identity.map(Arc::new).map_err(failed)
    });
    let mut headers = HeaderMap::new();
    for (name, value) in &connection.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
    let connection = OAuthConnection {
        issuer: request.issuer.clone(),
        trust: trust(request)?,
        proxy,
        tls_server_name: connection.tls_server_name.clone(),
        identity: identity.transpose()?,
        headers,
    };
    let http = OAuthHttp::new(connection, client).timed_by(Arc::clone(&context.timer));
    Ok(match request.verbosity >= SHOWS_REQUESTS {
        true => http.observed_by(Arc::new(ShownRequests(Arc::clone(&context.messages)))),
        false => http,
    })
}

/// The trusted roots of the request.
fn trust(request: &LoginRequest) -> Result<Trust, LoginError> {
    let connection = &request.connection;
    if connection.is_insecure {
        return Ok(Trust::Insecure);
    }
    let mut pem = Vec::new();
    for path in &connection.authorities {
        pem.extend(read_file(path)?);
        pem.push(b'\n');
    }
    for data in &connection.authority_data {
        pem.extend(data);
        pem.push(b'\n');
    }
    Ok(if pem.is_empty() { Trust::System } else { Trust::Pem(pem) })
}

/// Shows each request to the person.
#[derive(Debug)]
struct ShownRequests(Arc<dyn Messages>);

impl ObserveRequests for ShownRequests {
    fn observe(&self, request: RequestSummary<'_>) {
        let RequestSummary { method, host, path, status, elapsed } = request;
        let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        self.0.show(&format!("{method} {host}{path}: {status}, {} ms", elapsed.as_millis()));
    }
}
