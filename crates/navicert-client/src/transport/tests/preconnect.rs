//! Preconnecting while the credential is fetched: opened, silent, and closed if there is no credential.

use std::sync::Arc;

use navicert_testkit::{ApiServer, Ca, Cut, Gate, wait};

use super::support::{ScriptedSource, bearer, fixture, request};
use crate::credential::{
    BoxFuture, Credential, CredentialError, CredentialSource, Generation, Rejection, RequestOrigin,
};

/// A source that has no credential until its gate opens, like a slow plugin.
#[derive(Debug)]
struct GatedSource {
    script: Arc<ScriptedSource>,
    gate: Gate,
    may_preconnect: bool,
}

impl CredentialSource for GatedSource {
    fn cached(&self) -> Option<Arc<Credential>> {
        None
    }

    fn get(&self, origin: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            self.gate.pass().await;
            self.script.get(origin).await
        })
    }

    fn refresh_rejected(
        &self,
        generation: Generation,
        reason: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        self.script.refresh_rejected(generation, reason)
    }

    fn may_preconnect(&self) -> bool {
        self.may_preconnect
    }
}

fn gated(credentials: impl IntoIterator<Item = Credential>) -> (Arc<GatedSource>, Gate) {
    let gate = Gate::new();
    (
        Arc::new(GatedSource {
            script: ScriptedSource::new(credentials),
            gate: gate.clone(),
            may_preconnect: true,
        }),
        gate,
    )
}

#[tokio::test]
async fn connects_while_the_credential_is_fetched_and_sends_nothing() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let (source, gate) = gated([bearer("t")]);
    let fixture = fixture(&api, &ca, source);
    let asked = (0..8).map(|_| {
        let transport = fixture.transport.clone();
        tokio::spawn(async move { transport.send(request("/version")).await.unwrap().status() })
    });
    let asked: Vec<_> = asked.collect();
    gate.wait_for_arrivals(8).await;
    let log = api.wait_until("a connection", |log| !log.connections.is_empty()).await;
    assert_eq!(log.connections.len(), 1, "all requests share one");
    assert!(log.connections[0].tls.is_none(), "no byte is sent before there is a credential");
    gate.open();
    for status in asked {
        assert_eq!(wait::within("an answer", status).await.unwrap(), 200);
    }
    assert_eq!(api.connections().len(), 1, "the preconnected one is used");
}

// C842, C845: a server times out after half a minute, and entering a PIN may take longer.
#[tokio::test]
async fn source_that_prompts_for_a_pin_does_not_preconnect() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let gate = Gate::new();
    let source = Arc::new(GatedSource {
        script: ScriptedSource::new([bearer("t")]),
        gate: gate.clone(),
        may_preconnect: false,
    });
    let fixture = fixture(&api, &ca, source);
    let transport = fixture.transport.clone();
    let asked = tokio::spawn(async move { transport.send(request("/version")).await.unwrap().status() });
    gate.wait_for_arrivals(1).await;
    // The test's own connection: any earlier one would have been accepted before it.
    let own = tokio::net::TcpStream::connect(api.address()).await.unwrap();
    let log = api.wait_until("the test's own connection", |log| !log.connections.is_empty()).await;
    assert_eq!(log.connections.len(), 1);
    drop(own);
    gate.open();
    assert_eq!(wait::within("an answer", asked).await.unwrap(), 200);
}

#[tokio::test]
async fn connection_is_closed_unused_if_there_is_no_credential() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let (source, gate) = gated([]);
    let fixture = fixture(&api, &ca, source);
    let transport = fixture.transport.clone();
    let asked = tokio::spawn(async move { transport.send(request("/version")).await.map(drop) });
    api.wait_until("a connection", |log| !log.connections.is_empty()).await;
    gate.open();
    wait::within("an error", asked).await.unwrap().unwrap_err();
    api.wait_until("the end of the connection", |log| log.connections[0].closed).await;
}

#[tokio::test]
async fn replaces_a_preconnected_socket_that_was_reset() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let (source, gate) = gated([bearer("t")]);
    let fixture = fixture(&api, &ca, source);
    let transport = fixture.transport.clone();
    let asked = tokio::spawn(async move { transport.send(request("/version")).await.unwrap().status() });
    api.wait_until("a connection", |log| !log.connections.is_empty()).await;
    api.cut_connections(Cut::Reset);
    api.wait_until("its end", |log| log.connections[0].closed).await;
    gate.open();
    assert_eq!(wait::within("an answer", asked).await.unwrap(), 200);
    assert_eq!(api.connections().len(), 2);
}
