package play

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/pktgen"
)

// Traffic is the result of sending frames through a switch while a series of batches changes its tables.
type Traffic struct {
	Unit  string `json:"unit"`
	Hosts int    `json:"hosts"`
	// Frames counts frames that left the switch for the server. Copies counts copies of its answers for members of
	// multicast groups. Each was compared with the tables before and after the current batch.
	Frames int `json:"frames"`
	Copies int `json:"copies"`
	// Mixed counts frames and answers that matched neither set of tables, or that matched the old set after the batch
	// was acknowledged or after an earlier frame had matched the new set. First describes the first such frame or
	// answer.
	Mixed int    `json:"mixed"`
	First string `json:"first_mixed,omitempty"`
	// Lost counts frames that never left.
	Lost    int64   `json:"lost"`
	Batches []Batch `json:"told"`
}

// Batch describes one batch of changes, and which tables the frames since the previous batch found.
type Batch struct {
	Slot    int  `json:"slot"`
	Changes int  `json:"changes"`
	Refused bool `json:"refused"` // one change was impossible, so none was made
	// Before and After count frames and answers for hosts whose entries the batch changes, by the set of tables that
	// they matched.
	Before int `json:"found_before"`
	After  int `json:"found_after"`
}

// The hosts' frames: one every 100 ns, from each host in turn. trafficStep is the interval between checks.
const (
	trafficFrame = olaf.Size(256)
	trafficGap   = 25 // cycles
	trafficPlay  = 20_000
	trafficDepth = 64
	trafficStep  = 40 * olaf.Microsecond
)

// UnderTraffic applies the slots of a plan from a given slot on to a unit's switch, in one batch per slot. Meanwhile
// the testbed's generator sends frames from all hosts through the switch, and the server answers to the hosts'
// multicast groups. UnderTraffic checks which tables every frame and every answer found. First it tries a batch with an
// impossible change, which must have no effect.
//
// The testbed must have virtual time and return frames. The error matches ErrPlay or comes from the testbed or the
// context.
func UnderTraffic(ctx context.Context, bed *testbed.Testbed, plan *sched.Plan, unit string, from int,
	hosts p4ctl.Tables) (*Traffic, error) {
	if len(hosts.Servers) == 0 {
		hosts.Servers = []netip.Addr{pktgen.DefaultAddressing().Server}
	}
	from, first, err := firstChange(plan, unit, from, hosts)
	if err != nil {
		return nil, err
	}
	if _, err := bed.Tables.AddPrograms(ctx, p4inc.Describe()); err != nil {
		return nil, err
	}
	if _, err := bed.Tables.Sync(ctx, hosts); err != nil {
		return nil, err
	}
	w := &watch{bed: bed, dev: bed.Cards[0].Device,
		report: &Traffic{Unit: unit, Hosts: len(hosts.Workers)}, tables: hosts}
	if err := w.startTraffic(ctx); err != nil {
		return nil, err
	}
	if err := w.tryDuplicate(ctx, from, first.Tables); err != nil {
		return nil, err
	}
	for slot := from; slot < plan.Slots; slot++ {
		o, err := PlanOrders(plan, unit, slot, w.tables)
		if err == nil {
			err = w.writeSlot(ctx, slot, o.Tables)
		}
		if err != nil {
			return nil, err
		}
	}
	return w.report, w.finishTraffic(ctx)
}

// firstChange returns the first slot, from the given one on, in which the switch's configuration changes, together with
// the new configuration.
func firstChange(plan *sched.Plan, unit string, from int, hosts p4ctl.Tables) (slot int, first *Orders, err error) {
	for slot = from; slot < max(plan.Slots, from+1); slot++ {
		o, err := PlanOrders(plan, unit, slot, hosts)
		if err != nil || !p4ctl.Diff(hosts, o.Tables).Empty() {
			return slot, o, err
		}
	}
	return 0, nil, fmt.Errorf("%w: the switch of %s aggregates for no job from slot %d on", ErrPlay, unit, from)
}

// recorder is a card that returns the frames that left it.
type recorder interface {
	DrainPackets([]twin.Packet) []twin.Packet
}

// watch is the state of UnderTraffic.
type watch struct {
	bed       *testbed.Testbed
	dev       fpga.Device
	recorder  recorder
	generator *pktgen.Generator
	report    *Traffic
	tables    p4ctl.Tables // last acknowledged tables

	before, after found
	never         bool      // the current batch must have no effect
	since         olaf.Time // in run time: frames that begin after this must find the new tables
	turned        [2]bool   // for frames and for answers: one has already matched the new tables
	clock         olaf.Time // the generator's run time
	packets       []twin.Packet
	observed      []olaf.Observation
}

// inFlight is the value of watch.since while a batch is being sent to the switch.
const inFlight = olaf.Time(math.MaxInt64)

// found contains the table entries that frames and answers can reveal.
type found struct {
	identity map[[4]byte]identity
	group    map[olaf.ClusterID][]olaf.WorkerID // sorted
}

type identity struct {
	cluster olaf.ClusterID
	worker  olaf.WorkerID
}

