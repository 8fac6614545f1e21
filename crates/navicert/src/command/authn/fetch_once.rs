//! Fetches every document once: the selected profile and the comparison with kube-apiserver share the responses.

use std::sync::{Mutex, MutexGuard, PoisonError};

use navicert_authn::config::Egress;
use navicert_authn::jwks::{
    BoxFuture, Fetch, FetchError, FetchLimits, FetchRequest, FetchResponse, FetchStage,
};
use navicert_types::{Secret, error_chain};

/// Remembers responses and failed connections.
#[derive(Debug)]
pub(super) struct FetchOnce<F> {
    inner: F,
    exchanges: Mutex<Vec<Exchange>>,
}

/// A request and its result.
#[derive(Clone, Debug)]
struct Exchange {
    url: String,
    redirect_base: Option<String>,
    bearer: Option<Secret<String>>,
    roots: Vec<Vec<u8>>,
    egress: Option<Egress>,
    limits: FetchLimits,
    /// The response, or the stage and the text of the error.
    result: Result<FetchResponse, (FetchStage, String)>,
}

impl<F> FetchOnce<F> {
    pub(super) fn new(inner: F) -> Self {
        FetchOnce { inner, exchanges: Mutex::default() }
    }

    fn exchanges(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Fetch> Fetch for FetchOnce<F> {
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let known = self.exchanges().iter().find(|one| one.answers(&request)).cloned();
            let result = match known {
                Some(known) => known.result,
                None => {
                    let fetched = self.inner.get(request).await;
                    let result = fetched.map_err(|error| (error.stage, error_chain(&error)));
                    self.exchanges().push(Exchange::new(&request, result.clone()));
                    result
                }
            };
            result.map_err(|(stage, what)| FetchError::new(stage, what))
        })
    }
}

impl Exchange {
    fn new(request: &FetchRequest<'_>, result: Result<FetchResponse, (FetchStage, String)>) -> Self {
        Exchange {
            url: request.url.to_owned(),
            redirect_base: request.redirect_base.map(str::to_owned),
            bearer: request.bearer.cloned(),
            roots: request.roots.to_vec(),
            egress: request.egress,
            limits: request.limits,
            result,
        }
    }

    /// Whether the request would have the same result.
    fn answers(&self, request: &FetchRequest<'_>) -> bool {
        let is_same = self.url == request.url
            && self.redirect_base.as_deref() == request.redirect_base
            && self.bearer.as_ref() == request.bearer
            && self.roots == request.roots
            && self.egress == request.egress;
        is_same
            && match &self.result {
                Ok(_) => is_within(&self.limits, &request.limits),
                // Stricter limits may be why an exchange failed, but not why a connection did.
                Err((FetchStage::Address | FetchStage::Http, _)) => self.limits == request.limits,
                Err(_) => true,
            }
    }
}

/// Whether a response within the strict limits is one within the loose limits too.
fn is_within(strict: &FetchLimits, loose: &FetchLimits) -> bool {
    strict.bytes <= loose.bytes
        && strict.redirects <= loose.redirects
        && strict.keeps_scheme >= loose.keeps_scheme
        && strict.keeps_host >= loose.keeps_host
        && strict.public_only >= loose.public_only
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use navicert_authn::AuthnProfile;

    use super::*;

    /// Counts requests; fails those for `https://down` and `https://large` with profile `hardened`.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl Fetch for Counting {
        fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let result = match request.url {
                "https://down" => Err(FetchError::new(FetchStage::Connect, "connection refused")),
                "https://large" if request.limits.bytes < usize::MAX => {
                    Err(FetchError::new(FetchStage::Http, "response is too large"))
                }
                url => Ok(FetchResponse::new(200, url, b"{}")),
            };
            Box::pin(std::future::ready(result))
        }
    }

    fn request<'r>(url: &'r str, profile: &AuthnProfile) -> FetchRequest<'r> {
        FetchRequest {
            url,
            redirect_base: None,
            bearer: None,
            roots: &[],
            egress: None,
            limits: FetchLimits::for_profile(profile),
        }
    }

    #[tokio::test]
    async fn fetches_once_unless_the_limits_could_change_the_result() {
        let (hardened, kube) = (AuthnProfile::HARDENED, AuthnProfile::KUBE);
        for (url, profiles, requests, is_ok) in [
            ("https://i", [hardened, kube], 1, true),
            ("https://i", [kube, hardened], 2, true),
            ("https://down", [hardened, kube], 1, false),
            ("https://large", [hardened, kube], 2, true),
            ("https://large", [hardened, hardened], 1, false),
        ] {
            let fetch = FetchOnce::new(Counting::default());
            let mut last = None;
            for profile in &profiles {
                last = Some(fetch.get(request(url, profile)).await.is_ok());
            }
            assert_eq!(last, Some(is_ok), "{url}");
            assert_eq!(fetch.inner.0.load(Ordering::Relaxed), requests, "{url}");
        }
        let fetch = FetchOnce::new(Counting::default());
        let secret = Secret::new("a".to_owned());
        fetch.get(request("https://i", &kube)).await.unwrap();
        fetch.get(FetchRequest { bearer: Some(&secret), ..request("https://i", &kube) }).await.unwrap();
        assert_eq!(fetch.inner.0.load(Ordering::Relaxed), 2, "another bearer token");
    }
}
