package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// children are the processes this one started and has to end.
type children struct {
	directory string
	running   []*child
}

type child struct {
	name    string
	command *exec.Cmd
	// ended is closed once the process was waited for.
	ended chan struct{}
}

// start starts a program whose output goes to a file of its name.
func (c *children) start(name, path string, flags []string) error {
	log, err := os.Create(c.log(name))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(path, flags...)
	command.Stdout, command.Stderr = log, log
	command.Dir = c.directory
	command.SysProcAttr = ownedByUs()
	if err := command.Start(); err != nil {
		return err
	}
	started := &child{name, command, make(chan struct{})}
	c.running = append(c.running, started)
	go func() {
		command.Wait()
		close(started.ended)
	}()
	return nil
}

func (c *children) log(name string) string { return filepath.Join(c.directory, name+".log") }

func (c *children) ids() map[string]int {
	out := map[string]int{}
	for _, each := range c.running {
		out[each.name] = each.command.Process.Pid
	}
	return out
}

// lost gives an error if a process has ended by itself.
func (c *children) lost() error {
	for _, each := range c.running {
		select {
		case <-each.ended:
			return fmt.Errorf("%s ended by itself (%v); the end of its log:\n%s", each.name, each.command.ProcessState, tail(c.log(each.name)))
		default:
		}
	}
	return nil
}

// stop ends them in the opposite order, kindly first.
func (c *children) stop() {
	for index := len(c.running) - 1; index >= 0; index-- {
		each := c.running[index]
		each.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-each.ended:
		case <-time.After(10 * time.Second):
			each.command.Process.Kill()
			<-each.ended
		}
	}
	c.running = nil
}

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if limit := 4000; len(text) > limit {
		text = text[len(text)-limit:]
	}
	return string(text)
}
