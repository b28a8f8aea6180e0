package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// exitPipe is what a shell shows of a program whose reader went away: 128 and the signal's number.
const exitPipe = 141

// pipe stands between the program and whoever reads its results. A reader that leaves, as head does, ends the work as Ctrl-C
// does, so that nothing is left behind, and without a word: nobody asked for more.
type pipe struct {
	io.Writer
	gone    func()
	broken  atomic.Bool
	written atomic.Bool
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if n > 0 {
		p.written.Store(true)
	}
	if errors.Is(err, syscall.EPIPE) {
		p.broken.Store(true)
		p.gone()
	}
	return n, err
}

// piped runs a command line whose results somebody reads.
func piped(ctx context.Context, env *cli.Env, args []string) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // which would end the process where it stands
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	out := &pipe{Writer: env.Stdout, gone: gone}
	said := env.Stderr
	file, ok := env.Stdout.(*os.File)
	lost := ok && perhapsClosed(file)
	env.Stdout, env.Stderr = out, hushed{said, out}
	code := run(ctx, env, args)
	if out.broken.Load() {
		return exitPipe
	}
	if lost && out.written.Load() {
		fmt.Fprintln(said, "note: nobody reads the results: standard output is closed, or is /dev/null opened for reading too")
	}
	return code
}

// hushed lets nothing through once the reader is gone.
type hushed struct {
	io.Writer
	of *pipe
}

func (q hushed) Write(b []byte) (int, error) {
	if q.of.broken.Load() {
		return len(b), nil
	}
	return q.Writer.Write(b)
}
