//! `service WhoAmI { rpc Get(google.protobuf.Empty) returns (google.protobuf.StringValue); }` of package `example`. All but
//! [`user_name`] is what tonic generates from such a file; it is written out here, so that the example builds without a
//! compiler for protocol files.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use navicert_tower::AuthenticatedUser;
use prost::Message;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tower_service::Service;

/// The service's own code: the layer has put the user into the extensions.
fn user_name(request: &Request<()>) -> Result<Response<String>, Status> {
    let user = request.extensions().get::<AuthenticatedUser>();
    let user = user.ok_or_else(|| Status::unauthenticated("no authenticated user"))?;
    Ok(Response::new(user.username().to_owned()))
}

/// The server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WhoAmIServer;

impl NamedService for WhoAmIServer {
    const NAME: &'static str = "example.WhoAmI";
}

impl Service<http::Request<Body>> for WhoAmIServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            if request.uri().path() != "/example.WhoAmI/Get" {
                return Ok(Status::unimplemented("unknown method").into_http());
            }
            Ok(Grpc::new(MessageCodec::<String, ()>::default()).unary(Get, request).await)
        })
    }
}

struct Get;

impl UnaryService<()> for Get {
    type Response = String;
    type Future = Ready<Result<Response<String>, Status>>;

    fn call(&mut self, request: Request<()>) -> Self::Future {
        ready(user_name(&request))
    }
}

/// Protobuf messages, sent as `E` and received as `D`.
#[derive(Debug)]
pub(crate) struct MessageCodec<E, D>(PhantomData<(E, D)>);

impl<E, D> Default for MessageCodec<E, D> {
    fn default() -> Self {
        MessageCodec(PhantomData)
    }
}

impl<E, D> Codec for MessageCodec<E, D>
where
    E: Message + 'static,
    D: Message + Default + 'static,
{
    type Encode = E;
    type Decode = D;
    type Encoder = MessageCodec<E, D>;
    type Decoder = MessageCodec<E, D>;

    fn encoder(&mut self) -> Self::Encoder {
        MessageCodec::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        MessageCodec::default()
    }
}

impl<E: Message, D> Encoder for MessageCodec<E, D> {
    type Item = E;
    type Error = Status;

    fn encode(&mut self, message: E, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buffer).map_err(|_| Status::internal("failed to encode the message"))
    }
}

impl<E, D: Message + Default> Decoder for MessageCodec<E, D> {
    type Item = D;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        D::decode(buffer).map(Some).map_err(|_| Status::internal("failed to decode the message"))
    }
}
