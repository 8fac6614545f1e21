//! The first connection while the credential is still looked for: opened, silent, and closed if there is none.

use std::sync::Arc;

use navicert_testkit::{ApiServer, Ca, Cut, Gate, wait};

use super::support::{Script, bearer, request, rig};
use crate::credential::{
    Asking, BoxFuture, Credential, CredentialError, CredentialSource, Generation, Refused,
};

/// A source that has nothing before its gate opens, as a plugin that takes its time.
#[derive(Debug)]
struct Slow {
    script: Arc<Script>,
    gate: Gate,
    ahead: bool,
}

impl CredentialSource for Slow {
    fn ready(&self) -> Option<Arc<Credential>> {
        None
    }

    fn current(&self, asking: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            self.gate.pass().await;
            self.script.current(asking).await
        })
    }

    fn refused(
        &self,
        generation: Generation,
        reason: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        self.script.refused(generation, reason)
    }

    fn may_call_ahead(&self) -> bool {
        self.ahead
    }
}

fn slow(credentials: impl IntoIterator<Item = Credential>) -> (Arc<Slow>, Gate) {
    let gate = Gate::new();
    (Arc::new(Slow { script: Script::of(credentials), gate: gate.clone(), ahead: true }), gate)
}

#[tokio::test]
async fn the_server_is_called_while_the_credential_is_looked_for_and_told_nothing() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let (source, gate) = slow([bearer("t")]);
    let rig = rig(&api, &ca, source);
    let asked = (0..8).map(|_| {
        let transport = rig.transport.clone();
        tokio::spawn(async move { transport.send(request("/version")).await.unwrap().status() })
    });
    let asked: Vec<_> = asked.collect();
    gate.wait_for_arrivals(8).await;
    let log = api.wait_until("a connection", |log| !log.connections.is_empty()).await;
    assert_eq!(log.connections.len(), 1, "one for everybody");
    assert!(log.connections[0].tls.is_none(), "not a byte before there is a credential");
    gate.open();
    for status in asked {
        assert_eq!(wait::within("an answer", status).await.unwrap(), 200);
    }
    assert_eq!(api.connections().len(), 1, "the same one");
}

// C842, C845: a server gives up after half a minute, and a PIN may take longer.
#[tokio::test]
async fn a_source_that_asks_a_human_first_calls_nobody_ahead() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let gate = Gate::new();
    let source = Arc::new(Slow { script: Script::of([bearer("t")]), gate: gate.clone(), ahead: false });
    let rig = rig(&api, &ca, source);
    let transport = rig.transport.clone();
    let asked = tokio::spawn(async move { transport.send(request("/version")).await.unwrap().status() });
    gate.wait_for_arrivals(1).await;
    // A connection of the test's own: whatever was dialed before it would have been accepted before it.
    let own = tokio::net::TcpStream::connect(api.address()).await.unwrap();
    let log = api.wait_until("the test's own connection", |log| !log.connections.is_empty()).await;
    assert_eq!(log.connections.len(), 1);
    drop(own);
    gate.open();
    assert_eq!(wait::within("an answer", asked).await.unwrap(), 200);
}

#[tokio::test]
async fn without_a_credential_the_connection_is_closed_unused() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let (source, gate) = slow([]);
    let rig = rig(&api, &ca, source);
    let transport = rig.transport.clone();
    let asked = tokio::spawn(async move { transport.send(request("/version")).await.map(drop) });
    api.wait_until("a connection", |log| !log.connections.is_empty()).await;
    gate.open();
    wait::within("an error", asked).await.unwrap().unwrap_err();
    api.wait_until("the end of the connection", |log| log.connections[0].closed).await;
}

#[tokio::test]
async fn a_connection_that_was_cut_meanwhile_is_replaced() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let (source, gate) = slow([bearer("t")]);
    let rig = rig(&api, &ca, source);
    let transport = rig.transport.clone();
    let asked = tokio::spawn(async move { transport.send(request("/version")).await.unwrap().status() });
    api.wait_until("a connection", |log| !log.connections.is_empty()).await;
    api.cut_connections(Cut::Reset);
    api.wait_until("its end", |log| log.connections[0].closed).await;
    gate.open();
    assert_eq!(wait::within("an answer", asked).await.unwrap(), 200);
    assert_eq!(api.connections().len(), 2);
}
