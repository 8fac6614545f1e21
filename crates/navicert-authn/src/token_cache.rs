//! Decisions that still hold: a token that was just accepted is not verified again, one that was just found to be
//! nonsense is not looked at again (S147, S148, S309). What is remembered is never the token.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use navicert_types::Timestamp;

use crate::authenticator::Authenticator;
use crate::jwks::Keys;
use crate::live::Judgement;
use crate::mapping::User;
use crate::outcome::{Outcome, Refusal, Rejection};

/// How long an accepted token needs no second look.
const ACCEPTED_FOR: Duration = Duration::from_secs(10);
/// How long nonsense needs no second look.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// How many of each are remembered.
const MOST_ACCEPTED: usize = 32 << 10;
const MOST_REFUSED: usize = 10_000;
/// So that threads seldom meet.
const SHARDS: usize = 32;

type Digest = [u8; 32];

/// What a decision rests on. When any of it changes, the decision is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grounds {
    /// The configuration's.
    pub(crate) generation: u64,
    /// The revocation list's.
    pub(crate) revocations: u64,
}

/// What else an accepted token rests on.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    /// When it expires, in seconds since 1970.
    pub(crate) expires: i64,
    /// Its issuer's keys, and which version of them verified it.
    pub(crate) keys: Arc<dyn Keys>,
    pub(crate) version: u64,
}

/// Remembers decisions, a bounded number of them.
pub struct TokenCache {
    key: hmac::Key,
    accepted: Shards<Accepted>,
    refused: Shards<Refused>,
}

struct Accepted {
    user: Arc<User>,
    authenticator: Option<Arc<Authenticator>>,
    grounds: Grounds,
    evidence: Evidence,
    /// Also a clock that is set back ends it.
    since: Timestamp,
    until: Timestamp,
}

struct Refused {
    rejection: Rejection,
    authenticator: Option<Arc<Authenticator>>,
    grounds: Grounds,
    since: Timestamp,
    until: Timestamp,
}

/// A token as the cache knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Name(Digest);

impl TokenCache {
    /// An empty cache with a key of its own.
    pub fn new() -> Self {
        // Without randomness the key is known, and the names are what SHA-256 makes of them: still one per token.
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.unwrap_or_else(|_| hmac::Key::new(hmac::HMAC_SHA256, &[]));
        TokenCache { key, accepted: Shards::new(MOST_ACCEPTED), refused: Shards::new(MOST_REFUSED) }
    }

