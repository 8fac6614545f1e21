//! Counts the unfinished request heads of one connection towards the limit of the listener.

use std::sync::Arc;

use super::connection_slots::{ConnectionSlots, SlotState};
use crate::limits::ServerLimits;

/// The unfinished request head of one connection.
pub(super) struct UnfinishedHead {
    slots: Arc<ConnectionSlots>,
    slot: Arc<SlotState>,
    limits: HeadLimits,
    /// What is counted at the moment.
    counted: usize,
}

/// Maximum size of a request head.
#[derive(Clone, Copy, Debug)]
struct HeadLimits {
    authenticated: usize,
    unauthenticated: usize,
}

impl UnfinishedHead {
    pub(super) fn new(slots: Arc<ConnectionSlots>, slot: Arc<SlotState>, limits: &ServerLimits) -> Self {
        let limits = HeadLimits {
            authenticated: limits.header_bytes,
            unauthenticated: limits.unauthenticated_header_bytes.min(limits.header_bytes),
        };
        UnfinishedHead { slots, slot, limits, counted: 0 }
    }

    /// Maximum size of a head: small before the client has presented a valid token.
    pub(super) fn limit(&self) -> usize {
        match self.slot.has_accepted_token() {
            true => self.limits.authenticated,
            false => self.limits.unauthenticated,
        }
    }

    /// Whether no request of this connection is active.
    pub(super) fn is_between_requests(&self) -> bool {
        self.slot.is_idle()
    }

    /// Records whether part of a response waits for the client.
    pub(super) fn set_unsent_data(&self, has_unsent_data: bool) {
        self.slot.set_unsent_data(has_unsent_data);
    }

    /// Records how many bytes of an unfinished head are buffered. Most heads arrive in one piece and are never counted.
    pub(super) fn record(&mut self, bytes: usize) {
        if bytes != self.counted {
            self.slots.record_unfinished(&self.slot, self.counted, bytes);
            self.counted = bytes;
        }
    }
}

impl Drop for UnfinishedHead {
    fn drop(&mut self) {
        self.record(0);
    }
}