func foundIn(t p4ctl.Tables) found {
	f := found{map[[4]byte]identity{}, map[olaf.ClusterID][]olaf.WorkerID{}}
	for _, w := range t.Workers {
		f.identity[w.Address.As4()] = identity{w.Cluster, w.ID}
	}
	for _, c := range t.Clusters {
		for _, g := range t.Groups {
			if g.ID != c.Group {
				continue
			}
			for _, m := range g.Members {
				f.group[c.ID] = append(f.group[c.ID], olaf.WorkerID(m.Instance))
			}
			slices.Sort(f.group[c.ID])
		}
	}
	return f
}

// startTraffic starts the generator.
func (w *watch) startTraffic(ctx context.Context) error {
	recorder, ok := w.dev.(recorder)
	if !ok {
		return fmt.Errorf("%w: %s hands out no frames", ErrPlay, w.dev.Identity().Address)
	}
	w.recorder, w.generator = recorder, pktgen.NewGenerator(w.dev)
	source, job := trafficOf(w.tables)
	job.Source = source
	if err := w.generator.Program(ctx, job); err != nil {
		return err
	}
	queue := fpga.QueueConfig{Discipline: "fifo", Depth: trafficDepth,
		Output: engine.Output{OverheadBytes: int(lineBytes)}}
	if err := fpga.ConfigureQueue(ctx, w.dev, queue); err != nil {
		return err
	}
	if err := w.dev.Write32(regmap.ModelControl, regmap.ModelControlAck); err != nil {
		return err
	}
	if err := fpga.ClearCounters(w.dev); err != nil {
		return err
	}
	w.before = foundIn(w.tables)
	w.after = w.before
	return w.restartTraffic(ctx)
}

// trafficOf returns the traffic that the generator sends. It has a flow for every address between those of the first
// and the last host.
func trafficOf(t p4ctl.Tables) (*rounds, pktgen.Job) {
	t = t.Canonical()
	lowest := t.Workers[0].Address
	r := &rounds{}
	for _, h := range t.Workers {
		r.hosts = append(r.hosts, uint16(asNumber(h.Address)-asNumber(lowest)))
	}
	flows := int(r.hosts[len(r.hosts)-1]) + 1
	return r, pktgen.Job{
		Placement:  pktgen.Placement{Workers: flows, Clusters: 1},
		Addressing: pktgen.Addressing{Workers: lowest, Server: t.Servers[0]}, Size: trafficFrame,
	}
}

func asNumber(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// rounds is a source that sends one frame from each host in turn.
type rounds struct {
	hosts []uint16 // flow numbers
	next  int
}

// Total implements pktgen.Source.
func (r *rounds) Total() int { return trafficPlay }

// Fill implements pktgen.Source.
func (r *rounds) Fill(dst []regmap.Descriptor) int {
	n := min(len(dst), trafficPlay-r.next)
	for i := range n {
		dst[i] = regmap.Descriptor{Time: uint64(r.next) * trafficGap, Flow: r.hosts[r.next%len(r.hosts)],
			Sequence: uint32(r.next)}
		r.next++
	}
	return n
}

// restartTraffic starts the traffic again from its first frame, after all earlier frames have left.
func (w *watch) restartTraffic(ctx context.Context) error {
	if err := w.drainFrames(ctx); err != nil {
		return err
	}
	if err := w.generator.Arm(); err != nil {
		return err
	}
	w.clock = 0
	if w.since != inFlight {
		w.since = 0
	}
	return w.generator.Start()
}

// drainFrames waits until no frames are in flight.
func (w *watch) drainFrames(ctx context.Context) error {
	if err := fpga.DrainQueue(ctx, w.dev); err != nil {
		return err
	}
	if err := w.dev.Sleep(ctx, trafficStep); err != nil { // wait for the last answers
		return err
	}
	w.checkFrames()
	return nil
}

// stepTime advances the device's time by one step and checks the frames that have left.
func (w *watch) stepTime(ctx context.Context) error {
	if err := w.dev.Sleep(ctx, trafficStep); err != nil {
		return err
	}
	w.clock = w.clock.Add(trafficStep)
	w.checkFrames()
	switch state, err := w.generator.State(); {
	case err != nil:
		return err
	case state == pktgen.Done:
		return w.restartTraffic(ctx)
	case !state.Busy():
		return fmt.Errorf("%w: it is %v while the switch is told", pktgen.ErrState, state)
	}
	return nil
}

// writeSlot writes the tables for a slot while frames are sent.
func (w *watch) writeSlot(ctx context.Context, slot int, tables p4ctl.Tables) error {
	changes := p4ctl.Diff(w.tables, tables)
	if changes.Empty() {
		return nil
	}
	w.startBatch(Batch{Slot: slot, Changes: changes.Len()}, tables)
	if err := w.writeBatch(ctx, changes); err != nil {
		return fmt.Errorf("slot %d: %w", slot, err)
	}
	w.tables = tables
	return w.stepTime(ctx) // frames that begin now find this slot's tables
}

// tryDuplicate tries to write a slot's tables with a duplicate host. The switch must reject them.
func (w *watch) tryDuplicate(ctx context.Context, slot int, tables p4ctl.Tables) error {
	without := w.tables.Canonical()
	without.Workers = without.Workers[:len(without.Workers)-1]
	changes := p4ctl.Diff(without, tables)
	w.startBatch(Batch{Slot: slot, Changes: changes.Len(), Refused: true}, tables)
	w.never = true
	refusal := (*p4ctl.BatchError)(nil)
	switch err := w.writeBatch(ctx, changes); {
	case err == nil:
		return fmt.Errorf("%w: a batch with a host in it that was there already was taken", fpga.ErrRefused)
	case !errors.As(err, &refusal):
		return err
	}
	w.never, w.after = false, w.before
	return w.stepTime(ctx)
}

func (w *watch) startBatch(t Batch, tables p4ctl.Tables) {
	w.report.Batches = append(w.report.Batches, t)
	w.before, w.after, w.since, w.turned = foundIn(w.tables), foundIn(tables), inFlight, [2]bool{}
}

// writeBatch sends one batch of changes to the switch. Frames continue to pass until the switch has answered.
func (w *watch) writeBatch(ctx context.Context, changes p4ctl.Plan) error {
	if err := w.stepTime(ctx); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		_, err := w.bed.Tables.ApplyWhole(ctx, changes)
		answered <- err
	}()
	for {
		if err := w.stepTime(ctx); err != nil {
			return errors.Join(err, <-answered)
		}
		select {
		case err := <-answered:
			w.since = w.clock
			return err
		default:
		}
	}
}

