//go:build !linux

package main

import "syscall"

// ownedByUs puts a child into a group of its own, away from the terminal's signals.
func ownedByUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
