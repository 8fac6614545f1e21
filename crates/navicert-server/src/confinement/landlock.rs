//! Landlock: which files can be opened. Also no listener on another TCP port, no signals and no abstract sockets to
//! processes outside, where the kernel supports it.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, RestrictSelf,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, make_bitflags,
};

use super::{ConfinedFiles, MeasureState};

/// The newest version whose rights are restricted, as far as the kernel knows them. Later ones restrict sockets by path,
/// which an external signer needs.
const NEWEST: ABI = ABI::V7;

/// Whether the kernel supports it, and in which version.
pub(super) fn preview() -> MeasureState {
    // Without flags this only asks for the version.
    match RestrictSelf::default().no_new_privs(false).apply() {
        Ok(status) => state(status.landlock),
        Err(error) => MeasureState::Unavailable(error.to_string()),
    }
}

/// Restricts this thread.
pub(super) fn apply(files: &ConfinedFiles) -> MeasureState {
    match restrict(files) {
        Ok(status) => state(status),
        Err(error) => MeasureState::Unavailable(navicert_types::error_chain(&error)),
    }
}

fn state(status: LandlockStatus) -> MeasureState {
    match status {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            let version = kernel_abi.map_or_else(|| effective_abi.to_string(), |version| version.to_string());
            MeasureState::Enforced(format!("ABI {version}"))
        }
        LandlockStatus::NotEnabled => {
            MeasureState::Unavailable("the kernel was started without Landlock (`lsm=`)".to_owned())
        }
        LandlockStatus::NotImplemented => MeasureState::Unavailable(
            "the kernel has no Landlock, or a container's filter blocks it".to_owned(),
        ),
    }
}

fn restrict(files: &ConfinedFiles) -> Result<LandlockStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let rules = files
        .readable()
        .map(|path| (path, READ))
        .chain(files.appendable().map(|path| (path, APPEND)))
        .chain(files.replaceable().map(|path| (path, REPLACE)));
    for (path, access) in rules {
        // A path that has vanished since needs no rule.
        let Ok(opened) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(ruleset.restrict_self()?.landlock)
}

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
/// A log that is created again after its rotation.
const APPEND: BitFlags<AccessFs> = make_bitflags!(AccessFs::{WriteFile | MakeReg});
/// A file that is written anew under another name and renamed.
const REPLACE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{WriteFile | MakeReg | RemoveFile | Truncate});