// finishTraffic waits for the last frames and counts the frames that are missing.
func (w *watch) finishTraffic(ctx context.Context) error {
	if err := w.generator.Abort(); err != nil {
		return err
	}
	if err := w.drainFrames(ctx); err != nil {
		return err
	}
	c, err := fpga.Snapshot(w.dev)
	w.report.Lost = int64(c.Generator.SentPackets) - int64(w.report.Frames)
	return err
}

// checkFrames checks the frames that have left the card.
func (w *watch) checkFrames() {
	w.observed = w.bed.Cards[0].Tap.Drain(w.observed[:0]) // discarded, because DrainPackets returns the same updates
	w.packets = w.recorder.DrainPackets(w.packets[:0])
	for i := 0; i < len(w.packets); i++ {
		switch p := &w.packets[i]; p.Kind {
		case twin.Delivered:
			w.checkFrame(p)
		case twin.Ack:
			n := 1
			for i+n < len(w.packets) && w.packets[i+n].Kind == twin.Ack && w.packets[i+n].Update.Seq == p.Update.Seq {
				n++
			}
			w.checkAnswer(w.packets[i : i+n])
			i += n - 1
		default:
			w.report.Frames++
			w.recordMixed(fmt.Sprintf("a frame of %s found no entry", netip.AddrFrom4(p.Addresses.SourceIP)))
		}
	}
}

// checkFrame determines from an update's identity after the queue which tables the frame found.
func (w *watch) checkFrame(p *twin.Packet) {
	w.report.Frames++
	has := identity{p.Update.Cluster, p.Update.Worker}
	old, now := w.before.identity[p.Addresses.SourceIP] == has, w.after.identity[p.Addresses.SourceIP] == has
	w.judgeTables(0, old, now, olaf.Time(p.Update.GenNS)*olaf.Time(olaf.Nanosecond), func() string {
		return fmt.Sprintf("a frame of %s found worker %d of cluster %d", netip.AddrFrom4(p.Addresses.SourceIP),
			has.worker, has.cluster)
	})
}

// checkAnswer determines from all copies of an answer which tables the answer found.
func (w *watch) checkAnswer(copies []twin.Packet) {
	w.report.Copies += len(copies)
	cluster := copies[0].Update.Cluster
	members := olaf.Map(copies, func(p twin.Packet) olaf.WorkerID { return p.Update.Worker })
	slices.Sort(members)
	old, now := slices.Equal(w.before.group[cluster], members), slices.Equal(w.after.group[cluster], members)
	w.judgeTables(1, old, now, copies[0].At,
		func() string { return fmt.Sprintf("an answer to cluster %d found the workers %v", cluster, members) })
}

// judgeTables records whether a frame or an answer found the old tables, the new tables, or a mixture. at is the time
// at which it began. Frames, and likewise answers, must be passed in order.
func (w *watch) judgeTables(kind int, old, now bool, at olaf.Time, what func() string) {
	switch {
	case old && now: // not changed by the batch
	case now && !w.never:
		w.turned[kind] = true
		w.currentBatch().After++
	case old && !w.turned[kind] && at <= w.since:
		w.currentBatch().Before++
	default:
		w.recordMixed(what())
	}
}

// currentBatch returns the current batch. Before the first batch, the old and the new tables are equal.
func (w *watch) currentBatch() *Batch { return &w.report.Batches[len(w.report.Batches)-1] }

func (w *watch) recordMixed(what string) {
	if w.report.Mixed++; w.report.Mixed == 1 {
		w.report.First = what
	}
}
