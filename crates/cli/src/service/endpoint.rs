//! Pages over HTTP with the state of a long-running command. A thread of normal priority serves them.
//!
//! Clients are limited: a number of connections, each for one page and a short time. Further clients are refused.

use super::hosts::{Hosts, with_host};
use crate::failure::Failure;
use axum::Router;
use axum::http::header::{CONNECTION, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::routing::get;
use axum::serve::Listener;
use std::future::{Future, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Sleep, sleep};

#[derive(Clone, Copy)]
struct Bounds {
    connections: usize,
    /// Maximum time of a connection.
    time: Duration,
}

const BOUNDS: Bounds = Bounds { connections: 32, time: Duration::from_secs(10) };

pub(crate) struct Page {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    /// The text; an error if its subject has failed.
    pub(crate) text: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
}

/// The endpoint, until it is dropped.
pub(crate) struct Endpoint {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves pages at an address, and a list of them at `/`. An address without a host is local.
    pub(crate) fn start(address: &str, mut pages: Vec<Page>) -> Result<Endpoint, Failure> {
        pages.push(list(&pages));
        Endpoint::within(BOUNDS, &with_host(address), pages)
    }

    fn within(bounds: Bounds, address: &str, pages: Vec<Page>) -> Result<Endpoint, Failure> {
        let fault = |error| Failure::Input(format!("--metrics {address}: {error}"));
        // The timer is for pauses when no descriptor is left.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fault)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(fault)?;
        let asked = address;
        let address = listener.local_addr().map_err(fault)?;
        let hosts = Arc::new(Hosts::new(asked, address.ip()));
        let (stop, stopped) = oneshot::channel();
        let seats = Arc::new(Semaphore::new(bounds.connections));
        let door = Door { listener, seats, time: bounds.time };
        let run = move || serve(&runtime, door, pages, hosts, stopped);
        let thread = thread::Builder::new().name("metrics".to_string()).spawn(run).map_err(fault)?;
        Ok(Endpoint { address, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

struct Door {
    listener: TcpListener,
    seats: Arc<Semaphore>,
    time: Duration,
}

impl Listener for Door {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visit, SocketAddr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            if let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() {
                return (Visit { stream, end: Box::pin(sleep(self.time)), _seat: seat }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails after its time.
struct Visit {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _seat: OwnedSemaphorePermit,
}

impl Visit {
    fn stream(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Pin::new(&mut self.get_mut().stream))
    }
}

impl AsyncRead for Visit {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_read(context, into)
    }
}

impl AsyncWrite for Visit {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream(context)?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_shutdown(context)
    }
}

fn list(pages: &[Page]) -> Page {
    let paths = pages.iter().map(|page| format!("{}\n", page.path));
    let text = format!("headstack {}\n{}", env!("CARGO_PKG_VERSION"), paths.collect::<String>());
    Page { path: "/", kind: "text/plain; charset=utf-8", text: Box::new(move || Ok(text.clone())) }
}

type Reply = (StatusCode, [(HeaderName, &'static str); 2], String);

fn reply(headers: &HeaderMap, hosts: &Hosts, page: &Page) -> Reply {
    let (status, kind, text) = match headers.get(HOST).map(|host| host.to_str().unwrap_or_default()) {
        Some(host) if !hosts.allow(host) => {
            let text = "this is not the host that was asked for: ask by its address\n";
            (StatusCode::MISDIRECTED_REQUEST, "text/plain; charset=utf-8", text.to_string())
        }
        _ => match (page.text)() {
            Ok(text) => (StatusCode::OK, page.kind, text),
            Err(text) => (StatusCode::SERVICE_UNAVAILABLE, page.kind, text),
        },
    };
    (status, [(CONTENT_TYPE, kind), (CONNECTION, "close")], text)
}

fn serve(runtime: &Runtime, door: Door, pages: Vec<Page>, hosts: Arc<Hosts>, stopped: oneshot::Receiver<()>) {
    let router = pages.into_iter().fold(Router::new(), |router, page| {
        let (path, page, hosts) = (page.path, Arc::new(page), Arc::clone(&hosts));
        router.route(path, get(move |headers: HeaderMap| ready(reply(&headers, &hosts, &page))))
    });
    runtime.block_on(async {
        tokio::select! {
            // It ends by itself only if the socket fails permanently.
            _ = axum::serve(door, router) => {}
            _ = stopped => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream as Client;

    fn endpoint(connections: usize, time: Duration) -> Endpoint {
        let page = Page { path: "/", kind: "text/plain", text: Box::new(|| Ok("good\n".to_string())) };
        let bounds = Bounds { connections, time };
        Endpoint::within(bounds, "127.0.0.1:0", vec![page]).expect("a port is free")
    }

    #[allow(clippy::disallowed_methods, reason = "a test has a client of its own")]
    fn connect(endpoint: &Endpoint) -> Client {
        Client::connect(endpoint.address()).expect("it listens")
    }

    /// Requests the page and returns the reply; empty if the connection is closed at once.
    fn ask(client: Client) -> String {
        ask_as(client, "localhost")
    }

    fn ask_as(mut client: Client, host: &str) -> String {
        let mut heard = String::new();
        let asked = client.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        // Each step may fail for a client that was refused.
        let _ = asked.and_then(|()| client.read_to_string(&mut heard));
        heard
    }

    #[test]
    fn excess_client_is_turned_away_until_another_disconnects() {
        let endpoint = endpoint(2, Duration::from_secs(86_400));
        let held = [connect(&endpoint), connect(&endpoint)];
        assert_eq!(ask(connect(&endpoint)), "");
        let [first, second] = held;
        drop(first);
        let heard = (0..100_000).map(|_| ask(connect(&endpoint))).find(|heard| !heard.is_empty());
        assert!(heard.is_some_and(|heard| heard.ends_with("good\n")));
        assert!(ask(second).ends_with("good\n"), "who was let in is served");
    }

    #[test]
    fn request_for_a_foreign_host_is_rejected() {
        let endpoint = endpoint(2, Duration::from_secs(60));
        assert!(ask_as(connect(&endpoint), "127.0.0.1:9100").ends_with("good\n"));
        let heard = ask_as(connect(&endpoint), "evil.example");
        assert!(heard.starts_with("HTTP/1.1 421 ") && !heard.contains("good"), "{heard}");
    }

    #[test]
    fn slow_client_is_disconnected_after_the_time_limit() {
        let endpoint = endpoint(1, Duration::from_millis(20));
        let mut silent = connect(&endpoint);
        assert_eq!(silent.read(&mut [0; 1]).unwrap_or(0), 0, "it asks for nothing");
        let mut slow = connect(&endpoint);
        let _ = slow.write_all(b"GET / HT");
        assert_eq!(slow.read(&mut [0; 1]).unwrap_or(0), 0, "it does not end what it asks for");
    }
}
