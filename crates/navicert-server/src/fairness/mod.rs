//! Fair admission of requests, modelled on Kubernetes' API Priority and Fairness: one user or one address that floods
//! the server slows down only itself.
//!
//! ```text
//! head ──▶ Admission::peer_seat ──▶ authentication ──▶ body ──▶ Admission::user_seat ──▶ API server ──▶ response head
//!          flow: client address                       Admission::reserve_body            flow: username
//! ```
//!
//! A flow is what shares are counted for: the client address before authentication (IPv6: its /64 network, which one
//! client usually has to itself), the username after it. Each stage has a budget of its own. A seat is held while the
//! server works on a request: during authentication, and from the complete request until the response head. A client
//! that sends its request slowly holds none, and neither does a watch; both hold connections, which are shared between
//! users in the same way.
//!
//! Shares are dynamic (`shares`): a flow alone may use eight ninths of the seats, and there is always one left for a
//! flow that has none. Above its share a flow waits in a queue of bounded length (`queue`); free seats go round-robin
//! to the flows that wait. A request that finds its flow's queue full, or waits too long, gets a 429.

mod queue;
mod shares;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use crate::limits::ServerLimits;
use crate::problem::Problem;
use queue::FairQueue;
pub(crate) use queue::Seat;
use shares::{Shares, lock};

/// Least number of bytes that a request body is counted with: what a waiting request takes besides its body.
const MIN_BODY_RESERVATION: usize = 8 * 1024;

/// What shares are counted for: a keyed hash of a client address or a username. The key is random, so a client cannot
/// choose a name that shares its flow with another user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowId(u64);

/// The flow is above its share, and its queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests of this client")]
pub struct Overloaded;

impl From<Overloaded> for Problem {
    fn from(_: Overloaded) -> Self {
        Problem::TooManyRequests
    }
}

/// The budgets of one listener.
#[derive(Debug)]
pub struct Admission {
    keys: RandomState,
    peers: FairQueue,
    users: FairQueue,
    connections: Mutex<Shares>,
    bodies: Mutex<Shares>,
    body_timeout: Duration,
}

impl Admission {
    /// Budgets within these limits.
    pub fn new(limits: &ServerLimits) -> Self {
        Admission {
            keys: RandomState::new(),
            peers: FairQueue::new(limits.requests),
            users: FairQueue::new(limits.requests),
            connections: Mutex::new(Shares::new(limits.connections)),
            bodies: Mutex::new(Shares::new(limits.unfinished_bytes)),
            body_timeout: limits.body_timeout,
        }
    }

    /// The flow of a client address.
    pub(crate) fn peer_flow(&self, address: IpAddr) -> FlowId {
        FlowId(match address.to_canonical() {
            IpAddr::V4(address) => self.keys.hash_one(u64::from(address.to_bits())),
            // The upper half, marked so that it differs from every IPv4 address.
            IpAddr::V6(address) => self.keys.hash_one(address.to_bits() >> 64 | 1 << 127),
        })
    }

    /// The flow of a user.
    pub(crate) fn user_flow(&self, username: &str) -> FlowId {
        FlowId(self.keys.hash_one(username))
    }

    /// A seat for authentication.
    ///
    /// # Errors
    /// [`Overloaded`] above the share of this flow.
    pub(crate) async fn peer_seat(&self, flow: FlowId) -> Result<Seat<'_>, Overloaded> {
        self.peers.acquire(flow).await
    }

    /// A seat for a complete request.
    ///
    /// # Errors
    /// [`Overloaded`] above the share of this flow.
    pub(crate) async fn user_seat(&self, flow: FlowId) -> Result<Seat<'_>, Overloaded> {
        self.users.acquire(flow).await
    }

    /// Counts a connection for the user who was first authenticated on it, until it is
    /// [returned](Self::return_connection): watches hold no seat, but they hold connections.
    ///
    /// # Errors
    /// [`Overloaded`] above the share of this flow.
    pub(crate) fn take_connection(&self, flow: FlowId) -> Result<(), Overloaded> {
        if lock(&self.connections).try_take(flow, 1) { Ok(()) } else { Err(Overloaded) }
    }

    /// Ends the count of a connection.
    pub(crate) fn return_connection(&self, flow: FlowId) {
        lock(&self.connections).give_back(flow, 1);
    }

    /// Reserves memory for a request body, until the reservation is dropped.
    ///
    /// # Errors
    /// [`Overloaded`] above the share of this flow.
    pub(crate) fn reserve_body(&self, flow: FlowId, bytes: usize) -> Result<BodyReservation<'_>, Overloaded> {
        let bytes = bytes.max(MIN_BODY_RESERVATION);
        match lock(&self.bodies).try_take(flow, bytes) {
            true => Ok(BodyReservation { bodies: &self.bodies, flow, bytes }),
            false => Err(Overloaded),
        }
    }

    /// Time limit for receiving a request body, and between two parts of a streamed one.
    pub fn body_timeout(&self) -> Duration {
        self.body_timeout
    }
}

impl Default for Admission {
    fn default() -> Self {
        Admission::new(&ServerLimits::default())
    }
}

/// Memory for a request body.
#[derive(Debug)]
pub(crate) struct BodyReservation<'a> {
    bodies: &'a Mutex<Shares>,
    flow: FlowId,
    bytes: usize,
}

impl BodyReservation<'_> {
    /// Grows the reservation to `bytes`, if it is smaller.
    ///
    /// # Errors
    /// [`Overloaded`] above the share of this flow.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Overloaded> {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 && !lock(self.bodies).try_take(self.flow, more) {
            return Err(Overloaded);
        }
        self.bytes = self.bytes.saturating_add(more);
        Ok(())
    }
}

impl Drop for BodyReservation<'_> {
    fn drop(&mut self) {
        lock(self.bodies).give_back(self.flow, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_addresses_networks_and_users() {
        let admission = Admission::default();
        let flow = |address: &str| admission.peer_flow(address.parse().unwrap());
        assert_eq!(flow("10.0.0.1"), flow("10.0.0.1"));
        assert_eq!(flow("10.0.0.1"), flow("::ffff:10.0.0.1"), "IPv4 over an IPv6 socket");
        assert_ne!(flow("10.0.0.1"), flow("10.0.0.2"));
        assert_eq!(flow("2001:db8::1"), flow("2001:db8::ffff:0:0:2"), "the same /64");
        assert_ne!(flow("2001:db8::1"), flow("2001:db8:0:1::1"));
        assert_ne!(flow("::1"), flow("0.0.0.1"));
        assert_ne!(admission.user_flow("ann"), admission.user_flow("bob"));
        assert_ne!(admission.user_flow("ann"), Admission::default().user_flow("ann"), "keyed");
    }

    #[test]
    fn one_flow_cannot_reserve_all_memory_for_bodies() {
        let limits = ServerLimits { unfinished_bytes: 9 << 20, ..ServerLimits::default() };
        let admission = Admission::new(&limits);
        let (ann, bob) = (admission.user_flow("ann"), admission.user_flow("bob"));
        let held: Vec<_> = (0..10_000).map_while(|_| admission.reserve_body(ann, 64 << 10).ok()).collect();
        assert!((120..=128).contains(&held.len()), "{} of 144", held.len());
        let mut other = admission.reserve_body(bob, 1).unwrap();
        other.grow_to(64 << 10).unwrap();
        drop(held);
        assert!(admission.reserve_body(ann, 8 << 20).is_ok());
    }
}
