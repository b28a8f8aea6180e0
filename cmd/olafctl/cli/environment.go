// Package cli contains the parts that olafctl's commands share: their environment, common flags, the output of results
// and progress, stored runs, and exit codes.
package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// Env contains everything outside the process that a command may use. Tests can replace each part.
type Env struct {
	Args           []string // the command line without the program
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Hostname       func() (string, error)
	Executable     func() (string, error) // path of this program, for child processes
	// Interactive is set if stderr is a terminal that can redraw a line.
	Interactive bool
	// Width is the width of standard output in characters; 0 if it is not a terminal.
	Width int
	// Terminal is set if stdin and stdout are a terminal, so that a dashboard or a question can be shown.
	Terminal bool
	// Asks is set if stdin and stderr are a terminal, so that a question can be answered.
	Asks bool
	// Systems, Devices and Published are the known systems, devices and published experiments. Declared returns the
	// metrics of a system's runs.
	Systems   system.Set
	Devices   testbed.Devices
	Published experiments.Set
	Declared  archive.Declarations
	// Programs are the switch programs whose tables agents and controllers know.
	Programs []program.Description
	// Layouts turns documents of stored experiments into tables and figures.
	Layouts archive.Layouts
	// Readers read the documents of stored measurements.
	Readers result.Readers
	// SweepCommands returns the commands whose runs can be swept; WorkCommands adds those whose jobs only workers run.
	SweepCommands, WorkCommands func(*Env) sweep.Commands
	// Bus finds cards.
	Bus pcie.Bus
	// OpenCapture starts a capture from an interface.
	OpenCapture func(live.Options) (testbed.Frames, error)
	// TLS contains the flags for connections to agents.
	TLS ClientTLS
	// Push copies this program, without asking, to hosts of ssh:// addresses that lack it.
	Push bool
}

// System returns the environment of this process. The caller adds systems, devices and experiments.
func System() *Env {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		width = 0 // a file or a pipe
	}
	return &Env{
		Width: width,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Now: time.Now, Hostname: os.Hostname, Executable: os.Executable,
		Interactive: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
		Terminal:    term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())),
		Asks:        term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		Bus:         pcie.HostBus(),
		OpenCapture: openLive,
	}
}

// Screen returns the terminal behind stdout for a dashboard that moves the cursor.
func (e *Env) Screen() io.Writer { return text.Raw(e.Stdout) }

// Redraw replaces the current line of stderr.
func (e *Env) Redraw(line string) {
	fmt.Fprint(text.Raw(e.Stderr), "\r\x1b[K")
	fmt.Fprint(e.Stderr, line)
}

// UserPath returns the path of one of olafctl's files below the folder in a variable or, if it is not set, below a folder
// in the user's home. It returns "" if there is neither.
func (e *Env) UserPath(variable, inHome string, path ...string) string {
	dir := e.Getenv(variable)
	if home := e.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, inHome)
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir, "olafctl"}, path...)...)
}

// HostName returns the name of this host, or "unknown".
func (e *Env) HostName() string {
	if host, err := e.Hostname(); err == nil {
		return host
	}
	return "unknown"
}

// View returns the settings for printing a page. The width comes from COLUMNS or, if it is not set, from the terminal.
// Without a terminal, it is the width of a plain page.
func (e *Env) View(explain bool) text.View {
	said := 0
	if n, err := strconv.Atoi(e.Getenv("COLUMNS")); err == nil && n > 0 {
		said = n
	}
	return text.View{Width: cmp.Or(said, e.Width, text.PlainWidth), Explain: explain}
}
