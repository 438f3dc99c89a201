//! Connections that do what is written here, and odd wakers.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake},
};

use deadpool_redis::redis::RedisResult;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use super::super::{
    Answered,
    pipe::{OwnedFd, Stream},
};

/// A connection that takes all that is sent, and whose end is read by a function.
pub(super) struct Read<F>(pub(super) F);

impl<F> AsyncRead for Read<F>
where
    F: FnMut(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>> + Unpin,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        (self.0)(cx, buffer)
    }
}

impl<F: Unpin> AsyncWrite for Read<F> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl<F> Stream for Read<F>
where
    Self: AsyncRead + AsyncWrite + Send,
{
    fn move_here(self: Pin<&mut Self>, _: &mut Option<OwnedFd>) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for DuplexStream {
    fn move_here(self: Pin<&mut Self>, _: &mut Option<OwnedFd>) -> io::Result<()> {
        Ok(())
    }
}

/// A waker that counts.
#[derive(Default)]
pub(super) struct Bell(pub(super) AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A waker that drops its task at once.
#[derive(Default)]
pub(super) struct Dropper(pub(super) Mutex<Option<BoxFuture<'static, RedisResult<Answered>>>>);

impl Wake for Dropper {
    fn wake(self: Arc<Self>) {
        let task = self.0.lock().unwrap().take();
        drop(task);
    }
}
