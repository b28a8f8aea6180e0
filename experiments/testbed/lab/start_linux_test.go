package lab

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
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

// TestNameIsReleasedLast checks that a holder that ends, by a request or by a signal, releases its name after its devices
// are closed, so that a new holder of that name finds them free. Requests that arrive meanwhile find the testbed absent.
func TestNameIsReleasedLast(t *testing.T) {
	for _, end := range []string{"request", "signal"} {
		name := nameFor(end)
		h, err := ClaimName(name)
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan error, 2)
		h.OnRemove(func() error {
			if other, err := ClaimName(name); !errors.Is(err, ErrExists) {
				t.Errorf("%s: while a device is closed, a new holder gets %+v, %v; want ErrExists", end, other, err)
			}
			go func() {
				_, err := Show(name)
				answers <- err
			}()
			go func() { answers <- cmp.Or(Down(name), ErrAbsent) }() // it is removed, or was removed before
			return nil
		})
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Hold(ctx) }()
		if end == "request" {
			if err := Down(name); err != nil {
				t.Errorf("%s: %v", end, err)
			}
		}
		interrupt()
		if err := <-ended; err != nil {
			t.Errorf("%s: the holder ended with %v", end, err)
		}
		for range 2 {
			if err := <-answers; !errors.Is(err, ErrAbsent) {
				t.Errorf("%s: a request at the end returns %v, want ErrAbsent", end, err)
			}
		}
		if _, err := Show(name); !errors.Is(err, ErrAbsent) || slices.Contains(ListHeld(), name) {
			t.Errorf("%s: the name is still used, %v", end, err)
		}
	}
}
