//! Serves pages over HTTP with the state of a long-running command, in a thread of normal priority.
//!
//! The number of connections is limited. Each serves one page and has a short time limit, unless it carries events; then each of its writes
//! has that limit. A further client takes the place of another ([`visits`]), so that clients that ask for nothing do not keep others out.

mod visits;

use super::hosts::{Hosts, with_host};
use crate::failure::Failure;
use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_core::Stream;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval};
use visits::{Door, VisitKind};

#[derive(Clone, Copy)]
struct Bounds {
    connections: usize,
    /// Maximum time of a connection, or of one write of events.
    time: Duration,
}

/// Maximum number of event streams at a time, over all feeds.
const STREAMS_MAX: usize = 8;
/// Time between two events of a stream. At 20 events per second, a page can animate smoothly.
const TICK: Duration = Duration::from_millis(50);

const BOUNDS: Bounds = Bounds { connections: 32, time: Duration::from_secs(10) };

pub(crate) struct Page {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    /// Returns the text, or an error if the subject of the page has failed.
    pub(crate) text: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
    /// The form for clients that do not accept `kind` by its name, if there is another.
    pub(crate) other: Option<OtherForm>,
}

/// Another form of a page.
#[derive(Clone, Copy)]
pub(crate) struct OtherForm {
    pub(crate) kind: &'static str,
    pub(crate) convert: fn(&str) -> String,
}

type NextEvents = Box<dyn Fn(&mut u64) -> Vec<String> + Send + Sync>;

/// A stream of server-sent events.
pub(crate) struct Feed {
    pub(crate) path: String,
    /// Returns the events behind the one with this number, and sets it to the number of the last event. It must return a bounded number of them.
    pub(crate) next: NextEvents,
}

/// The endpoint, until it is dropped.
pub(crate) struct Endpoint {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves pages at an address, and a list of them at `/`. An address without a host is local.
    pub(crate) fn start(address: &str, mut pages: Vec<Page>, feeds: Vec<Feed>) -> Result<Endpoint, Failure> {
        pages.push(list(&pages));
        Endpoint::within(BOUNDS, "--metrics", &with_host(address), Site { pages, feeds })
    }

    /// Serves these pages alone at an address, which `option` of the command line names. An address without a host is local.
    pub(crate) fn serving(option: &str, address: &str, pages: Vec<Page>) -> Result<Endpoint, Failure> {
        Endpoint::within(BOUNDS, option, &with_host(address), Site { pages, feeds: Vec::new() })
    }

    fn within(bounds: Bounds, option: &str, address: &str, site: Site) -> Result<Endpoint, Failure> {
        let fault = |error| Failure::Input(format!("{option} {address}: {error}"));
        // The timer is for the time limits of connections, for events, and for pauses when no descriptor is left.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fault)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(fault)?;
        let asked = address;
        let address = listener.local_addr().map_err(fault)?;
        let hosts = Arc::new(Hosts::new(asked, address.ip()));
        let (stop, stopped) = oneshot::channel();
        let door = Door::new(listener, bounds.connections, bounds.time);
        let run = move || serve(&runtime, door, site, hosts, stopped);
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
            // If the thread panicked, the panic hook has reported that.
            let _ = thread.join();
        }
    }
}

/// What the endpoint serves.
struct Site {
    pages: Vec<Page>,
    feeds: Vec<Feed>,
}

fn list(pages: &[Page]) -> Page {
    let paths = pages.iter().map(|page| format!("{}\n", page.path));
    let text = format!("headstack {}\n{}", env!("CARGO_PKG_VERSION"), paths.collect::<String>());
    Page {
        path: "/",
        kind: "text/plain; charset=utf-8",
        text: Box::new(move || Ok(text.clone())),
        other: None,
    }
}

/// Whether the request comes from a page of another origin.
fn is_foreign(headers: &HeaderMap, hosts: &Hosts) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
    !host.is_some_and(|host| hosts.allow(host))
}

/// Whether a client accepts a kind of text by its name.
fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let media = kind.split(';').next().unwrap_or(kind);
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = accepted.flat_map(|list| list.split(','));
    ranges.any(|range| range.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(media)))
}

