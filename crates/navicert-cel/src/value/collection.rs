//! Lists, maps and objects with different backing stores.

use super::claims::unescape;
use super::compare::{compare_keys, same_key};
use super::{Arena, Value, ValueMap, ValueRef};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How JSON is converted to CEL values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Convert whole numbers to `int` or `uint`; otherwise every number is a `double`, as in token claims.
    pub integers: bool,
    /// Resolve the escapes `__dot__`, `__dash__`, `__slash__` and `__underscores__` in selected keys.
    pub unescape: bool,
}

/// A list.
#[derive(Debug, Clone, Copy)]
pub enum List<'a> {
    /// Elements built during evaluation.
    Refs(&'a [ValueRef<'a>]),
    /// A JSON array.
    Json(&'a [serde_json::Value], Reading),
    /// Strings owned by the host program.
    Strings(&'a [String]),
    /// A constant, or a value owned by the host program.
    Values(&'a [Value]),
    /// The integers from zero to this length, exclusive.
    Range(usize),
}

impl<'a> List<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            List::Refs(items) => items.len(),
            List::Json(items, _) => items.len(),
            List::Strings(items) => items.len(),
            List::Values(items) => items.len(),
            List::Range(count) => *count,
        }
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at an index, starting at zero.
    #[inline]
    pub fn get(&self, index: usize) -> Option<ValueRef<'a>> {
        match *self {
            List::Refs(items) => items.get(index).copied(),
            List::Json(items, reading) => items.get(index).map(|item| ValueRef::from_json(item, reading)),
            List::Strings(items) => items.get(index).map(|item| ValueRef::Str(item)),
            List::Values(items) => items.get(index).map(Value::as_val),
            List::Range(count) if index < count => i64::try_from(index).ok().map(ValueRef::Int),
            List::Range(_) => None,
        }
    }

    /// The elements in order.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }

    /// The same list without resolution of escaped field names on its elements.
    pub(crate) fn without_unescape(self) -> Self {
        match self {
            List::Json(items, reading) => List::Json(items, Reading { unescape: false, ..reading }),
            other => other,
        }
    }
}

/// The entries of a map built during evaluation; keys are distinct.
#[derive(Debug)]
pub struct Pairs<'a> {
    entries: &'a [(ValueRef<'a>, ValueRef<'a>)],
    /// Entry indexes sorted by key; empty for small maps.
    order: &'a [u32],
}

/// Maps with more entries than this use binary search.
const MAX_LINEAR_ENTRIES: usize = 12;

impl<'a> Pairs<'a> {
    /// Builds a map. Of entries with the same key, the last value is kept at the first position. Returns `None` if
    /// the arena is full.
    pub fn build(arena: &'a Arena, entries: &[(ValueRef<'a>, ValueRef<'a>)]) -> Option<&'a Pairs<'a>> {
        let mut kept: Vec<(ValueRef<'a>, ValueRef<'a>)> = Vec::with_capacity(entries.len());
        if entries.len() > MAX_LINEAR_ENTRIES {
            let mut order: Vec<usize> = (0..entries.len()).collect();
            let key = |index: usize| entries.get(index).map_or(ValueRef::Null, |entry| entry.0);
            order.sort_by(|&left, &right| compare_keys(key(left), key(right)).then(left.cmp(&right)));
            let mut survivors: Vec<(usize, usize)> = Vec::with_capacity(entries.len());
            for index in order {
                match survivors.last_mut() {
                    Some((_, last)) if same_key(key(*last), key(index)) => *last = index,
                    _ => survivors.push((index, index)),
                }
            }
            survivors.sort_unstable();
            for (_, last) in survivors {
                kept.extend(entries.get(last).copied());
            }
        } else {
            for &(key, value) in entries {
                match kept.iter_mut().find(|entry| same_key(entry.0, key)) {
                    Some(entry) => entry.1 = value,
                    None => kept.push((key, value)),
                }
            }
        }
        let mut order: Vec<u32> = Vec::new();
        if kept.len() > MAX_LINEAR_ENTRIES {
            order.extend((0..kept.len()).filter_map(|index| u32::try_from(index).ok()));
            let key = |index: u32| kept.get(index as usize).map_or(ValueRef::Null, |entry| entry.0);
            order.sort_by(|&left, &right| compare_keys(key(left), key(right)));
        }
        let entries = arena.slice(&kept)?;
        let order = arena.slice(&order)?;
        arena.alloc(Pairs { entries, order })
    }

