package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// up starts `cluster run` in the background and waits for its line.
func up(settings settings) error {
	if connection, err := dial(settings.directory); err == nil {
		connection.Close()
		description, err := readDescription(settings.directory)
		if err != nil {
			return fmt.Errorf("a cluster is coming up there already: %w", err)
		}
		explain("A control plane is up already", description)
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	arguments := []string{"run", "-dir", settings.directory, "-bin", settings.binaries}
	for _, each := range settings.apiserver {
		arguments = append(arguments, "-apiserver-flag", each)
	}
	command := exec.Command(program, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ready, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	log, err := os.CreateTemp("", "navicert-cluster-*.log")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	command.Stderr = log
	started := time.Now()
	if err := command.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		command.Wait()
		return fmt.Errorf("the cluster did not come up: %s", tail(log.Name()))
	}
	description, err := readDescription(settings.directory)
	if err != nil {
		return err
	}
	explain(fmt.Sprintf("A control plane is up after %.1f s", time.Since(started).Seconds()), description)
	return nil
}

func explain(news string, description description) {
	fmt.Printf(`%s: %s

  . %s
  kubectl get namespaces      # with a client certificate
  kubectl --kubeconfig "$NAVICERT_CLUSTER/jwt.kubeconfig" auth whoami      # with a token from an exec plugin
`, news, description.Server, filepath.Join(description.Directory, "env"))
}

// down asks the cluster of a directory to stop and waits until it has.
func down(settings settings) error {
	connection, err := dial(settings.directory)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Println("No cluster is up.")
		return nil
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		// It was killed, and took its processes with it.
		fmt.Println("No cluster is up; removing what a killed one left.")
		return os.RemoveAll(settings.directory)
	}
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := connection.Write([]byte{'s'}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, connection); err != nil {
		return fmt.Errorf("the cluster did not stop: %w", err)
	}
	fmt.Println("The cluster is down.")
	return nil
}

func dial(directory string) (net.Conn, error) {
	if err := os.Chdir(directory); err != nil {
		return nil, err
	}
	return net.Dial("unix", controlName)
}
