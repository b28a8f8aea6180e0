package sshlink

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/olafctl/olaf"
)

// Patience limits how long either side waits for a sign of life. Both send one every beat.
const (
	Patience = 10 * time.Second
	beat     = 2 * time.Second
)

// ErrHeadGone reports that an agent has lost the other side of its standard input.
var ErrHeadGone = olaf.NewError(olaf.Device, "the host that started this agent is gone")

// The first words of an agent's lines.
const (
	helloWord = "olafctl-agent"
	readyWord = "olafctl-ready"
	goWord    = "go"
)

// Attend exchanges greetings with the other side over in and out, and waits until that side accepts this build. The
// returned context ends with ErrHeadGone when in ends or when there is no sign of life during Patience. The process
// then exits within another Patience. The caller must call ready when it serves.
func Attend(ctx context.Context, in io.Reader, out io.Writer, b Build) (alive context.Context, ready func() error, err error) {
	return attend(ctx, in, out, b, os.Exit)
}

func attend(ctx context.Context, in io.Reader, out io.Writer, b Build, exit func(int)) (alive context.Context, ready func() error,
	err error) {
	var mu sync.Mutex
	write := func(line string) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintln(out, line)
		return err
	}
	if err := write(strings.Join([]string{helloWord, b.Hash, b.Version, b.Platform}, " ")); err != nil {
		return nil, nil, ErrHeadGone
	}
	alive, end := context.WithCancelCause(ctx)
	lose := func() {
		time.AfterFunc(Patience, func() { exit(exitLost) }) // a device that cannot be closed must not keep the agent
		end(ErrHeadGone)
	}
	patience := time.AfterFunc(Patience, lose)
	accepted := make(chan struct{})
	go readSigns(in, patience, accepted, lose)
	select {
	case <-accepted:
	case <-alive.Done():
		return nil, nil, context.Cause(alive)
	}
	go func() {
		for tick := time.NewTicker(beat); ; {
			select {
			case <-alive.Done():
				tick.Stop()
				return
			case <-tick.C:
				_ = write("") // a broken connection is noticed at in
			}
		}
	}()
	return alive, func() error { return write(readyWord) }, nil
}

// exitLost is the exit code of an agent that could not close its device, which counts as a failure of the device.
const exitLost = 3

// readSigns reads signs of life until the input ends. The first contains goWord.
func readSigns(in io.Reader, patience *time.Timer, accepted chan<- struct{}, lose func()) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		patience.Reset(Patience)
		if accepted != nil && lines.Text() == goWord {
			close(accepted)
			accepted = nil
		}
	}
	patience.Stop()
	lose()
}