    /// How many decisions are remembered.
    pub fn len(&self) -> usize {
        self.accepted.len() + self.refused.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the cache calls a token: an HMAC with a key that nobody knows.
    pub(crate) fn name(&self, token: &str) -> Name {
        let mut digest = Digest::default();
        // Always 32 bytes.
        for (to, from) in digest.iter_mut().zip(hmac::sign(&self.key, token.as_bytes()).as_ref()) {
            *to = *from;
        }
        Name(digest)
    }

    /// A decision that still holds.
    pub(crate) fn find(&self, name: &Name, grounds: Grounds, now: Timestamp) -> Option<Judgement> {
        let accepted = self.accepted.find(&name.0, |entry| {
            let holds = entry.grounds == grounds
                && (entry.since..entry.until).contains(&now)
                && entry.evidence.keys.version() == entry.evidence.version;
            holds.then(|| Judgement {
                outcome: Outcome::Authenticated(Arc::clone(&entry.user)),
                authenticator: entry.authenticator.clone(),
            })
        });
        accepted.or_else(|| {
            self.refused.find(&name.0, |entry| {
                let holds = entry.grounds == grounds && (entry.since..entry.until).contains(&now);
                let refusal = entry.rejection.refusal.repeated().filter(|_| holds)?;
                let rejection = Rejection { authenticator: entry.rejection.authenticator.clone(), refusal };
                let outcome = Outcome::Rejected(Box::new(rejection));
                Some(Judgement { outcome, authenticator: entry.authenticator.clone() })
            })
        })
    }

    /// Remembers a decision, if it is one to remember.
    pub(crate) fn keep(
        &self,
        name: Name,
        grounds: Grounds,
        now: Timestamp,
        judgement: &Judgement,
        evidence: Option<Evidence>,
    ) {
        let authenticator = judgement.authenticator.clone();
        match (&judgement.outcome, evidence) {
            (Outcome::Authenticated(user), Some(evidence)) => {
                let left = u64::try_from(evidence.expires.saturating_sub(now.as_second())).unwrap_or(0);
                let trusted = evidence.keys.trusted_for().unwrap_or(ACCEPTED_FOR);
                let keep = ACCEPTED_FOR.min(Duration::from_secs(left)).min(trusted);
                let Ok(mut until) = now.checked_add(keep) else { return };
                // `exp` counts whole seconds: nothing is kept into the second after it.
                if let Ok(expires) = Timestamp::from_second(evidence.expires) {
                    until = until.min(expires);
                }
                let user = Arc::clone(user);
                let entry = Accepted { user, authenticator, grounds, evidence, since: now, until };
                self.accepted.keep(name.0, entry, now);
            }
            (Outcome::Rejected(rejection), _) => {
                let Some(refusal) = rejection.refusal.repeated() else { return };
                let Ok(until) = now.checked_add(REFUSED_FOR) else { return };
                let rejection = Rejection { authenticator: rejection.authenticator.clone(), refusal };
                let entry = Refused { rejection, authenticator, grounds, since: now, until };
                self.refused.keep(name.0, entry, now);
            }
            _ => {}
        }
    }
}

impl Default for TokenCache {
    fn default() -> Self {
        TokenCache::new()
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache").field("entries", &self.len()).finish_non_exhaustive()
    }
}

impl Refusal {
    /// The same refusal once more, if it is one that no time heals and that costs work to find out (S309).
    fn repeated(&self) -> Option<Refusal> {
        match self {
            Refusal::Malformed(why) => Some(Refusal::Malformed(why)),
            Refusal::Algorithm { allowed } => Some(Refusal::Algorithm { allowed: *allowed }),
            Refusal::Signature => Some(Refusal::Signature),
            _ => None,
        }
    }
}

/// Something that ends.
trait Ending {
    fn until(&self) -> Timestamp;
}

impl Ending for Accepted {
    fn until(&self) -> Timestamp {
        self.until
    }
}

impl Ending for Refused {
    fn until(&self) -> Timestamp {
        self.until
    }
}

/// A bounded map in parts. Entries leave in the order they came, which is nearly the order in which they end.
struct Shards<E> {
    shards: Vec<Mutex<Shard<E>>>,
    most: usize,
}

struct Shard<E> {
    entries: HashMap<Digest, E, BuildHasherDefault<Spread>>,
    order: VecDeque<Digest>,
}

impl<E: Ending> Shards<E> {
    fn new(most: usize) -> Self {
        let shard = || Mutex::new(Shard { entries: HashMap::default(), order: VecDeque::new() });
        Shards { shards: (0..SHARDS).map(|_| shard()).collect(), most: most / SHARDS }
    }

    fn shard(&self, digest: &Digest) -> Option<MutexGuard<'_, Shard<E>>> {
        let number = usize::from(digest.last().copied().unwrap_or_default()) % SHARDS;
        Some(self.shards.get(number)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn find<T>(&self, digest: &Digest, read: impl FnOnce(&E) -> Option<T>) -> Option<T> {
        self.shard(digest)?.entries.get(digest).and_then(read)
    }

    fn keep(&self, digest: Digest, entry: E, now: Timestamp) {
        let Some(mut shard) = self.shard(&digest) else { return };
        let shard = &mut *shard;
        // What has ended goes, and if that is not enough, what is oldest.
        while let Some(first) = shard.order.front() {
            let has_ended = shard.entries.get(first).is_none_or(|entry| entry.until() <= now);
            if !has_ended && shard.order.len() < self.most {
                break;
            }
            shard.entries.remove(first);
            shard.order.pop_front();
        }
        if shard.entries.insert(digest, entry).is_none() {
            shard.order.push_back(digest);
        }
    }

    fn len(&self) -> usize {
        let lock =
            |shard: &Mutex<Shard<E>>| shard.lock().unwrap_or_else(PoisonError::into_inner).entries.len();
        self.shards.iter().map(lock).sum()
    }
}

/// A digest is spread as well as anything can be; some of its bytes are hash enough.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk::<8>() {
            // The length of an array comes as a hash of its own, and is the same for all.
            if bytes.len() > 8 {
                self.0 = u64::from_ne_bytes(*first);
            }
        }
    }
}

#[cfg(test)]
mod tests;
