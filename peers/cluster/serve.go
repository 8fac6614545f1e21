package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

// serve runs a cluster in the foreground until it is told to stop, and removes its directory then.
func serve(settings settings) (failure error) {
	// A child is killed when the thread that started it ends; this one lives as long as we do.
	runtime.LockOSThread()
	if err := claim(settings.directory); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	children := &children{directory: settings.directory}
	control, err := listen(settings.directory, cancel)
	if err != nil {
		return err
	}
	defer func() {
		children.stop()
		failure = errors.Join(failure, os.RemoveAll(settings.directory))
		control.release()
	}()
	if settings.stdin {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	description, err := start(ctx, settings, children)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(description); err != nil {
		return err
	}
	return children.watch(ctx)
}

// claim makes the directory, which must be new or empty.
func claim(directory string) error {
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(directory, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("`%s` is not empty: a cluster that is still up (cluster down), or one that was killed (remove the directory)", directory)
	}
	return nil
}

// watch waits for the end: asked for, or because a process was lost.
func (c *children) watch(ctx context.Context) error {
	lost := make(chan struct{}, len(c.running))
	for _, each := range c.running {
		go func() {
			<-each.ended
			lost <- struct{}{}
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-lost:
		return c.lost()
	}
}

// control is the socket through which `cluster down` asks for the end: it sends a byte, and its connection is closed when all
// is over. A connection that sends nothing only sees that somebody is there.
type control struct {
	listener net.Listener
	asked    chan net.Conn
}

// The socket's name has to stay short whatever the directory's is, so that it is reached from within.
const controlName = "control"

func listen(directory string, stop func()) (*control, error) {
	if err := os.Chdir(directory); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", controlName)
	if err != nil {
		return nil, err
	}
	out := &control{listener, make(chan net.Conn, 16)}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go out.hear(connection, stop)
		}
	}()
	return out, nil
}

func (c *control) hear(connection net.Conn, stop func()) {
	if count, _ := connection.Read(make([]byte, 1)); count == 0 {
		connection.Close()
		return
	}
	select {
	case c.asked <- connection:
	default: // sixteen others wait already
		connection.Close()
	}
	stop()
}

func (c *control) release() {
	c.listener.Close()
	for {
		select {
		case connection := <-c.asked:
			connection.Close()
		default:
			return
		}
	}
}
