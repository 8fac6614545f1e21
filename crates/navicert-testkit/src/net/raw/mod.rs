//! Raw bytes on a socket, for peers that violate HTTP on purpose.

mod client;
pub mod http2;
mod server;

pub use client::{RawClient, Stream};
pub use server::{RawServer, Step};

/// The status code of an answer's first line; 0 if it has none.
pub fn status(answer: &[u8]) -> u16 {
    String::from_utf8_lossy(answer).split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::net::gate::Gate;
    use crate::pki::ca::Ca;

    #[tokio::test]
    async fn a_script_is_played_step_by_step_on_every_connection_over_tls_too() {
        let ca = Ca::new("root");
        let gate = Gate::new();
        let script = || {
            let second = Step::Wait(gate.clone());
            vec![Step::read_head(), Step::write("one"), Step::read_head(), second, Step::write("two")]
        };
        for (server, tls) in
            [(RawServer::start(script()), false), (RawServer::start_tls(&ca, script()), true)]
        {
            for number in 0..2 {
                let mut client = if tls {
                    RawClient::connect_tls(server.address(), &ca, None, &[]).await
                } else {
                    RawClient::connect(server.address()).await
                };
                client.write(b"a\r\n\r\n").await;
                assert_eq!(client.read_exactly(3).await, b"one");
                client.write(b"b\r\n\r\n").await;
                server.wait_for_bytes(number, 10).await;
                gate.let_one_through();
                assert_eq!(client.read_to_end(100).await, b"two");
                assert_eq!(server.received(number), b"a\r\n\r\nb\r\n\r\n");
            }
            assert_eq!(server.connections(), 2);
        }
    }

    #[tokio::test]
    async fn a_peer_may_speak_first_and_last() {
        let script =
            vec![Step::write("banner"), Step::ReadToEnd, Step::Write(Bytes::from_static(b"\xff\x00bye"))];
        let server = RawServer::start(script);
        let mut client = RawClient::connect(server.address()).await;
        assert_eq!(client.read_until(b"ann").await, b"bann");
        client.write(b"all").await;
        client.finish_writing().await;
        assert_eq!(client.read_to_end(100).await, b"er\xff\x00bye");
        assert_eq!(server.received(0), b"all");
    }
}