    fn find(&self, key: ValueRef<'_>) -> Option<ValueRef<'a>> {
        if self.order.is_empty() {
            return find_linear(&self.entries.iter().copied(), key);
        }
        let entry = |index: &u32| self.entries.get(*index as usize).copied();
        let at = self.order.partition_point(|index| {
            entry(index).is_some_and(|(candidate, _)| compare_keys(candidate, key).is_lt())
        });
        let run = self.order.get(at..).unwrap_or(&[]);
        let equals = run.iter().map_while(entry).take_while(|pair| compare_keys(pair.0, key).is_eq());
        find_linear(&equals, key)
    }
}

/// The entry with the same key, otherwise one with a numerically equal key.
fn find_linear<'a>(
    entries: &(impl Iterator<Item = (ValueRef<'a>, ValueRef<'a>)> + Clone),
    key: ValueRef<'_>,
) -> Option<ValueRef<'a>> {
    let exact = entries.clone().find(|entry| same_key(entry.0, key));
    match key {
        ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Double(_) => {
            exact.or_else(|| entries.clone().find(|entry| super::finds_key(entry.0, key)))
        }
        _ => exact,
    }
    .map(|entry| entry.1)
}

/// A map.
#[derive(Debug, Clone, Copy)]
pub enum Map<'a> {
    /// A JSON object.
    Json(&'a serde_json::Map<String, serde_json::Value>, Reading),
    /// Entries built during evaluation.
    Pairs(&'a Pairs<'a>),
    /// A constant, or a value owned by the host program.
    Values(&'a ValueMap),
    /// Names with lists of strings, such as `user.extra`; the flag enables escaped keys.
    Lists(&'a BTreeMap<String, Vec<String>>, bool),
}

impl<'a> Map<'a> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Map::Json(members, _) => members.len(),
            Map::Pairs(pairs) => pairs.entries.len(),
            Map::Values(map) => map.entries().len(),
            Map::Lists(lists, _) => lists.len(),
        }
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks up a key without resolving escapes.
    pub fn find(&self, key: ValueRef<'_>) -> Option<ValueRef<'a>> {
        match *self {
            Map::Json(members, reading) => match key {
                ValueRef::Str(name) => members.get(name).map(|value| ValueRef::from_json(value, reading)),
                _ => None,
            },
            Map::Lists(lists, _) => match key {
                ValueRef::Str(name) => lists.get(name).map(|values| ValueRef::List(List::Strings(values))),
                _ => None,
            },
            Map::Pairs(pairs) => pairs.find(key),
            Map::Values(map) => map.find(key),
        }
    }

    /// Looks up a key of a selection or index, resolving escapes.
    pub(crate) fn select(&self, key: ValueRef<'_>, escaped: bool) -> Option<ValueRef<'a>> {
        let escapes =
            escaped && matches!(self, Map::Json(_, Reading { unescape: true, .. }) | Map::Lists(_, true));
        match key {
            ValueRef::Str(name) if escapes && name.contains("__") => {
                let name = unescape(name).unwrap_or(Cow::Borrowed(name));
                self.find(ValueRef::Str(&name))
            }
            _ => self.find(key),
        }
    }

    /// The entries; those of JSON objects are sorted by key.
    pub fn iter(self) -> Box<dyn Iterator<Item = (ValueRef<'a>, ValueRef<'a>)> + 'a> {
        match self {
            Map::Json(members, reading) => Box::new(
                members
                    .iter()
                    .map(move |(key, value)| (ValueRef::Str(key), ValueRef::from_json(value, reading))),
            ),
            Map::Pairs(pairs) => Box::new(pairs.entries.iter().copied()),
            Map::Values(map) => {
                Box::new(map.entries().iter().map(|(key, value)| (key.as_val(), value.as_val())))
            }
            Map::Lists(lists, _) => Box::new(
                lists.iter().map(|(key, values)| (ValueRef::Str(key), ValueRef::List(List::Strings(values)))),
            ),
        }
    }
}

/// A value with named fields of declared types.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// Name of the type.
    pub type_name: &'a str,
    /// Every declared field and its value.
    pub fields: &'a [(&'a str, ValueRef<'a>)],
}

impl<'a> Object<'a> {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<ValueRef<'a>> {
        self.fields.iter().find(|field| field.0 == name).map(|field| field.1)
    }
}
