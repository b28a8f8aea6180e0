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

// exitPipe is the exit code that shells report for a program whose output pipe was closed: 128 plus the number of
// SIGPIPE.
const exitPipe = 141

// pipe is standard output that may be read by another program. If the reader, such as head, closes it, the work is
// interrupted and cleaned up as with Ctrl-C, but without a message.
type pipe struct {
	io.Writer
	onClosed func()
	broken   atomic.Bool
	written  atomic.Bool
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if n > 0 {
		p.written.Store(true)
	}
	if errors.Is(err, syscall.EPIPE) {
		p.broken.Store(true)
		p.onClosed()
	}
	return n, err
}

// runPiped runs a command line whose standard output may be a pipe.
func runPiped(ctx context.Context, env *cli.Env, args []string) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // the default action would end the process at once
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	out := &pipe{Writer: env.Stdout, onClosed: gone}
	said := env.Stderr
	file, ok := env.Stdout.(*os.File)
	lost := ok && perhapsClosed(file)
	env.Stdout, env.Stderr = out, silencer{said, out}
	code := run(ctx, env, args)
	if out.broken.Load() {
		return exitPipe
	}
	if lost && out.written.Load() {
		fmt.Fprintln(said, "note: the results are lost: standard output is closed, or is /dev/null opened for "+
			"reading too")
	}
	return code
}

// silencer is a writer that discards output after the reader has closed the pipe.
type silencer struct {
	io.Writer
	of *pipe
}

func (q silencer) Write(b []byte) (int, error) {
	if q.of.broken.Load() {
		return len(b), nil
	}
	return q.Writer.Write(b)
}
