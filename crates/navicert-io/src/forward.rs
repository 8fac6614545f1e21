//! Forwards methods of `AsyncWrite` to the stream that a type wraps.
//!
//! A wrapper changes one or two methods and passes the others on. A forgotten `poll_write_vectored` or
//! `is_write_vectored` compiles and makes every write a copy, so every method is named:
//! [`forward_async_write!`](crate::forward_async_write).

/// Inside an `impl` of [`AsyncWrite`](tokio::io::AsyncWrite), writes the named methods: each calls the same method of a
/// field, which has to be `Unpin`.
///
/// With `field => inspect`, the result of each method goes through the wrapper's own
/// `fn inspect<T>(&mut self, &mut Context<'_>, Poll<io::Result<T>>) -> Poll<io::Result<T>>`.
///
/// ```
/// use std::io;
/// use std::task::{Context, Poll};
///
/// use tokio::io::{AsyncWrite, AsyncWriteExt as _};
///
/// struct Counting<S> {
///     stream: S,
///     completed_writes: usize,
/// }
///
/// impl<S> Counting<S> {
///     fn count<T>(&mut self, _: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
///         self.completed_writes += usize::from(written.is_ready());
///         written
///     }
/// }
///
/// impl<S: AsyncWrite + Unpin> AsyncWrite for Counting<S> {
///     navicert_io::forward_async_write!(stream => count: poll_write, poll_write_vectored);
///     navicert_io::forward_async_write!(stream: is_write_vectored, poll_flush, poll_shutdown);
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let mut stream = Counting { stream: Vec::new(), completed_writes: 0 };
/// stream.write_all(b"text").await.unwrap();
/// assert_eq!((stream.stream.as_slice(), stream.completed_writes), (&b"text"[..], 1));
/// # }
/// ```
#[macro_export]
macro_rules! forward_async_write {
    ($stream:ident: $($method:ident),+) => {
        $($crate::forward_async_write!(@ $method $stream []);)+
    };
    ($stream:ident => $inspect:ident: $($method:ident),+) => {
        $($crate::forward_async_write!(@ $method $stream [$inspect]);)+
    };
    (@ poll_write $stream:ident $inspect:tt) => {
        $crate::forward_async_write!(@@ poll_write $stream $inspect (bytes: &[u8]) usize);
    };
    (@ poll_write_vectored $stream:ident $inspect:tt) => {
        $crate::forward_async_write!(@@ poll_write_vectored $stream $inspect (slices: &[::std::io::IoSlice<'_>]) usize);
    };
    (@ poll_flush $stream:ident $inspect:tt) => {
        $crate::forward_async_write!(@@ poll_flush $stream $inspect () ());
    };
    (@ poll_shutdown $stream:ident $inspect:tt) => {
        $crate::forward_async_write!(@@ poll_shutdown $stream $inspect () ());
    };
    (@ is_write_vectored $stream:ident []) => {
        #[inline]
        fn is_write_vectored(&self) -> bool {
            self.$stream.is_write_vectored()
        }
    };
    (@@ $method:ident $stream:ident [] ($($argument:ident: $type:ty)?) $output:ty) => {
        #[inline]
        fn $method(
            mut self: ::std::pin::Pin<&mut Self>,
            context: &mut ::std::task::Context<'_>,
            $($argument: $type)?
        ) -> ::std::task::Poll<::std::io::Result<$output>> {
            ::std::pin::Pin::new(&mut self.$stream).$method(context $(, $argument)?)
        }
    };
    (@@ $method:ident $stream:ident [$inspect:ident] ($($argument:ident: $type:ty)?) $output:ty) => {
        #[inline]
        fn $method(
            mut self: ::std::pin::Pin<&mut Self>,
            context: &mut ::std::task::Context<'_>,
            $($argument: $type)?
        ) -> ::std::task::Poll<::std::io::Result<$output>> {
            let result = ::std::pin::Pin::new(&mut self.$stream).$method(context $(, $argument)?);
            self.$inspect(context, result)
        }
    };
}
