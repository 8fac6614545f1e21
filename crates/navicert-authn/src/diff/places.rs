//! Values to give to claims, and the parts of claims that expressions read.

use serde_json::{Map, Value};

/// A part of the input of an expression: a variable, then names of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// `claims`, `user`, or the variable of a comprehension.
    pub(super) variable: String,
    /// The fields, outermost first.
    pub(super) fields: Vec<String>,
}

/// Values to give to places; `None` removes the claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Assignment(Vec<(Place, Option<Value>)>);

impl Assignment {
    /// Gives one place a value.
    pub(super) fn one(place: Place, value: Option<Value>) -> Self {
        Assignment(vec![(place, value)])
    }

    /// Both; where they disagree, the other one counts.
    pub(super) fn with(mut self, other: &Assignment) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// The places and their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Place, Option<&Value>)> {
        self.0.iter().map(|(place, value)| (place, value.as_ref()))
    }

    /// Removes what is given to a variable, and returns the value that it has then.
    pub(super) fn take(&mut self, variable: &str) -> Option<Value> {
        let mut found = None;
        for (place, value) in &self.0 {
            if place.variable == variable
                && let Some(value) = value
            {
                set(found.get_or_insert(Value::Null), &place.fields, value.clone());
            }
        }
        self.0.retain(|(place, _)| place.variable != variable);
        found
    }

    /// Changes the claims of a token.
    pub(super) fn apply(&self, claims: &mut Map<String, Value>) {
        for (place, value) in &self.0 {
            let Some((first, rest)) = place.fields.split_first() else { continue };
            match value {
                Some(value) => set(claims.entry(first.as_str()).or_insert(Value::Null), rest, value.clone()),
                None if rest.is_empty() => {
                    claims.remove(first);
                }
                None => {
                    if let Some((last, path)) = rest.split_last()
                        && let Some(Value::Object(parent)) = find_mut(claims.get_mut(first), path)
                    {
                        parent.remove(last);
                    }
                }
            }
        }
    }
}

impl Place {
    /// A claim.
    pub(super) fn claim(name: &str) -> Self {
        Place { variable: "claims".to_owned(), fields: vec![name.to_owned()] }
    }

    /// A field of this place.
    pub(super) fn field(mut self, name: &str) -> Self {
        self.fields.push(name.to_owned());
        self
    }
}

/// Sets a value below another one; whatever is in the way is replaced by an object.
fn set(target: &mut Value, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *target = value;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(members) = target {
        set(members.entry(first.as_str()).or_insert(Value::Null), rest, value);
    }
}

fn find_mut<'v>(value: Option<&'v mut Value>, path: &[String]) -> Option<&'v mut Value> {
    path.iter().fold(value, |value, name| value?.get_mut(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn assignments_set_and_remove_nested_claims() {
        let nested = Place::claim("a").field("b").field("c");
        let mut claims = json!({"a": 1, "d": 2}).as_object().unwrap().clone();
        Assignment::one(nested.clone(), Some(json!("x"))).apply(&mut claims);
        assert_eq!(Value::Object(claims.clone()), json!({"a": {"b": {"c": "x"}}, "d": 2}));
        let gone = Assignment::one(nested, None).with(&Assignment::one(Place::claim("d"), None));
        gone.apply(&mut claims);
        assert_eq!(Value::Object(claims), json!({"a": {"b": {}}}));
        let local = Place { variable: "g".to_owned(), fields: vec!["n".to_owned()] };
        let mut both = Assignment::one(Place::claim("x"), Some(json!(1)));
        both = both.with(&Assignment::one(local, Some(json!("y"))));
        assert_eq!(both.take("g"), Some(json!({"n": "y"})));
        assert_eq!(both, Assignment::one(Place::claim("x"), Some(json!(1))));
    }
}
