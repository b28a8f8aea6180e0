package backends

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/host"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// openKernel opens this machine's kernel as the switch between workers and a server in separate namespaces.
func openKernel(_ context.Context, name string, o testbed.OpenOptions) (*testbed.Parts, error) {
	if err := kernelNamed(name); err != nil {
		return nil, err
	}
	return openRealtime(xdp.NewBackend(dataplane.Mode(kernelModes[name])), o)
}

// openHost opens the engine in this process as the switch.
func openHost(built []program.Description, o testbed.OpenOptions) (*testbed.Parts, error) {
	p, err := openRealtime(host.NewBackend(built...), o)
	if err != nil {
		return nil, err
	}
	p.Cards[0].Device = hostCard{p.Cards[0].Device.(*realtimeCard)}
	return p, nil
}

// hostCard is a card whose updates can be answered.
type hostCard struct{ *realtimeCard }

// StartControl implements Answerer.
func (c hostCard) StartControl(o *testbed.Control) (func() (int64, error), error) {
	var mu realtime.Lock
	c.SetGate(func(w olaf.WorkerID, now olaf.Time) bool {
		mu.Lock()
		defer mu.Unlock()
		return int(w) >= len(o.Gates) || o.Gates[w].Sends(now)
	})
	answers, err := host.StartAnswers(c.Card, o.Window, o.Weights, func(now olaf.Time, f olaf.Frame) {
		mu.Lock()
		defer mu.Unlock()
		u := f.Update()
		for w, g := range o.Gates {
			if w == int(u.Worker) || u.Count > 1 && o.Clusters[w] == u.Cluster {
				g.RecordStatus(now, f.QueueStatus())
			}
		}
	})
	if err != nil {
		c.SetGate(nil)
		return nil, err
	}
	return func() (int64, error) { return c.SetGate(nil), answers.Close() }, nil
}

// openRealtime opens a card that runs in real time, with its capture and its tables.
func openRealtime(b dataplane.Backend, o testbed.OpenOptions) (*testbed.Parts, error) {
	if o.Workers > realtime.MaxHosts || o.Addresses > realtime.MaxAddresses {
		return nil, fmt.Errorf("%w with %d workers of %d addresses each; use up to %d workers of %d addresses",
			testbed.ErrBackend, o.Workers,
			o.Addresses, realtime.MaxHosts, realtime.MaxAddresses)
	}
	hosts := realtime.Hosts{Workers: o.Workers, Addresses: o.Addresses, Wires: map[int]realtime.Wire{}}
	if w := o.Wires.Workers; w != nil {
		hosts.Wires[0] = realtime.Wire(*w)
	}
	if w := o.Wires.Server; w != nil {
		hosts.Wires[hosts.Server()] = realtime.Wire(*w)
	}
	card, err := realtime.Open(b, hosts)
	if err != nil {
		return nil, err
	}
	tap, err := testbed.NewTap(card, func() (frames testbed.Frames, err error) {
		server := card.Server()
		err = server.Do(func() error {
			frames, err = live.Open(live.Options{Interface: server.Name, Stamps: live.Kernel})
			return err
		})
		return frames, err
	}, nil, time.Now, 0)
	if err != nil {
		return nil, errors.Join(err, card.Close())
	}
	tables := &realtimeTables{card: card}
	card.SetTables(func() aggregator.Admission { return tables.Tables() })
	return &testbed.Parts{
		Cards:  []testbed.Card{{Device: &realtimeCard{Card: card, tap: tap}, Tap: &realtimeTap{tap, card}}},
		Tables: tables, Profile: p4.Lab(), Hosts: hostsOf(card, o.Workers),
	}, nil
}

// hostsOf returns the namespaces in which the programs of workers and servers run.
func hostsOf(card *realtime.Card, workers int) *testbed.Hosts {
	if workers == 0 {
		return nil
	}
	h := &testbed.Hosts{Carried: card.Carry(), Server: testbed.Node{Address: card.ServerAddress(), Run: startOn(card.Server().Node)}}
	for i := range workers {
		at, address := card.Worker(i)
		h.Workers = append(h.Workers, testbed.Node{Address: address, Run: startOn(at.Node)})
	}
	return h
}

