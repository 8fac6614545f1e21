// Command cluster runs a real control plane on loopback for tests: etcd, kube-apiserver with RBAC and structured
// authentication, and a small OIDC issuer. It needs no privilege and leaves nothing behind.
//
//	cluster up    -dir D   starts one in the background and says how to use it
//	cluster down  -dir D   stops exactly that one and removes its directory
//	cluster run   -dir D   the same in the foreground: one JSON line when ready; ends with a signal or, with
//	                       -until-stdin-closes, with whoever started it
//	cluster token -dir D   an exec credential plugin: prints an ExecCredential with a fresh token
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// settings is what the command line says.
type settings struct {
	directory string
	binaries  string
	apiserver repeated
	stdin     bool
	token     tokenRequest
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("usage: cluster up|down|run|token -dir DIRECTORY")
	}
	verb := arguments[0]
	settings, err := parse(verb, arguments[1:])
	if err != nil {
		return err
	}
	switch verb {
	case "up":
		return up(settings)
	case "down":
		return down(settings)
	case "run":
		return serve(settings)
	case "token":
		return printToken(settings)
	}
	return fmt.Errorf("unknown verb `%s`", verb)
}

func parse(verb string, arguments []string) (settings, error) {
	var out settings
	flags := flag.NewFlagSet("cluster "+verb, flag.ContinueOnError)
	flags.StringVar(&out.directory, "dir", "", "where the cluster's files are")
	flags.StringVar(&out.binaries, "bin", besideUs(), "where etcd, kube-apiserver and kubectl are")
	flags.Var(&out.apiserver, "apiserver-flag", "a further flag for kube-apiserver, for example --authentication-token-webhook-config-file=F (repeatable)")
	flags.BoolVar(&out.stdin, "until-stdin-closes", false, "run: stop when standard input ends")
	flags.StringVar(&out.token.Subject, "sub", "ann", "token: the subject")
	flags.Var((*repeated)(&out.token.Groups), "group", "token: a group (repeatable; developers if none)")
	flags.StringVar(&out.token.Audience, "aud", audience, "token: the audience")
	flags.DurationVar(&out.token.Lifetime, "lifetime", defaultLifetime, "token: how long it lives")
	flags.BoolVar(&out.token.Bare, "bare", false, "token: print the token alone, not an ExecCredential")
	if err := flags.Parse(arguments); err != nil {
		return out, err
	}
	if out.directory == "" || flags.NArg() > 0 {
		return out, fmt.Errorf("usage: cluster %s -dir DIRECTORY", verb)
	}
	var err error
	if out.directory, err = filepath.Abs(out.directory); err != nil {
		return out, err
	}
	out.binaries, err = filepath.Abs(out.binaries)
	return out, err
}

func besideUs() string {
	path, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(path)
}

// repeated is a flag that may be given more than once.
type repeated []string

func (r *repeated) String() string { return strings.Join(*r, " ") }

func (r *repeated) Set(value string) error {
	*r = append(*r, value)
	return nil
}
