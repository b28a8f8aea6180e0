package pcivm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/rtl"
	"github.com/olafctl/olaf/fpga/twin"
)

// realCard is a card that uses the host's time.
type realCard struct {
	*pcietest.Card
	tables *pcietest.Tables
	last   time.Time
	errs   error
	send   func(frame []byte) // called with frames that leave port 1; nil drops them
	feeds  *realCard          // the card whose generator sends to port 0; nil for none
}

// blocks lists the kinds of OLAF blocks with which the cases run.
var blocks = map[string]func(*pcietest.Tables) (pcietest.Blocks, error){
	"twin": func(t *pcietest.Tables) (pcietest.Blocks, error) { return twin.New(twin.Config{Tables: t, Wire: true}) },
	"rtl":  openRTL,
}

func newCard(kind string) (*realCard, error) {
	c := &realCard{tables: pcietest.NewTables(), last: time.Now()}
	var err error
	if c.Card, err = pcietest.NewWithBlocks(func() (pcietest.Blocks, error) { return blocks[kind](c.tables) }); err != nil {
		return nil, err
	}
	c.tables.Attach(c.Card)
	return c, c.Wait(context.Background(), olaf.Millisecond) // it has been on for a while
}

// pass advances the card's time up to now, after the time of the card that feeds it, and sends the frames that have
// left.
func (c *realCard) pass() {
	now := time.Now()
	d := olaf.Duration(now.Sub(c.last)) * olaf.Nanosecond
	if c.feeds != nil {
		c.errs = errors.Join(c.errs, c.feeds.Wait(context.Background(), d))
	}
	if err := c.Wait(context.Background(), d); err != nil && c.errs == nil {
		c.errs = err
	}
	c.last = now
	frames, err := c.Sent(1)
	if err != nil && c.errs == nil {
		c.errs = fmt.Errorf("frames: %w", err)
	}
	for _, f := range frames {
		if c.send != nil {
			c.send(f.Data)
		}
	}
}

// live advances the card's time while nothing accesses the card, until the test ends, so that frames leave without
// accesses.
func (b *board) live(t *testing.T) {
	done, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done); <-stopped })
	ticks := time.NewTicker(time.Millisecond)
	go func() {
		defer close(stopped)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				b.with(b.card.pass)
			case <-done:
				return
			}
		}
	}()
}

// slowRTL is the RTL at the speed at which it runs. A microsecond of its time takes a millisecond, so each wait is cut
// short.
type slowRTL struct{ *rtl.Card }

// mostAtOnce is the maximum time that passes in the RTL between two accesses.
const mostAtOnce = 4 * olaf.Microsecond

var rtlBuild sync.Mutex

func openRTL(t *pcietest.Tables) (pcietest.Blocks, error) {
	rtlBuild.Lock()
	defer rtlBuild.Unlock()
	c, err := rtl.Open(context.Background(), rtl.Config{Tables: t, Patience: patience})
	if err != nil {
		return nil, err
	}
	c.Record(true)
	return slowRTL{c}, nil
}

func (s slowRTL) Sleep(ctx context.Context, d olaf.Duration) error {
	return s.Card.Sleep(ctx, min(d, mostAtOnce))
}