func startOn(n *netlab.Node) func(*exec.Cmd) (testbed.Process, error) {
	return func(cmd *exec.Cmd) (testbed.Process, error) {
		p, err := n.Start(cmd)
		if err != nil {
			return nil, err // not a Process that contains a nil pointer
		}
		return p, nil
	}
}

// realtimeCard is a card that closes its captures when it is closed.
type realtimeCard struct {
	*realtime.Card
	tap  *testbed.Tap
	ends *testbed.Capture // nil without a recorder
}

// RecordEnds starts or stops a capture of the frames sent by the workers and the frames received by the server.
func (c *realtimeCard) RecordEnds(on bool) error {
	if c.ends == nil && !on {
		return nil
	}
	err := c.SetVisible(on)
	if c.ends != nil {
		err = errors.Join(err, c.ends.Close())
		c.ends = nil
	}
	if err != nil || !on {
		return err
	}
	at := []testbed.End{{Name: testbed.EndNames[0], At: c.Workers()}, {Name: testbed.EndNames[1], At: c.Server()}}
	c.ends, err = testbed.OpenCapture(at...)
	return err
}

// Ends returns the current capture at both ends, or nil if there is none.
func (c *realtimeCard) Ends() testbed.Ends {
	if c.ends == nil {
		return nil // not an Ends that contains a nil pointer
	}
	return c.ends
}

// Close closes captures and card.
func (c *realtimeCard) Close() error {
	return errors.Join(c.RecordEnds(false), c.tap.Close(), c.Card.Close())
}

// realtimeTap adds the card's report to a run's capture. The report shows whether the engine made the same decisions
// and whether the output was on time.
type realtimeTap struct {
	*testbed.Tap
	card *realtime.Card
}

// Capture returns the quality of the last run's capture. The error matches fpga.ErrGone if a cable was removed; nothing
// can be measured after that.
func (t *realtimeTap) Capture() (*fpga.Capture, error) {
	if err := t.card.CheckIntact(); errors.Is(err, fpga.ErrGone) {
		return nil, err
	}
	c, err := t.Tap.Capture()
	if err != nil {
		return nil, err
	}
	if c.Decisions, err = t.card.Decisions(); err != nil {
		return nil, err
	}
	others, later, err := t.card.OtherFrames()
	if err != nil {
		return nil, err
	}
	c.Pacing, c.Others, c.OthersNow = t.card.Pacing(), &others, later
	c.Faults = append(t.card.Faults(), c.Faults...)
	return c, nil
}

// realtimeTables stores the table of workers, in which the data plane looks up frames. A frame finds either all changes
// of a batch or none of them.
type realtimeTables struct {
	agent.Embedded
	card *realtime.Card
}

// Commit replaces the state of the tables.
func (t *realtimeTables) Commit(s *agent.State) error {
	if err := t.card.SetSenders(sendersOf(s)); err != nil {
		return err
	}
	return t.Embedded.Commit(s)
}

// Publish applies a batch to the data plane. If the data plane rejects the batch, the card fails, because there is no
// other way to report the error.
func (t *realtimeTables) Publish(s *agent.State) {
	t.card.ReplaceSenders(sendersOf(s))
	t.Embedded.Publish(s)
}

// sendersOf returns the entries of the table vnp4_1.workers.
func sendersOf(s *agent.State) (list []dataplane.Sender) {
	s.Changes(func(c agent.Change) bool {
		if e := c.Entry; e != nil && e.Table == p4.TableWorkers {
			a := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, e.Key)))
			list = append(list, dataplane.Sender{Address: a, Cluster: olaf.ClusterID(e.Params[0]),
				Worker: olaf.WorkerID(e.Params[1])})
		}
		return true
	})
	return list
}
