package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/olafctl/olaf/experiments/testbed"
)

// HeldPrefix is the first part of the line that a holder prints when its part of a testbed is up.
const HeldPrefix = "up: "

// reservationCheck is the interval at which a holder checks whether its reservation has ended.
const reservationCheck = time.Second

// HoldPart builds and holds a host's part of a testbed until the context ends, the reservation ends, or a request asks
// it to stop. It calls ready when the part is up.
func HoldPart(ctx context.Context, part *HostPart, a *testbed.Access, ready func() error) error {
	listener, err := listenAs(part.Testbed)
	if err != nil {
		return err
	}
	h := &Holder{listener: listener, part: part, reservations: a.LocalReservations()}
	if err := h.reservations.Take(part.reservation(), part.Lasts); err != nil {
		return errors.Join(err, listener.Close())
	}
	if part.Nodes != nil {
		self, err := a.SSH.Executable()
		if err != nil {
			return errors.Join(err, h.Close())
		}
		l, err := Up(part.Nodes, Options{Here: part.Host, Command: func(args ...string) *exec.Cmd { return exec.Command(self, args...) }})
		if err != nil {
			return errors.Join(err, h.Close())
		}
		h.adopt(l)
	}
	if err := ready(); err != nil {
		return errors.Join(err, h.Close())
	}
	within, end := context.WithCancel(ctx)
	defer end()
	go h.watchReservation(within, end)
	return h.Hold(within)
}

// watchReservation calls end when the reservation was released or has expired. The host's boot clock determines when it
// expires.
func (h *Holder) watchReservation(ctx context.Context, end func()) {
	for {
		left, err := h.reservationLeft()
		if err != nil || left <= 0 {
			end()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(left, reservationCheck)):
		}
	}
}

// reservationLeft returns the remaining time of the holder's reservation, or 0 if there is no reservation.
func (h *Holder) reservationLeft() (time.Duration, error) {
	all, err := h.reservations.List()
	own := h.part.reservation()
	if i := slices.IndexFunc(all, func(r testbed.Reservation) bool { return r.IsSame(&own) }); i >= 0 {
		return all[i].Left, nil
	}
	return 0, err
}

// holdHere starts a holder on this host that outlives this process. If a holder of the same part is already running, it
// extends that holder's reservation.
func holdHere(ctx context.Context, part *HostPart, a *testbed.Access) error {
	there, err := stateHere(part.Testbed)
	switch {
	case err != nil:
		return err
	case there != nil && !slices.Equal(there.Lines, part.lines()):
		return fmt.Errorf("%w and differs: %s; 'olafctl testbed down %[2]s' first, or give the file another name", ErrExists, part.Testbed)
	case there != nil:
		return a.LocalReservations().Take(part.reservation(), part.Lasts)
	}
	self, err := a.SSH.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(part)
	if err != nil {
		return err
	}
	_, err = StartHolder(ctx, exec.Command(self, "testbed", "hold"), text)
	return err
}

// StartHolder starts a holder in a new session, passes the testbed to its standard input, and returns the line that it
// prints when the testbed is up. The holder outlives this process. If the context ends before the line is printed, the
// holder is asked to remove what it has built.
func StartHolder(ctx context.Context, holder *exec.Cmd, stdin []byte) (line string, err error) {
	holder.Stdin, holder.Dir = bytes.NewReader(stdin), "/"
	holder.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := holder.StdoutPipe()
	if err != nil {
		return "", err
	}
	words, err := holder.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := holder.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = holder.Process.Signal(syscall.SIGTERM) }) // the holder may have ended
	line, err = bufio.NewReader(out).ReadString('\n')
	if stop() && err == nil && strings.HasPrefix(line, HeldPrefix) {
		go func() { _ = holder.Wait() }() // the holder may end before this process
		return line, nil
	}
	why, _ := io.ReadAll(words)
	_ = holder.Wait() // the reason is in stderr
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("%w: %s", ErrNotUp, bytes.TrimPrefix(bytes.TrimSpace(why), []byte("olafctl: ")))
}
