use navicert_types::decode::{DecodeMode, decode};
use navicert_types::tree::{Syntax, parse};

use super::*;

fn read(text: &str) -> Result<ConfinementSettings, Vec<String>> {
    let node = parse(text.as_bytes(), Syntax::Yaml).unwrap();
    decode(&node, DecodeMode::Strict).map_err(|wrong| wrong.iter().map(ToString::to_string).collect())
}

fn enforced() -> ConfinementReport {
    let state = || MeasureState::Enforced("enforced".to_owned());
    ConfinementReport {
        no_new_privileges: state(),
        landlock: state(),
        seccomp: state(),
        unconfined_threads: Some(0),
    }
}

#[test]
fn every_measure_is_preferred_by_default() {
    assert_eq!(read("{}").unwrap(), ConfinementSettings::default());
    assert_eq!(ConfinementSettings::default().landlock, MeasureSetting::Preferred);
    let settings = read("{noNewPrivileges: required, landlock: off, seccomp: 'off'}").unwrap();
    assert_eq!(
        settings,
        ConfinementSettings {
            no_new_privileges: MeasureSetting::Required,
            landlock: MeasureSetting::Off,
            seccomp: MeasureSetting::Off,
        }
    );
}

#[test]
fn errors_name_the_field() {
    for (text, expected) in [
        ("{landlock: on}", "landlock: expected a string, found a boolean (line 1, column 12)"),
        ("{landlok: required}", "landlok: unknown field (line 1, column 2); did you mean `landlock`?"),
        ("{seccomp: strict}", "seccomp: expected one of `preferred`, `required`, `off` (line 1, column 11)"),
        (
            "{noNewPrivileges: off, landlock: off}",
            "line 1, column 1: `landlock` and `seccomp` need `noNewPrivileges`; set them to `off` as well",
        ),
    ] {
        let wrong = read(text).unwrap_err();
        assert!(wrong.iter().any(|one| one.starts_with(expected)), "{text}: {wrong:?}");
    }
    assert!(read("{noNewPrivileges: off, landlock: off, seccomp: off}").is_ok());
}

#[test]
fn programs_switch_off_landlock_and_permit_execution() {
    let program = Some("credential plugin `aws`".to_owned());
    let report = ConfinementPlan { program, ..ConfinementPlan::default() }.preview();
    assert_eq!(report.landlock.to_string(), "off: credential plugin `aws` would be confined too");
    if cfg!(target_os = "linux") {
        assert_eq!(
            report.seccomp.to_string(),
            "enforced, except for starting programs: credential plugin `aws`"
        );
        assert_eq!(report.no_new_privileges.to_string(), "enforced");
    }
    let settings = ConfinementSettings {
        landlock: MeasureSetting::Off,
        seccomp: MeasureSetting::Off,
        no_new_privileges: MeasureSetting::Off,
    };
    let report = ConfinementPlan { settings, ..ConfinementPlan::default() }.preview();
    for state in [report.no_new_privileges, report.landlock, report.seccomp] {
        assert_eq!(state.to_string(), "off: by configuration");
    }
}

#[test]
fn required_measure_that_is_missing_is_an_error() {
    let settings = ConfinementSettings { landlock: MeasureSetting::Required, ..Default::default() };
    assert_eq!(settings.check(&enforced()), Ok(()));
    let landlock = MeasureState::Unavailable("the kernel has none".to_owned());
    let missing = ConfinementReport { landlock, ..enforced() };
    assert_eq!(
        settings.check(&missing).unwrap_err().to_string(),
        "failed to confine the server: `confinement.landlock` is required, but unavailable: the kernel has none"
    );
    assert_eq!(ConfinementSettings::default().check(&missing), Ok(()));
    let threads = ConfinementReport { unconfined_threads: Some(2), ..enforced() };
    assert_eq!(
        settings.check(&threads).unwrap_err().to_string(),
        "failed to confine the server: `confinement.landlock` is required, but 2 threads existed before"
    );
}

#[test]
fn hint_is_empty_while_nothing_is_confined() {
    assert_eq!(read_hint(Path::new("/nowhere")), "");
}
