package host

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
)

// Answers answers the updates of a card's generator as a parameter server does: with an ACK for each delivered frame, into
// which the switch writes the queue's status on its way to the workers.
type Answers struct {
	plane            *plane
	fromServer, back *netlab.Socket
	listeners        []*listener
}

// StartAnswers starts answering, until the queue is configured again. onFrame is called by one goroutine with each ACK
// that reaches the workers, at an instant of the kernel's monotonic clock. ACKs count the clusters with an update
// inside or, if window is above 0, those that sent one in this window or the previous one, each with its weight.
func StartAnswers(c *realtime.Card, window olaf.Duration, weights []uint32, onFrame func(olaf.Time, olaf.Frame)) (*Answers, error) {
	p, ok := c.CurrentPlane().(*plane)
	if !ok {
		return nil, fmt.Errorf("%w: %s does not answer updates", fpga.ErrRefused, c.Identity().Address)
	}
	a := &Answers{plane: p}
	p.countActive(window, weights)
	if err := a.open(c, onFrame); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Answers) open(c *realtime.Card, onFrame func(olaf.Time, olaf.Frame)) (err error) {
	in, out := c.Cables()
	if a.fromServer, err = out.B.Packets(false); err != nil {
		return err
	}
	if a.back, err = in[0].B.Packets(false); err != nil {
		return err
	}
	ack := make([]byte, olaf.AckSize(0))
	for _, l := range []struct {
		at   *netlab.Interface
		take func([]byte)
	}{
		{in[0].A, func(b []byte) {
			if f, err := olaf.ParseFrame(b); err == nil && f.Kind() == olaf.KindAck {
				onFrame(toEngineTime(readClock()), f)
			}
		}},
		{out.A, func(b []byte) {
			a.plane.mark(b)
			_ = a.back.Send(b) // lost, as on any link
		}},
		{out.B, func(b []byte) { a.answer(b, ack) }},
	} {
		started, err := startListener(l.at, l.take)
		if err != nil {
			return err
		}
		a.listeners = append(a.listeners, started)
	}
	return nil
}

// answer sends the ACK for an update, without a model.
func (a *Answers) answer(b, ack []byte) {
	f, err := olaf.ParseFrame(b)
	if err != nil || f.Kind() != olaf.KindUpdate {
		return
	}
	u, to := f.Update(), f.Addresses()
	u.Lanes = 0
	back := olaf.Addresses{SrcMAC: to.DstMAC, DstMAC: to.SrcMAC, SrcIP: to.DstIP, DstIP: to.SrcIP, SrcPort: olaf.UDPPort}
	if n, err := olaf.EncodeAck(ack, &back, &u, olaf.QueueStatus{}, nil); err == nil {
		_ = a.fromServer.Send(ack[:n]) // lost, as on any link
	}
}

// Close stops answering.
func (a *Answers) Close() error {
	var errs []error
	for _, l := range a.listeners {
		errs = append(errs, l.Close())
	}
	for _, s := range []*netlab.Socket{a.fromServer, a.back} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	a.plane.countActive(0, nil)
	return errors.Join(errs...)
}
