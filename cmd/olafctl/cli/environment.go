// Package cli is what olafctl's commands have in common: what they may touch of the world outside, flags that several
// take, how results and progress are printed, how runs are kept, and exit codes.
package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
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

// Env is everything a command may touch of the world outside, so that tests can stand in for it.
type Env struct {
	Args           []string // the command line, without the program
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Hostname       func() (string, error)
	Executable     func() (string, error) // this program, for child processes
	// Interactive says that stderr is a terminal that can redraw a line.
	Interactive bool
	// Width is how many characters a line of standard output has; 0 where it is no terminal.
	Width int
	// Terminal says that stdin and stdout are a terminal, so that a person can be shown a dashboard or asked.
	Terminal bool
	// Asks says that stdin and stderr are a terminal, so that a person can answer a question.
	Asks bool
	// Systems are those that there are. Devices can be opened, and Published experiments be carried out; Declared says what the runs
	// of a system measure.
	Systems   system.Set
	Devices   testbed.Devices
	Published experiments.Set
	Declared  archive.Declarations
	// Programs are the switch programs whose tables agents and controllers know.
	Programs []program.Description
	// Layouts says how documents of kept experiments become tables and figures.
	Layouts archive.Layouts
	// Readers read the documents of kept measurements.
	Readers result.Readers
	// SweepCommands returns the commands whose runs can be swept; WorkCommands adds those whose jobs only workers run.
	SweepCommands, WorkCommands func(*Env) sweep.Commands
	// Bus is where cards are found, and CardClock how time passes for them; nil is this host's clock.
	Bus       pcie.Bus
	CardClock pcie.Clock
	// OpenCapture starts to capture from an interface.
	OpenCapture func(live.Options) (testbed.Frames, error)
	// TLS is what a command's flags say about agents over a network.
	TLS ClientTLS
}

// System is the world of a process. What it was built of is the caller's.
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

// Screen returns the terminal of stdout, for a dashboard that moves the cursor itself.
func (e *Env) Screen() io.Writer { return text.Raw(e.Stdout) }

// Redraw replaces the line on which the cursor of stderr stands.
func (e *Env) Redraw(line string) {
	fmt.Fprint(text.Raw(e.Stderr), "\r\x1b[K")
	fmt.Fprint(e.Stderr, line)
}

// View is how a page is printed: as wide as COLUMNS says, else the terminal, else a plain page.
func (e *Env) View(explain bool) text.View {
	said := 0
	if n, err := strconv.Atoi(e.Getenv("COLUMNS")); err == nil && n > 0 {
		said = n
	}
	return text.View{Width: cmp.Or(said, e.Width, text.PlainWidth), Explain: explain}
}
