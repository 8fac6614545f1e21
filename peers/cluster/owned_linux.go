package main

import "syscall"

// ownedByUs puts a child into a group of its own, away from the terminal's signals, and ends it should we end
// without a chance to say so.
func ownedByUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
