//! Values that own what they hold.

use super::compare::{compare_keys, same_key};
use super::{List, Map, Object, Val};
use crate::instant::Timestamp;
use crate::opaque::Opaque;

/// An owned value.
#[derive(Debug, Clone)]
pub enum Value {
    /// `null`
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed 64-bit number.
    Int(i64),
    /// An unsigned 64-bit number.
    Uint(u64),
    /// A double.
    Double(f64),
    /// Text.
    String(Box<str>),
    /// A byte string.
    Bytes(Box<[u8]>),
    /// A list.
    List(Box<[Value]>),
    /// A map.
    Map(ValueMap),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A type, by its name.
    Type(Box<str>),
    /// An optional value.
    Optional(Option<Box<Value>>),
    /// A value of one of the Kubernetes types.
    Opaque(Opaque),
    /// A value with declared fields; only its type survives the evaluation.
    Object(Box<str>),
}

/// A map with distinct keys, in the order they were added.
#[derive(Debug, Clone, Default)]
pub struct ValueMap {
    entries: Vec<(Value, Value)>,
    /// Entry numbers ordered by key, when there are enough entries to pay for it.
    order: Vec<u32>,
}

const INDEXED_FROM: usize = 12;

impl ValueMap {
    /// Of entries with the same key the last one counts.
    pub fn new(entries: Vec<(Value, Value)>) -> Self {
        let mut map = ValueMap::default();
        for (key, value) in entries {
            let found = map.entries.iter_mut().find(|entry| same_key(entry.0.as_val(), key.as_val()));
            match found {
                Some(entry) => entry.1 = value,
                None => map.entries.push((key, value)),
            }
        }
        map.index();
        map
    }

    /// Entries whose keys are known to be distinct.
    pub(crate) fn from_distinct(entries: Vec<(Value, Value)>) -> Self {
        let mut map = ValueMap { entries, order: Vec::new() };
        map.index();
        map
    }

    fn index(&mut self) {
        if self.entries.len() <= INDEXED_FROM {
            return;
        }
        let entries = &self.entries;
        let key = |index: u32| entries.get(index as usize).map_or(Val::Null, |entry| entry.0.as_val());
        let mut order: Vec<u32> = (0..entries.len()).filter_map(|index| u32::try_from(index).ok()).collect();
        order.sort_by(|&left, &right| compare_keys(key(left), key(right)));
        self.order = order;
    }

    /// All entries.
    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    pub(crate) fn find(&self, key: Val<'_>) -> Option<Val<'_>> {
        let candidates: &mut dyn Iterator<Item = &(Value, Value)> = if self.order.is_empty() {
            &mut self.entries.iter()
        } else {
            let entry = |index: &u32| self.entries.get(*index as usize);
            let below =
                |index: &u32| entry(index).is_some_and(|found| compare_keys(found.0.as_val(), key).is_lt());
            let at = self.order.partition_point(below);
            let run = self.order.get(at..).unwrap_or(&[]);
            &mut run
                .iter()
                .map_while(entry)
                .take_while(move |found| compare_keys(found.0.as_val(), key).is_eq())
        };
        let mut numeric = None;
        for (candidate, value) in candidates {
            if same_key(candidate.as_val(), key) {
                return Some(value.as_val());
            }
            if numeric.is_none() && super::key_equal(candidate.as_val(), key) {
                numeric = Some(value.as_val());
            }
        }
        numeric
    }
}

impl Value {
    /// The same value, borrowed.
    pub fn as_val(&self) -> Val<'_> {
        match self {
            Value::Null => Val::Null,
            Value::Bool(value) => Val::Bool(*value),
            Value::Int(value) => Val::Int(*value),
            Value::Uint(value) => Val::Uint(*value),
            Value::Double(value) => Val::Double(*value),
            Value::String(text) => Val::Str(text),
            Value::Bytes(bytes) => Val::Bytes(bytes),
            Value::List(items) => Val::List(List::Values(items)),
            Value::Map(map) => Val::Map(Map::Values(map)),
            Value::Duration(nanoseconds) => Val::Duration(*nanoseconds),
            Value::Timestamp(timestamp) => Val::Timestamp(*timestamp),
            Value::Type(name) => Val::Type(name),
            Value::Optional(None) => Val::Optional(None),
            // The content of a constant optional is only ever looked at through the owned value.
            Value::Optional(Some(_)) => Val::Optional(None),
            Value::Opaque(opaque) => Val::Opaque(opaque),
            Value::Object(name) => Val::Type(name),
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl From<&Val<'_>> for Value {
    fn from(val: &Val<'_>) -> Self {
        match *val {
            Val::Null => Value::Null,
            Val::Bool(value) => Value::Bool(value),
            Val::Int(value) => Value::Int(value),
            Val::Uint(value) => Value::Uint(value),
            Val::Double(value) => Value::Double(value),
            Val::Str(text) => Value::String(text.into()),
            Val::Bytes(bytes) => Value::Bytes(bytes.into()),
            Val::List(list) => Value::List(list.iter().map(|item| Value::from(&item)).collect()),
            Val::Map(map) => {
                let entries = map.iter().map(|(key, value)| (Value::from(&key), Value::from(&value)));
                Value::Map(ValueMap::from_distinct(entries.collect()))
            }
            Val::Duration(nanoseconds) => Value::Duration(nanoseconds),
            Val::Timestamp(timestamp) => Value::Timestamp(timestamp),
            Val::Type(name) => Value::Type(name.into()),
            Val::Optional(content) => Value::Optional(content.map(|content| Box::new(Value::from(content)))),
            Val::Opaque(opaque) => Value::Opaque(opaque.clone()),
            Val::Object(Object { type_name, .. }) => Value::Object((*type_name).into()),
            Val::Claims(_) => Value::Object("kubernetes.claims".into()),
        }
    }
}
