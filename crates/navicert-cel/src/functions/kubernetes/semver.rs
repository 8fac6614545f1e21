//! Functions of `kubernetes.Semver`.

use crate::error::InvalidArgument;
use crate::fault::Cause;
use crate::functions::{Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::library::kubernetes::semver::{Version, VersionError};
use crate::opaque::Opaque;
use crate::value::ValueRef;

/// All functions.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("string_to_semver", "semver(string): kubernetes.Semver", semver),
    ("string_bool_to_semver", "semver(string, bool): kubernetes.Semver", semver),
    ("is_semver_string", "isSemver(string): bool", is_semver),
    ("is_semver_string_bool", "isSemver(string, bool): bool", is_semver),
    ("semver_is_greater_than", "(kubernetes.Semver).isGreaterThan(kubernetes.Semver): bool", greater),
    ("semver_is_less_than", "(kubernetes.Semver).isLessThan(kubernetes.Semver): bool", less),
    ("semver_compare_to", "(kubernetes.Semver).compareTo(kubernetes.Semver): int", compare_to),
    ("semver_major", "(kubernetes.Semver).major(): int", major),
    ("semver_minor", "(kubernetes.Semver).minor(): int", minor),
    ("semver_patch", "(kubernetes.Semver).patch(): int", patch),
];

fn parse<'a>(args: &[ValueRef<'a>]) -> Result<Result<Version, VersionError>, Cause<'a>> {
    match args {
        [ValueRef::Str(text)] => Ok(Version::parse(text, false)),
        [ValueRef::Str(text), ValueRef::Bool(normalize)] => Ok(Version::parse(text, *normalize)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn semver<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match parse(args)? {
        Ok(version) => call.opaque(Opaque::Semver(Box::new(version))),
        Err(error) => Err(call.invalid(InvalidArgument::Version, error)),
    }
}

fn is_semver<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Bool(parse(args)?.is_ok()))
}

fn one<'a>(args: &[ValueRef<'a>]) -> Result<&'a Version, Cause<'a>> {
    match args {
        [ValueRef::Opaque(Opaque::Semver(version))] => Ok(version),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn two<'a>(args: &[ValueRef<'a>]) -> Result<(&'a Version, &'a Version), Cause<'a>> {
    match args {
        [ValueRef::Opaque(Opaque::Semver(left)), ValueRef::Opaque(Opaque::Semver(right))] => {
            Ok((left, right))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn greater<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    two(args).map(|(left, right)| ValueRef::Bool(left > right))
}

fn less<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    two(args).map(|(left, right)| ValueRef::Bool(left < right))
}

fn compare_to<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    two(args).map(|(left, right)| ValueRef::Int(left.cmp(right) as i64))
}

fn major<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    one(args).map(|version| ValueRef::Int(version.major()))
}

fn minor<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    one(args).map(|version| ValueRef::Int(version.minor()))
}

fn patch<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    one(args).map(|version| ValueRef::Int(version.patch()))
}
