//! Texts over HTTP: what a long-running command tells of itself. A thread of normal priority serves them.

use crate::failure::Failure;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// A text, made anew for each who asks.
pub(crate) struct Page {
    /// Where it is: `/metrics`.
    pub(crate) path: &'static str,
    /// What kind of text it is.
    pub(crate) kind: &'static str,
    pub(crate) text: Box<dyn Fn() -> String + Send + Sync>,
}

/// The endpoint, until it is dropped.
pub(crate) struct Endpoint {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Serves pages at an address.
    ///
    /// *Errors:* an address that cannot be had.
    pub(crate) fn start(address: &str, pages: Vec<Page>) -> Result<Endpoint, Failure> {
        let fault = |error| Failure::Input(format!("--metrics {address}: {error}"));
        // The clock, too: where no descriptor is left the server waits for a while.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fault)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let (stop, stopped) = oneshot::channel();
        let run = move || serve(&runtime, listener, pages, stopped);
        let thread = thread::Builder::new().name("metrics".to_string()).spawn(run).map_err(fault)?;
        Ok(Endpoint { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn serve(runtime: &Runtime, listener: TcpListener, pages: Vec<Page>, stopped: oneshot::Receiver<()>) {
    let router = pages.into_iter().fold(Router::new(), |router, Page { path, kind, text }| {
        let text = Arc::new(text);
        router.route(path, get(move || ready(([(CONTENT_TYPE, kind)], text()))))
    });
    runtime.block_on(async {
        tokio::select! {
            // It ends by itself only where the socket fails for good: then there is nothing more to serve.
            _ = axum::serve(listener, router) => {}
            _ = stopped => {}
        }
    });
}
