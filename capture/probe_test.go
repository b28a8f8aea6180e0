package capture

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// busyLink is a link on which a frame arrives every millisecond. The frame with the given number is a probe frame.
type busyLink struct {
	Source
	probe, seen int
}

func (l *busyLink) Next(p *Packet) error {
	time.Sleep(time.Millisecond)
	if l.seen++; l.seen == l.probe {
		p.Data = EncodeProbe(make([]byte, 6), []byte("token"))
	} else {
		p.Data = EncodeProbe(make([]byte, 6), []byte("another token"))
	}
	return nil
}

// TestProbeOnABusyLink checks that a probe frame is found among other frames, and that these do not extend the time.
func TestProbeOnABusyLink(t *testing.T) {
	for name, c := range map[string]struct {
		probe   int
		cancels time.Duration
		arrives bool
		takes   time.Duration
		err     error
	}{
		"it arrives":  {probe: 7, cancels: time.Hour, arrives: true, takes: 7 * time.Millisecond},
		"never":       {cancels: time.Hour, takes: time.Second},
		"interrupted": {cancels: 10*time.Millisecond - 1, takes: 10 * time.Millisecond, err: context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.cancels)
			defer cancel()
			began := time.Now()
			arrived, err := AwaitProbe(ctx, &busyLink{probe: c.probe}, []byte("token"), time.Second)
			if took := time.Since(began); arrived != c.arrives || !errors.Is(err, c.err) || took != c.takes {
				t.Errorf("%s: arrived %v after %v, %v; want %v after %v, %v", name, arrived, took, err, c.arrives, c.takes, c.err)
			}
		})
	}
}