type Reply = (StatusCode, [(HeaderName, &'static str); 2], String);

const PLAIN: &str = "text/plain; charset=utf-8";

/// The reason to refuse a request for its `Host` or its `Origin`, if there is one.
fn refusal(headers: &HeaderMap, hosts: &Hosts) -> Option<(StatusCode, &'static str)> {
    let host = headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
    if host.is_some_and(|host| !hosts.allow(host)) {
        let text = "this is not the host that was asked for: ask by its address\n";
        return Some((StatusCode::MISDIRECTED_REQUEST, text));
    }
    // A page of another site can send requests, although it cannot read the replies. So none is computed for it.
    is_foreign(headers, hosts).then_some((StatusCode::FORBIDDEN, "a page of another origin asked\n"))
}

fn reply(headers: &HeaderMap, hosts: &Hosts, page: &Page) -> Reply {
    let (status, kind, text) = match refusal(headers, hosts) {
        Some((status, text)) => (status, PLAIN, text.to_string()),
        None => {
            let (status, text) = match (page.text)() {
                Ok(text) => (StatusCode::OK, text),
                Err(text) => (StatusCode::SERVICE_UNAVAILABLE, text),
            };
            match page.other.filter(|_| !accepts(headers, page.kind)) {
                Some(OtherForm { kind, convert }) => (status, kind, convert(&text)),
                None => (status, page.kind, text),
            }
        }
    };
    (status, [(CONTENT_TYPE, kind), (CONNECTION, "close")], text)
}

/// The events of a feed, while the client reads them.
struct EventStream {
    feed: Arc<Feed>,
    seen: u64,
    ready: VecDeque<String>,
    ticks: Interval,
    _seat: OwnedSemaphorePermit,
}

impl Stream for EventStream {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = &mut *self;
        loop {
            if let Some(text) = stream.ready.pop_front() {
                return Poll::Ready(Some(Ok(Event::default().data(text))));
            }
            std::task::ready!(stream.ticks.poll_tick(context));
            stream.ready.extend((stream.feed.next)(&mut stream.seen));
        }
    }
}

/// Answers a request for events: the connection has no time limit from now on.
fn stream(
    headers: &HeaderMap,
    hosts: &Hosts,
    feed: &Arc<Feed>,
    permits: &Arc<Semaphore>,
    visit: &VisitKind,
) -> Response {
    if let Some(refused) = refusal(headers, hosts) {
        return refused.into_response();
    }
    let Ok(seat) = Arc::clone(permits).try_acquire_owned() else {
        let text = format!("{STREAMS_MAX} pages show the disks already: close one\n");
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    visit.carry_events();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Sse::new(EventStream { feed: Arc::clone(feed), seen: 0, ready: VecDeque::new(), ticks, _seat: seat })
        .into_response()
}

fn serve(runtime: &Runtime, door: Door, site: Site, hosts: Arc<Hosts>, stopped: oneshot::Receiver<()>) {
    let router = site.pages.into_iter().fold(Router::new(), |router, page| {
        let (path, page, hosts) = (page.path, Arc::new(page), Arc::clone(&hosts));
        router.route(path, get(move |headers: HeaderMap| ready(reply(&headers, &hosts, &page))))
    });
    let permits = Arc::new(Semaphore::new(STREAMS_MAX));
    let router = site.feeds.into_iter().fold(router, |router, feed| {
        let (path, feed, hosts, permits) =
            (feed.path.clone(), Arc::new(feed), Arc::clone(&hosts), Arc::clone(&permits));
        let answer = move |ConnectInfo(visit): ConnectInfo<VisitKind>, headers: HeaderMap| {
            ready(stream(&headers, &hosts, &feed, &permits, &visit))
        };
        router.route(&path, get(answer))
    });
    runtime.block_on(async {
        tokio::select! {
            // The server ends without a stop only if the socket fails permanently.
            _ = axum::serve(door, router.into_make_service_with_connect_info::<VisitKind>()) => {}
            _ = stopped => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream as Client;

    fn endpoint(connections: usize, time: Duration) -> Endpoint {
        let other = Some(OtherForm { kind: "text/short", convert: |text| text[..1].to_string() });
        let text = Box::new(|| Ok("good\n".to_string()));
        let page = Page { path: "/", kind: "text/plain; charset=utf-8", text, other };
        let bounds = Bounds { connections, time };
        Endpoint::within(
            bounds,
            "--metrics",
            "127.0.0.1:0",
            Site { pages: vec![page], feeds: vec![feed(), large()] },
        )
        .expect("a port is free")
    }

    #[allow(clippy::disallowed_methods, reason = "a test has a client of its own")]
    fn connect(endpoint: &Endpoint) -> Client {
        Client::connect(endpoint.address()).expect("it listens")
    }

    /// Requests the page and returns the reply; empty if the connection is closed at once.
    fn ask(client: Client) -> String {
        ask_as(client, "localhost")
    }

    fn ask_as(client: Client, host: &str) -> String {
        ask_with(client, &format!("Host: {host}\r\nAccept: text/plain\r\n"))
    }

    fn ask_with(mut client: Client, headers: &str) -> String {
        let mut heard = String::new();
        let asked = client.write_all(format!("GET / HTTP/1.1\r\n{headers}\r\n").as_bytes());
        // Each step may fail for a refused client.
        let _ = asked.and_then(|()| client.read_to_string(&mut heard));
        heard
    }

    #[test]
    fn client_is_answered_while_any_number_of_others_are_idle() {
        let endpoint = endpoint(2, Duration::from_secs(86_400));
        let mut held: Vec<Client> = (0..9).map(|_| connect(&endpoint)).collect();
        assert!(ask(connect(&endpoint)).ends_with("good\n"));
        assert_eq!(held[0].read(&mut [0; 1]).unwrap_or(0), 0, "the oldest has made place");
        assert!(ask(held.remove(8)).ends_with("good\n"), "who was let in is served");
    }

    #[test]
    fn page_has_the_form_that_the_client_accepts() {
        let endpoint = endpoint(2, Duration::from_secs(60));
        let ask = |accept: &str| ask_with(connect(&endpoint), &format!("Host: localhost\r\n{accept}"));
        for accept in
            ["Accept: text/plain;q=0.5, text/html\r\n", "Accept: text/html\r\nAccept: Text/Plain\r\n"]
        {
            let heard = ask(accept);
            assert!(heard.ends_with("good\n") && heard.contains("text/plain; charset"), "{heard}");
        }
        for accept in ["", "Accept: */*\r\n", "Accept: text/plainer\r\n"] {
            let heard = ask(accept);
            assert!(heard.ends_with("\r\n\r\ng") && heard.contains("text/short"), "{heard}");
        }
    }

    #[test]
    fn request_for_a_foreign_host_is_rejected() {
        let endpoint = endpoint(2, Duration::from_secs(60));
        assert!(ask_as(connect(&endpoint), "127.0.0.1:9100").ends_with("good\n"));
        let heard = ask_as(connect(&endpoint), "evil.example");
        assert!(heard.starts_with("HTTP/1.1 421 ") && !heard.contains("good"), "{heard}");
    }

    #[test]
    fn request_from_a_page_of_another_origin_is_refused() {
        let endpoint = endpoint(2, Duration::from_secs(60));
        let host = "Accept: text/plain\r\nHost: 127.0.0.1:9100\r\n";
        let own = ask_with(connect(&endpoint), &format!("{host}Origin: http://127.0.0.1:9100\r\n"));
        assert!(own.ends_with("good\n"), "{own}");
        for origin in ["http://evil.example", "null", "https://127.0.0.1.evil.example"] {
            let heard = ask_with(connect(&endpoint), &format!("{host}Origin: {origin}\r\n"));
            assert!(heard.starts_with("HTTP/1.1 403 ") && !heard.contains("good"), "{origin}: {heard}");
        }
    }

    /// A feed whose events are numbers.
    fn feed() -> Feed {
        let next = |seen: &mut u64| {
            *seen += 1;
            vec![seen.to_string()]
        };
        Feed { path: "/events".to_string(), next: Box::new(next) }
    }

    /// A feed that fills the buffers of a client that does not read.
    fn large() -> Feed {
        let next = |_: &mut u64| vec!["x".repeat(1 << 20); 16];
        Feed { path: "/large".to_string(), next: Box::new(next) }
    }

    #[test]
    fn stream_of_events_outlives_the_time_limit_of_pages() {
        let endpoint = endpoint(32, Duration::from_millis(200));
        let mut client = connect(&endpoint);
        client.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is connected");
        let mut lines = BufReader::new(client).lines().map_while(Result::ok);
        // Twenty events a second: the last of these comes after more than five time limits.
        assert!(lines.any(|line| line == "data: 21"), "the stream ended early");
    }

    #[test]
    fn ninth_stream_is_refused_until_another_ends() {
        let endpoint = endpoint(32, Duration::from_secs(60));
        let ask = || {
            let mut client = connect(&endpoint);
            client.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is connected");
            let mut first = [0; 12];
            // A connection beyond the limit is closed without an answer.
            let is_answered = client.read_exact(&mut first).is_ok();
            (client, if is_answered { String::from_utf8_lossy(&first).into_owned() } else { String::new() })
        };
        let streams: Vec<_> = (0..STREAMS_MAX).map(|_| ask()).collect();
        assert!(streams.iter().all(|(_, status)| status == "HTTP/1.1 200"));
        assert_eq!(ask().1, "HTTP/1.1 503");
        drop(streams);
        assert!((0..100_000).any(|_| ask().1 == "HTTP/1.1 200"));
    }

    #[test]
    fn stream_that_is_not_read_ends_and_another_takes_its_place() {
        let endpoint = endpoint(32, Duration::from_millis(200));
        let ask = || {
            let mut client = connect(&endpoint);
            client.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is connected");
            let mut first = [0; 12];
            let is_answered = client.read_exact(&mut first).is_ok();
            (client, if is_answered { String::from_utf8_lossy(&first).into_owned() } else { String::new() })
        };
        let unread: Vec<_> = (0..STREAMS_MAX).map(|_| ask()).collect();
        assert!(unread.iter().all(|(_, status)| status == "HTTP/1.1 200"));
        assert!((0..100_000).any(|_| ask().1 == "HTTP/1.1 200"), "those that read nothing have ended");
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
