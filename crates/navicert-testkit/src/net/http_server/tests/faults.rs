//! Connections that are refused, reset and clipped.

use std::io::ErrorKind;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::*;

#[tokio::test]
async fn dropping_a_server_closes_its_port_and_connections() {
    let server = HttpServer::start_plain();
    let address = server.address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    server.wait_until("a connection", |log| log.connections.len() == 1).await;
    drop(server);
    assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(wait::within("the end", stream.read(&mut [0; 1])).await.unwrap(), 0);
}

#[tokio::test]
async fn server_that_refuses_connections_keeps_its_port() {
    let server = HttpServer::start_plain();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    server.wait_until("a connection", |log| log.connections.len() == 1).await;
    server.refuse_connections();
    assert!(server.connections()[0].closed);
    assert_eq!(wait::within("the end", stream.read(&mut [0; 1])).await.unwrap(), 0);
    for _ in 0..3 {
        assert_eq!(
            TcpStream::connect(server.address()).await.unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
    }
    let others: Vec<_> = (0..200).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    assert!(others.iter().all(|other| other.local_addr().unwrap() != server.address()));
    server.accept_connections();
    TcpStream::connect(server.address()).await.unwrap();
}

#[tokio::test]
async fn open_connections_are_clipped_or_reset_on_cue() {
    for (how, outcome) in [(Cut::Clip, Ok(0)), (Cut::Reset, Err(ErrorKind::ConnectionReset))] {
        let server = HttpServer::start_plain();
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        server.wait_until("a connection", |log| log.connections.len() == 1).await;
        server.cut_connections(how);
        let read = wait::within("the end", stream.read(&mut [0; 1])).await;
        assert_eq!(read.map_err(|error| error.kind()), outcome);
    }
}

#[tokio::test]
async fn disconnecting_aborts_requests_in_flight_and_later_requests_succeed() {
    let (_ca, server, client) = started();
    for how in [Cut::Clip, Cut::Reset] {
        let gate = Gate::new();
        server.answer_once("/", Answer::text("never").after(&gate));
        let (caller, url) = (client.clone(), server.url_of("/"));
        let request = tokio::spawn(async move { caller.get(&url).await.is_err() });
        gate.wait_for_arrivals(1).await;
        server.cut_connections(how);
        assert!(wait::within("an error", request).await.unwrap());
        assert_eq!(client.get(&server.url_of("/")).await.unwrap().status, 404);
    }
}

#[tokio::test]
async fn truncated_tls_connection_has_no_close_notify() {
    let (_ca, server, client) = started();
    server.answer("/", Answer::cut(Cut::Clip));
    let error = client.get(&server.url_of("/")).await.unwrap_err();
    assert!(error.to_string().contains("connection"), "{error}");
    server.wait_until("its end", |log| log.connections[0].closed).await;
}
