//! Values that own their contents.

use super::compare::{compare_keys, same_key};
use super::{List, Map, Object, ValueRef};
use crate::instant::Timestamp;
use crate::opaque::Opaque;

/// An owned value.
#[derive(Debug, Clone)]
pub enum Value {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// An unsigned 64-bit integer.
    Uint(u64),
    /// A double.
    Double(f64),
    /// A string.
    String(Box<str>),
    /// A byte string.
    Bytes(Box<[u8]>),
    /// A list.
    List(Box<[Value]>),
    /// A map.
    Map(ValueMap),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A timestamp.
    Timestamp(Timestamp),
    /// A type, by its name.
    Type(Box<str>),
    /// An optional value.
    Optional(Option<Box<Value>>),
    /// A value of one of the Kubernetes types.
    Opaque(Opaque),
    /// A value with declared fields; only the name of its type is kept.
    Object(Box<str>),
}

/// A map with distinct keys, in insertion order.
#[derive(Debug, Clone, Default)]
pub struct ValueMap {
    entries: Vec<(Value, Value)>,
    /// Entry indexes sorted by key; empty for small maps.
    order: Vec<u32>,
}

const MAX_LINEAR_ENTRIES: usize = 12;

impl ValueMap {
    /// Creates a map. Of entries with the same key, the last value is kept.
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

    /// Creates a map from entries with distinct keys.
    pub(crate) fn from_distinct(entries: Vec<(Value, Value)>) -> Self {
        let mut map = ValueMap { entries, order: Vec::new() };
        map.index();
        map
    }

    fn index(&mut self) {
        if self.entries.len() <= MAX_LINEAR_ENTRIES {
            return;
        }
        let entries = &self.entries;
        let key = |index: u32| entries.get(index as usize).map_or(ValueRef::Null, |entry| entry.0.as_val());
        let mut order: Vec<u32> = (0..entries.len()).filter_map(|index| u32::try_from(index).ok()).collect();
        order.sort_by(|&left, &right| compare_keys(key(left), key(right)));
        self.order = order;
    }

    /// All entries.
    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    pub(crate) fn find(&self, key: ValueRef<'_>) -> Option<ValueRef<'_>> {
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
            if numeric.is_none() && super::finds_key(candidate.as_val(), key) {
                numeric = Some(value.as_val());
            }
        }
        numeric
    }
}

impl Value {
    /// Borrows the value.
    pub fn as_val(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Bool(value) => ValueRef::Bool(*value),
            Value::Int(value) => ValueRef::Int(*value),
            Value::Uint(value) => ValueRef::Uint(*value),
            Value::Double(value) => ValueRef::Double(*value),
            Value::String(text) => ValueRef::Str(text),
            Value::Bytes(bytes) => ValueRef::Bytes(bytes),
            Value::List(items) => ValueRef::List(List::Values(items)),
            Value::Map(map) => ValueRef::Map(Map::Values(map)),
            Value::Duration(nanoseconds) => ValueRef::Duration(*nanoseconds),
            Value::Timestamp(timestamp) => ValueRef::Timestamp(*timestamp),
            Value::Type(name) => ValueRef::Type(name),
            Value::Optional(None) => ValueRef::Optional(None),
            // The content of a constant optional is read only through the owned value.
            Value::Optional(Some(_)) => ValueRef::Optional(None),
            Value::Opaque(opaque) => ValueRef::Opaque(opaque),
            Value::Object(name) => ValueRef::Type(name),
        }
    }

    /// The content of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The content of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl From<&ValueRef<'_>> for Value {
    fn from(val: &ValueRef<'_>) -> Self {
        match *val {
            ValueRef::Null => Value::Null,
            ValueRef::Bool(value) => Value::Bool(value),
            ValueRef::Int(value) => Value::Int(value),
            ValueRef::Uint(value) => Value::Uint(value),
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::Str(text) => Value::String(text.into()),
            ValueRef::Bytes(bytes) => Value::Bytes(bytes.into()),
            ValueRef::List(list) => Value::List(list.iter().map(|item| Value::from(&item)).collect()),
            ValueRef::Map(map) => {
                let entries = map.iter().map(|(key, value)| (Value::from(&key), Value::from(&value)));
                Value::Map(ValueMap::from_distinct(entries.collect()))
            }
            ValueRef::Duration(nanoseconds) => Value::Duration(nanoseconds),
            ValueRef::Timestamp(timestamp) => Value::Timestamp(timestamp),
            ValueRef::Type(name) => Value::Type(name.into()),
            ValueRef::Optional(content) => {
                Value::Optional(content.map(|content| Box::new(Value::from(content))))
            }
            ValueRef::Opaque(opaque) => Value::Opaque(opaque.clone()),
            ValueRef::Object(Object { type_name, .. }) => Value::Object((*type_name).into()),
            ValueRef::Claims(_) => Value::Object("kubernetes.claims".into()),
        }
    }
}
