//! Opens a tunnel through a proxy on an asynchronous stream.

use navicert_types::proxy::{Proxy, ProxyError, Tunnel, TunnelStep};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connection_io::Stream;

/// Requests a tunnel from a proxy. Afterwards the stream leads to the server.
pub(super) async fn open(
    stream: &mut dyn Stream,
    proxy: &Proxy,
    host: &str,
    port: u16,
) -> Result<(), ProxyError> {
    let mut tunnel = Tunnel::new(proxy, host, port);
    let mut received = Vec::new();
    loop {
        match tunnel.advance(&received)? {
            TunnelStep::Send(bytes) => {
                stream.write_all(bytes.expose()).await?;
                stream.flush().await?;
                received.clear();
            }
            TunnelStep::Receive(count) => {
                received.resize(count, 0);
                stream.read_exact(&mut received).await?;
            }
            TunnelStep::Done => return Ok(()),
        }
    }
}
