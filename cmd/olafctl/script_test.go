package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/olafctl/olaf/cmd/olafctl/mute"
	"github.com/olafctl/olaf/internal/test/peer"
	"github.com/olafctl/olaf/internal/test/raced"
)

var update = flag.Bool("update", false, "rewrite the golden output of the scripts")

func TestMain(m *testing.M) {
	mute.End()
	testscript.Main(unconfigured{m}, map[string]func(){
		"olafctl": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
			defer stop()
			env := process()
			if err := addFakeCard(env); err != nil {
				panic(err)
			}
			os.Exit(start(ctx, env, os.Args[1:]))
		},
		"attached": attachedProgram,
	})
}

// unconfigured runs the tests without the user's configuration. Scripts have their own home folder.
type unconfigured struct{ *testing.M }

func (m unconfigured) Run() int {
	_ = os.Setenv("OLAFCTL_CONFIG", os.DevNull) // cannot fail
	return m.M.Run()
}

// TestScripts runs commands as a user does. Each file in testdata/script is one story.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"find":      find,
			"until":     until,
			"digest":    digest,
			"restamp":   restamp,
			"recode":    recode,
			"smalldisk": smalldisk,
			"readonly":  readonly,
			"largedisk": largedisk,
			"figures":   figures,
		},
		Condition: condition,
		Setup: func(e *testscript.Env) error {
			e.Setenv("OLAFCTL_HOME", e.WorkDir+"/store")
			e.Setenv("GORACE", os.Getenv("GORACE")) // 'make race' lets commands end without waiting a second
			cache, err := os.UserCacheDir()         // compile once for all scripts
			e.Setenv("XDG_CACHE_HOME", cache)
			return err
		},
	})
}

// exits CODE COMMAND… runs a command and checks its exit code. Output goes to stdout and stderr, as with exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := err.(*exec.ExitError); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want := args[0]; want != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// condition reports whether a script's condition is met. [peer:tshark] means that the program is installed, [mount]
// that file systems may be mounted, [real] that namespaces may be created and programs loaded into the kernel, and
// [race] that the race detector is on, which makes a script many times slower.
func condition(name string) (bool, error) {
	switch name {
	case "mount":
		return canMount()
	case "race":
		return raced.IsWatched(), nil
	case "real":
		return canReal(), nil
	}
	program, ok := strings.CutPrefix(name, "peer:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	path, err := peer.FindProgram(program)
	return path != "", err
}
