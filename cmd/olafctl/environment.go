package main

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/pcie"
)

// environment is everything a command may touch of the world outside, so that tests can stand in for it.
type environment struct {
	args           []string // the command line, without the program
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
	hostname       func() (string, error)
	executable     func() (string, error) // this program, for child processes
	// interactive says that stderr is a terminal that can redraw a line.
	interactive bool
	// terminal says that stdin and stdout are a terminal, so that a person can be shown a dashboard or asked.
	terminal bool
	devices  testbed.Devices // that can be opened
	// bus is where cards are found, and cardClock how time passes for them; nil is this host's clock.
	bus       pcie.Bus
	cardClock pcie.Clock
	// openCapture starts to capture from an interface.
	openCapture func(live.Options) (testbed.Frames, error)
	// tls is what a command's flags say about agents over a network.
	tls clientTLS
}

func osEnvironment() *environment {
	return &environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, now: time.Now, hostname: os.Hostname, executable: os.Executable,
		interactive: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
		terminal:    term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())),
		devices:     devices(),
		bus:         pcie.System(),
		openCapture: openLive,
	}
}
