//! The connections of an endpoint: how many there are, how long they last, and which one makes place for a new one.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

/// Accepts connections. If there are as many as allowed, the oldest one of the address with the most of them ends, unless it carries events.
pub(super) struct Door {
    listener: TcpListener,
    most: usize,
    time: Duration,
    /// The connections, the oldest first; some may have ended.
    visits: Vec<Seat>,
}

struct Seat {
    address: IpAddr,
    kind: VisitKind,
    /// Ends the connection when it is dropped.
    end: oneshot::Sender<()>,
}

impl Door {
    /// For `most` connections; each, or each write of events, lasts for at most `time`.
    pub(super) fn new(listener: TcpListener, most: usize, time: Duration) -> Door {
        Door { listener, most, time, visits: Vec::new() }
    }

    /// A seat for a client, if there is one.
    fn seat(&mut self, address: IpAddr) -> Option<(VisitKind, oneshot::Receiver<()>)> {
        self.visits.retain(|seat| !seat.end.is_closed());
        if self.visits.len() >= self.most {
            let place = self.oldest_of_most()?;
            self.visits.remove(place);
        }
        let (kind, (end, ended)) = (VisitKind::default(), oneshot::channel());
        self.visits.push(Seat { address, kind: kind.clone(), end });
        Some((kind, ended))
    }

    fn oldest_of_most(&self) -> Option<usize> {
        let pages = || self.visits.iter().enumerate().filter(|(_, seat)| !seat.kind.carries_events());
        let count = |address: IpAddr| pages().filter(|(_, seat)| seat.address == address).count();
        pages()
            .max_by_key(|(place, seat)| (count(seat.address), self.visits.len() - place))
            .map(|(place, _)| place)
    }
}

impl Listener for Door {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visit, SocketAddr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            if let Some((kind, ended)) = self.seat(address.ip()) {
                let limit = Box::pin(sleep(self.time));
                return (Visit { stream, time: self.time, limit, ended, kind }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Whether a connection carries a stream of events. Clones share the state.
#[derive(Clone, Default)]
pub(super) struct VisitKind(Arc<AtomicBool>);

impl VisitKind {
    /// From now on, only its writes have a time limit.
    pub(super) fn carry_events(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn carries_events(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connected<IncomingStream<'_, Door>> for VisitKind {
    fn connect_info(stream: IncomingStream<'_, Door>) -> VisitKind {
        stream.io().kind.clone()
    }
}

/// A connection that fails after its time limit, and when another client takes its seat.
pub(super) struct Visit {
    stream: TcpStream,
    time: Duration,
    limit: Pin<Box<Sleep>>,
    ended: oneshot::Receiver<()>,
    kind: VisitKind,
}

impl Visit {
    /// The stream, unless the connection has ended. `is_write` says what is to be done with it.
    fn stream(&mut self, context: &mut Context<'_>, is_write: bool) -> io::Result<Pin<&mut TcpStream>> {
        let is_limited = is_write || !self.kind.carries_events();
        let is_late = is_limited && self.limit.as_mut().poll(context).is_ready();
        if is_late || Pin::new(&mut self.ended).poll(context).is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Pin::new(&mut self.stream))
    }

    /// Begins the time limit of the next write of events.
    fn begin_next_write(&mut self) {
        if self.kind.carries_events() {
            let end = Instant::now() + self.time;
            self.limit.as_mut().reset(end);
        }
    }
}

impl AsyncRead for Visit {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream(context, false)?.poll_read(context, into)
    }
}

impl AsyncWrite for Visit {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Ready(written) => {
                self.begin_next_write();
                Poll::Ready(written)
            }
            Poll::Pending => {
                self.stream(context, true)?;
                Poll::Pending
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context, false)?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context, false)?.poll_shutdown(context)
    }
}
