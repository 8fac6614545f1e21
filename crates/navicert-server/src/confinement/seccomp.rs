//! Seccomp: system calls that fail with `EPERM`. No program can be started, no executable memory can be mapped (which is
//! how a library is loaded), and interfaces of the kernel that a server never uses are closed.
//!
//! This is a list of what fails, not of what is permitted. The system calls of a server are those of its C library,
//! allocator and runtime; a new version of any of them adds one, and a list of permitted calls then breaks a server at
//! run time, in paths that tests may miss. A call that fails with an error, as on an older kernel, is handled.
//!
//! The length of the list costs nothing: since Linux 5.11 the kernel records once which calls a filter permits whatever
//! their arguments are, and does not run the filter for them. Measured on Linux 6.18, any filter costs 50 ns per call, with 60 rules
//! or with one. A GET through the proxy has six calls (two each of `epoll_wait`, `recvfrom` and `writev`).

use std::collections::BTreeMap;

use libc::{PROT_EXEC, SHM_EXEC};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use super::MeasureState;

/// Starting programs.
const EXECUTION: &[i64] = &[libc::SYS_execve, libc::SYS_execveat, libc::SYS_personality];

/// Calls with an argument that makes memory executable: the call, the argument's index, the bit.
const EXECUTABLE_MEMORY: &[(i64, u8, i32)] = &[
    (libc::SYS_mmap, 2, PROT_EXEC),
    (libc::SYS_mprotect, 2, PROT_EXEC),
    (libc::SYS_pkey_mprotect, 2, PROT_EXEC),
    (libc::SYS_shmat, 2, SHM_EXEC),
];

/// What no server and no credential plugin uses.
const NEVER: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    // The kernel itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Interfaces that were often ways to more privileges. io_uring also bypasses this filter.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

#[cfg(target_arch = "x86_64")]
const OF_ARCHITECTURE: &[i64] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_kexec_file_load, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const OF_ARCHITECTURE: &[i64] = &[];

/// Whether this processor is supported.
pub(super) fn preview() -> MeasureState {
    match (architecture(), std::fs::exists("/proc/sys/kernel/seccomp")) {
        (None, _) => unsupported(),
        (_, Ok(false)) => MeasureState::Unavailable("the kernel has no seccomp filters".to_owned()),
        _ => MeasureState::Enforced("enforced".to_owned()),
    }
}

/// Restricts this thread. With `starts_programs`, programs can be started and memory made executable, because programs
/// inherit the filter.
pub(super) fn apply(starts_programs: bool) -> MeasureState {
    let Some(architecture) = architecture() else { return unsupported() };
    let applied = filter(starts_programs, architecture)
        .map_err(seccompiler::Error::from)
        .and_then(|program| seccompiler::apply_filter(&program));
    match applied {
        Ok(()) => MeasureState::Enforced("enforced".to_owned()),
        Err(error) => MeasureState::Unavailable(error.to_string()),
    }
}

fn unsupported() -> MeasureState {
    MeasureState::Unavailable(format!("no filter for {}", std::env::consts::ARCH))
}

fn architecture() -> Option<TargetArch> {
    TargetArch::try_from(std::env::consts::ARCH).ok()
}

fn filter(starts_programs: bool, architecture: TargetArch) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let denied = NEVER.iter().chain(OF_ARCHITECTURE);
    rules.extend(denied.map(|call| (*call, Vec::new())));
    if !starts_programs {
        rules.extend(EXECUTION.iter().map(|call| (*call, Vec::new())));
        for (call, argument, bit) in EXECUTABLE_MEMORY {
            let bit = u64::from(bit.unsigned_abs());
            let operator = SeccompCmpOp::MaskedEq(bit);
            let condition = SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator, bit)?;
            rules.insert(*call, vec![SeccompRule::new(vec![condition])?]);
        }
    }
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture)?;
    let mut program = without_second_numbering();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Denies the x32 system calls, which have other numbers and would pass every rule.
#[cfg(target_arch = "x86_64")]
fn without_second_numbering() -> BpfProgram {
    use seccompiler::sock_filter;
    const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS, at the offset of the number: 0
    const JUMP_IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const X32: u32 = 0x4000_0000; // __X32_SYSCALL_BIT
    let errno = u32::from(SeccompAction::Errno(libc::EPERM.unsigned_abs()));
    vec![
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: errno },
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn without_second_numbering() -> BpfProgram {
    BpfProgram::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_fits_the_kernel_and_denies_execution_unless_programs_are_started() {
        let architecture = architecture().unwrap();
        let (server, with_plugin) =
            (filter(false, architecture).unwrap(), filter(true, architecture).unwrap());
        assert!(with_plugin.len() < server.len() && server.len() < 4_096, "{}", server.len());
        // The number of a call is the constant of a comparison.
        let names = |program: &BpfProgram, call: i64| {
            program.iter().any(|instruction| instruction.code == 0x15 && i64::from(instruction.k) == call)
        };
        for call in [libc::SYS_execve, libc::SYS_execveat, libc::SYS_mprotect] {
            assert!(names(&server, call) && !names(&with_plugin, call), "{call}");
        }
        for call in NEVER.iter().chain(OF_ARCHITECTURE) {
            assert!(names(&server, *call) && names(&with_plugin, *call), "{call}");
        }
    }
}
