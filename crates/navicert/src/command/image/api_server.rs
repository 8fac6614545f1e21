//! Service accounts of the API server that the kubeconfig selects, for providers with `tokenAttributes`.
// I109–I116

use std::fmt;
use std::future::Future;

use navicert_client::Client;
use navicert_client::service_accounts::{BoundTokenRequest, ServiceAccountApi, ServiceAccountError};
use navicert_image::service_account::{
    PodRef, ServiceAccount, ServiceAccountToken, ServiceAccounts, TokenRequest,
};
use navicert_types::{SystemClock, error_chain};
use tokio::runtime::{Builder, Runtime};

use crate::args::image::{AccountArgs, NamespacedName};
use crate::command::connect;
use crate::env::Environment;
use crate::output::Failure;

/// The client, blocking: credential providers are looked up without a runtime.
pub(super) struct ApiServer {
    api: ServiceAccountApi,
    runtime: Runtime,
}

impl ApiServer {
    /// Selects the context; does not connect yet.
    pub(super) fn connect(args: &AccountArgs, environment: &Environment) -> Result<Self, Failure> {
        let options = connect::located(args.kubeconfig.as_deref(), environment)
            .context(args.context.clone().unwrap_or_default())
            .kuberc_policy(None);
        let client = Client::new(options.resolve()?).map_err(|error| connect::build_failure(&error))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(ApiServer { api: ServiceAccountApi::new(client), runtime })
    }

    /// Reads a pod with its service account name.
    pub(super) fn pod(&self, pod: &NamespacedName) -> Result<PodRef, String> {
        let NamespacedName { namespace, name } = pod;
        let found = self.wait(self.api.pod(namespace, name))?;
        Ok(PodRef {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: found.uid,
            service_account_name: found.service_account_name,
        })
    }

    fn wait<T>(&self, result: impl Future<Output = Result<T, ServiceAccountError>>) -> Result<T, String> {
        self.runtime.block_on(result).map_err(|error| error_chain(&error))
    }
}

impl ServiceAccounts for ApiServer {
    fn account(&self, namespace: &str, name: &str) -> Result<ServiceAccount, String> {
        let found = self.wait(self.api.account(namespace, name))?;
        Ok(ServiceAccount { uid: found.uid, annotations: found.annotations })
    }

    fn token(&self, request: &TokenRequest) -> Result<ServiceAccountToken, String> {
        let (account, (pod, pod_uid)) = (&request.account, &request.pod);
        let request = BoundTokenRequest {
            namespace: &account.namespace,
            name: &account.name,
            uid: &account.uid,
            audience: &request.audience,
            pod: (!pod.is_empty()).then_some((pod, pod_uid)),
        };
        let found = self.wait(self.api.token(&request, &SystemClock))?;
        Ok(ServiceAccountToken { token: found.token, issued: found.issued, expires: found.expires })
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("api", &self.api).finish_non_exhaustive()
    }
}
