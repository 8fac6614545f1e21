//! Functions of `kubernetes.NamedFormat`.

use crate::functions::{ARENA_FULL, Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::library::kubernetes::format::NamedFormat;
use crate::opaque::Opaque;
use crate::value::ValueRef;

macro_rules! constant {
    ($name:ident, $format:ident) => {
        fn $name<'a>(call: &Call<'a>, _: &[ValueRef<'a>]) -> FunctionResult<'a> {
            call.opaque(Opaque::Format(NamedFormat::$format))
        }
    };
}

constant!(dns1123_label, Dns1123Label);
constant!(dns1123_subdomain, Dns1123Subdomain);
constant!(dns1035_label, Dns1035Label);
constant!(qualified_name, QualifiedName);
constant!(dns1123_label_prefix, Dns1123LabelPrefix);
constant!(dns1123_subdomain_prefix, Dns1123SubdomainPrefix);
constant!(dns1035_label_prefix, Dns1035LabelPrefix);
constant!(label_value, LabelValue);
constant!(uri, Uri);
constant!(uuid, Uuid);
constant!(byte, Byte);
constant!(date, Date);
constant!(datetime, DateTime);

/// All functions.
#[rustfmt::skip]
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("format-named", "format.named(string): optional_type(kubernetes.NamedFormat)", named),
    ("format-validate", "(kubernetes.NamedFormat).validate(string): optional_type(list(string))", validate),
    ("format.dns1123Label", "format.dns1123Label(): kubernetes.NamedFormat", dns1123_label),
    ("format.dns1123Subdomain", "format.dns1123Subdomain(): kubernetes.NamedFormat", dns1123_subdomain),
    ("format.dns1035Label", "format.dns1035Label(): kubernetes.NamedFormat", dns1035_label),
    ("format.qualifiedName", "format.qualifiedName(): kubernetes.NamedFormat", qualified_name),
    ("format.dns1123LabelPrefix", "format.dns1123LabelPrefix(): kubernetes.NamedFormat", dns1123_label_prefix),
    ("format.dns1123SubdomainPrefix", "format.dns1123SubdomainPrefix(): kubernetes.NamedFormat", dns1123_subdomain_prefix),
    ("format.dns1035LabelPrefix", "format.dns1035LabelPrefix(): kubernetes.NamedFormat", dns1035_label_prefix),
    ("format.labelValue", "format.labelValue(): kubernetes.NamedFormat", label_value),
    ("format.uri", "format.uri(): kubernetes.NamedFormat", uri),
    ("format.uuid", "format.uuid(): kubernetes.NamedFormat", uuid),
    ("format.byte", "format.byte(): kubernetes.NamedFormat", byte),
    ("format.date", "format.date(): kubernetes.NamedFormat", date),
    ("format.datetime", "format.datetime(): kubernetes.NamedFormat", datetime),
];

fn named<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(name)] => match NamedFormat::from_name(name) {
            Some(format) => {
                let format = call.opaque(Opaque::Format(format))?;
                call.some(format)
            }
            None => Ok(ValueRef::Optional(None)),
        },
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

/// Returns an optional list of errors; none means that the string is valid.
fn validate<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::Opaque(Opaque::Format(format)), ValueRef::Str(text)] = args else {
        return Err(NO_SUCH_OVERLOAD);
    };
    let problems = format.validate(text);
    if problems.is_empty() {
        return Ok(ValueRef::Optional(None));
    }
    let mut list = call.arena.list();
    for problem in problems {
        list.push(call.text(&problem)?).ok_or(ARENA_FULL)?;
    }
    call.some(ValueRef::List(list.finish()))
}
