//! Limits on the bytes of requests and responses in memory, for each client and for the server.

use std::collections::HashMap;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::keeping::Keeping;

/// The size from which the body of a response is registered, in bytes.
const SMALL: usize = 64 * 1024;

/// The body bytes that requests and responses hold.
pub(crate) struct Bodies<K> {
    of_each: usize,
    of_all: usize,
    held: Mutex<Totals<K>>,
}

struct Totals<K> {
    all: usize,
    of: HashMap<K, usize>,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The limit of the client.
    Client,
    /// The limit of the server.
    Server,
}

/// The body bytes of one request; released on drop.
pub(crate) struct Held<K: Hash + Eq> {
    bodies: Arc<Bodies<K>>,
    /// The client whose limit also applies; `None`: only the server's limit applies.
    of: Option<K>,
    state: Mutex<(usize, Option<Full>)>,
}

impl<K: Hash + Eq + Clone> Bodies<K> {
    pub(crate) fn new(of_each: usize, of_all: usize) -> Arc<Self> {
        Arc::new(Self { of_each, of_all, held: Mutex::new(Totals { all: 0, of: HashMap::new() }) })
    }

    /// Registers a request, with no bytes yet.
    pub(crate) fn begin(self: &Arc<Self>, of: Option<K>) -> Arc<Held<K>> {
        Arc::new(Held { bodies: Arc::clone(self), of, state: Mutex::default() })
    }

    fn take(&self, of: Option<&K>, bytes: usize) -> Result<(), Full> {
        let mut held = lock(&self.held);
        if held.all + bytes > self.of_all {
            return Err(Full::Server);
        }
        if let Some(of) = of {
            let share = held.of.get(of).copied().unwrap_or_default() + bytes;
            if share > self.of_each {
                return Err(Full::Client);
            }
            held.of.insert(of.clone(), share);
        }
        held.all += bytes;
        Ok(())
    }
}

impl<K: Hash + Eq + Clone> Held<K> {
    /// Adds bytes, unless a limit would be exceeded.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Full> {
        let mut state = lock(&self.state);
        match self.bodies.take(self.of.as_ref(), bytes) {
            Ok(()) => state.0 += bytes,
            Err(full) => {
                state.1 = Some(full);
                return Err(full);
            }
        }
        Ok(())
    }

    /// Returns the limit that stopped the body, if one did.
    pub(crate) fn refused(&self) -> Option<Full> {
        lock(&self.state).1
    }
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Held<K> {
    /// Registers the body of a response until it has been sent.
    pub(crate) fn sending(self: Arc<Self>, response: Response) -> Result<Response, Full> {
        let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        // Small ones are not worth the bookkeeping; the number of requests in flight is limited. Streams have no size.
        let Some(bytes) = bytes.filter(|bytes| *bytes >= SMALL) else { return Ok(response) };
        self.take(bytes)?;
        Ok(response.map(|body| Body::new(Keeping { body, _kept: self })))
    }
}

impl<K: Hash + Eq> Drop for Held<K> {
    fn drop(&mut self) {
        let bytes = lock(&self.state).0;
        let mut held = lock(&self.bodies.held);
        held.all -= bytes;
        let Some(of) = &self.of else { return };
        if let Some(share) = held.of.get_mut(of) {
            *share -= bytes;
            if *share == 0 {
                held.of.remove(of);
            }
        }
    }
}

/// A body whose bytes are counted while it is read.
pub(crate) struct Counted<K: Hash + Eq> {
    pub(crate) body: Body,
    pub(crate) held: Arc<Held<K>>,
}

impl<K: Hash + Eq + Clone> HttpBody for Counted<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        if bytes > 0 && self.held.take(bytes).is_err() {
            return Poll::Ready(Some(Err(axum::Error::new(
                "the maximum total size of request bodies is reached",
            ))));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_holds_its_share_and_all_together_no_more_than_there_is() {
        let bodies = Bodies::new(10, 25);
        let (one, same) = (bodies.begin(Some("a")), bodies.begin(Some("a")));
        assert_eq!((one.take(6), same.take(4)), (Ok(()), Ok(())));
        assert_eq!(same.take(1), Err(Full::Client));
        let other = bodies.begin(Some("b"));
        assert_eq!(other.take(10), Ok(()));
        let here = bodies.begin(None);
        assert_eq!((here.take(5), here.take(1)), (Ok(()), Err(Full::Server)));
        assert_eq!(
            (one.refused(), same.refused(), here.refused()),
            (None, Some(Full::Client), Some(Full::Server))
        );
        drop(one);
        assert_eq!((same.take(6), here.take(1)), (Ok(()), Err(Full::Server)));
        drop((same, other));
        assert_eq!(here.take(20), Ok(()), "clients on this machine may use the whole limit");
        drop(here);
        let held = lock(&bodies.held);
        assert!(held.all == 0 && held.of.is_empty(), "clients without bodies take no memory");
    }
}
