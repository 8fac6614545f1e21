//! Just enough SPDY/3.1 to be the far end of `kubectl exec` and `kubectl port-forward`: streams are told apart by the order
//! in which kubectl opens them, so no header is ever decompressed.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What happens on a SPDY connection.
#[derive(Clone, Debug)]
pub(crate) enum Play {
    /// A command that reads standard input to its end where there is one, prints this and what it read, and succeeds.
    Exec { stdin: bool, stdout: Bytes },
    /// A port that answers whatever it is sent with the same in capitals, once per connection.
    PortForward,
}

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const FIN: u8 = 1;
/// The head of a zlib stream that uses SPDY's dictionary, by its checksum.
const ZLIB_HEAD: [u8; 6] = [0x78, 0x20, 0xe3, 0xc6, 0xa7, 0xc2];
/// A stored block of four zero bytes, which is a list of no headers, and an empty block that makes a reader look.
const NO_HEADERS: [u8; 14] = [0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// Plays until the peer is gone or the play is over. `seen` gets everything that came on data streams.
pub(crate) async fn play<S>(mut stream: S, play: Play, mut seen: impl FnMut(&[u8])) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = Connection { replied: false, opened: Vec::new(), pending: BTreeMap::new() };
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head).await?;
        let [a, b, c, d, flags, size @ ..] = head;
        let [x, y, z] = size;
        let mut body = vec![0; usize::from(x) << 16 | usize::from(y) << 8 | usize::from(z)];
        stream.read_exact(&mut body).await?;
        if a & 0x80 == 0 {
            seen(&body);
            let id = u32::from_be_bytes([a, b, c, d]);
            connection.pending.entry(id).or_default().extend_from_slice(&body);
            connection.data(&mut stream, &play, id, flags & FIN != 0).await?;
            continue;
        }
        match u16::from_be_bytes([c, d]) {
            SYN_STREAM => {
                let id = u32::from_be_bytes([body[0] & 0x7f, body[1], body[2], body[3]]);
                connection.open(&mut stream, &play, id).await?;
            }
            PING => frame(&mut stream, PING, &body).await?,
            GOAWAY => return Ok(()),
            RST_STREAM => {}
            _ => {}
        }
    }
}

struct Connection {
    /// Whether the zlib stream of our headers has begun.
    replied: bool,
    opened: Vec<u32>,
    pending: BTreeMap<u32, Vec<u8>>,
}

impl Connection {
    /// Accepts a stream; a command without standard input is over as soon as its streams are there.
    async fn open(&mut self, stream: &mut (impl AsyncWrite + Unpin), play: &Play, id: u32) -> io::Result<()> {
        let mut reply = id.to_be_bytes().to_vec();
        if !std::mem::replace(&mut self.replied, true) {
            reply.extend(ZLIB_HEAD);
        }
        reply.extend(NO_HEADERS);
        frame(stream, SYN_REPLY, &reply).await?;
        self.opened.push(id);
        match play {
            // error, stdout, stderr
            Play::Exec { stdin: false, .. } if self.opened.len() == 3 => {
                self.end_of_command(stream, play).await
            }
            _ => Ok(()),
        }
    }

    async fn data(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        play: &Play,
        id: u32,
        finished: bool,
    ) -> io::Result<()> {
        match play {
            // error, stdin, stdout, stderr
            Play::Exec { stdin: true, .. } if finished && self.opened.get(1) == Some(&id) => {
                self.end_of_command(stream, play).await
            }
            Play::Exec { .. } => Ok(()),
            Play::PortForward => {
                // Each connection has an error stream, then a data stream.
                let index = self.opened.iter().position(|opened| *opened == id).unwrap_or_default();
                let said = self.pending.remove(&id).unwrap_or_default();
                if index % 2 == 0 || said.is_empty() {
                    return Ok(());
                }
                data(stream, id, &said.to_ascii_uppercase(), true).await?;
                data(stream, self.opened[index - 1], b"", true).await
            }
        }
    }

    /// Prints, succeeds, and closes every stream.
    async fn end_of_command(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        play: &Play,
    ) -> io::Result<()> {
        let Play::Exec { stdin, stdout } = play else { return Ok(()) };
        let first_output = if *stdin { 2 } else { 1 };
        let read =
            self.opened.get(1).filter(|_| *stdin).and_then(|id| self.pending.remove(id)).unwrap_or_default();
        let (error, out, err) = (self.opened[0], self.opened[first_output], self.opened[first_output + 1]);
        data(stream, out, &[stdout, read.as_slice()].concat(), true).await?;
        data(stream, err, b"", true).await?;
        let success = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;
        data(stream, error, success, true).await
    }
}

async fn frame(stream: &mut (impl AsyncWrite + Unpin), kind: u16, body: &[u8]) -> io::Result<()> {
    let mut bytes = vec![0x80, 3];
    bytes.extend(kind.to_be_bytes());
    bytes.push(0);
    bytes.extend(length(body));
    bytes.extend(body);
    stream.write_all(&bytes).await?;
    stream.flush().await
}

async fn data(
    stream: &mut (impl AsyncWrite + Unpin),
    id: u32,
    body: &[u8],
    finished: bool,
) -> io::Result<()> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.push(if finished { FIN } else { 0 });
    bytes.extend(length(body));
    bytes.extend(body);
    stream.write_all(&bytes).await?;
    stream.flush().await
}

fn length(body: &[u8]) -> [u8; 3] {
    let length = u32::try_from(body.len()).expect("a body of a test");
    let [_, a, b, c] = length.to_be_bytes();
    [a, b, c]
}
