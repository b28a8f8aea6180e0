package lab

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// asSlowHolder makes the test's program a holder whose testbed does not come up before it is asked to end.
const asSlowHolder = "OLAFCTL_LAB_SLOW_HOLDER"

// holdSlowly reports its steps at a third file, which a killed process cannot do.
func holdSlowly() error {
	steps := os.NewFile(3, "steps")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	_, err := io.WriteString(steps, "started\n")
	<-ctx.Done()
	_, err2 := io.WriteString(steps, "removed\n")
	return errors.Join(err, err2)
}

// TestInterruptedHolderRemovesItsPart checks that if the start of a holder is interrupted, as by the end of an agent,
// the holder is asked to end rather than killed, so that it releases its reservation.
func TestInterruptedHolderRemovesItsPart(t *testing.T) {
	steps, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer steps.Close()
	holder := exec.Command(os.Args[0])
	holder.Env, holder.ExtraFiles = append(os.Environ(), asSlowHolder+"=1"), []*os.File{theirs}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := StartHolder(ctx, holder, nil)
		ended <- errors.Join(err, theirs.Close())
	}()
	lines := bufio.NewReader(steps)
	if line, err := lines.ReadString('\n'); line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted start ends with %v", err)
	}
	if line, err := lines.ReadString('\n'); line != "removed\n" {
		t.Errorf("the holder ended with %q, %v; want it to remove what it made", line, err)
	}
}
