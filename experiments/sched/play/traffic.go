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

// Traffic is what frames found that crossed a switch while it was told about slot after slot.
type Traffic struct {
	Unit  string `json:"unit"`
	Hosts int    `json:"hosts"`
	// Frames left the switch for the server, Copies of its answers for members of multicast groups. Each was compared with the
	// tables of before the batch at hand and with those of after it.
	Frames int `json:"frames"`
	Copies int `json:"copies"`
	// Mixed frames and answers found neither, or those of before although the batch was acknowledged or something ahead of them
	// had found those of after. First says what the first of them found.
	Mixed int    `json:"mixed"`
	First string `json:"first_mixed,omitempty"`
	// Lost frames never left.
	Lost int64  `json:"lost"`
	Told []Told `json:"told"`
}

// Told is one batch, and what frames found from the one before on.
type Told struct {
	Slot    int  `json:"slot"`
	Changes int  `json:"changes"`
	Refused bool `json:"refused"` // one of the changes was impossible, so that none was to be done
	// Before and After count frames and answers of hosts of which the batch says something else than the tables before it.
	Before int `json:"found_before"`
	After  int `json:"found_after"`
}

// The frames of hosts: one every 100 ns, each from the next host; trafficStep passes between two looks.
const (
	trafficFrame = olaf.Size(256)
	trafficGap   = 25 // cycles
	trafficPlay  = 20_000
	trafficDepth = 64
	trafficStep  = 40 * olaf.Microsecond
)

// UnderTraffic tells the switch of a unit about the slots of a plan from one on, a batch each, while a testbed's generator
// sends frames of all hosts through it and its server answers to the hosts' multicast groups, and compares what every frame and
// answer found. Before that it tries the first batch with an impossible change in it, of which nothing may be seen. The testbed
// holds its time and hands out frames. The error matches ErrPlay, or is the testbed's or the context's.
func UnderTraffic(ctx context.Context, bed *testbed.Testbed, plan *sched.Plan, unit string, from int, hosts p4ctl.Tables) (*Traffic, error) {
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
	w := &watch{bed: bed, dev: bed.Cards[0].Device, report: &Traffic{Unit: unit, Hosts: len(hosts.Workers)}, tables: hosts}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	if err := w.refused(ctx, from, first.Tables); err != nil {
		return nil, err
	}
	for slot := from; slot < plan.Slots; slot++ {
		o, err := Tell(plan, unit, slot, w.tables)
		if err == nil {
			err = w.tell(ctx, slot, o.Tables)
		}
		if err != nil {
			return nil, err
		}
	}
	return w.report, w.end(ctx)
}

// firstChange is the first slot from one on in which a switch is told anything, and what.
func firstChange(plan *sched.Plan, unit string, from int, hosts p4ctl.Tables) (slot int, first *Orders, err error) {
	for slot = from; slot < max(plan.Slots, from+1); slot++ {
		o, err := Tell(plan, unit, slot, hosts)
		if err != nil || !p4ctl.Diff(hosts, o.Tables).Empty() {
			return slot, o, err
		}
	}
	return 0, nil, fmt.Errorf("%w: the switch of %s aggregates for no job from slot %d on", ErrPlay, unit, from)
}

// recorder hands out the frames that left a card.
type recorder interface {
	DrainPackets([]twin.Packet) []twin.Packet
}

// watch is the state of one.
type watch struct {
	bed       *testbed.Testbed
	dev       fpga.Device
	recorder  recorder
	generator *pktgen.Generator
	report    *Traffic
	tables    p4ctl.Tables // that were acknowledged last

	before, after found
	never         bool      // a batch that must not be seen
	since         olaf.Time // on the run clock: what begins from then on finds the tables of after
	turned        [2]bool   // frames, answers: one has found those already
	clock         olaf.Time // the generator's run clock
	packets       []twin.Packet
	observed      []olaf.Observation
}

// inFlight is watch.since while a batch is on its way.
const inFlight = olaf.Time(math.MaxInt64)

// found is what tables say, as frames show it.
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

// begin lets the frames flow.
func (w *watch) begin(ctx context.Context) error {
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
	queue := fpga.QueueConfig{Discipline: "fifo", Depth: trafficDepth, Output: engine.Output{OverheadBytes: int(beside)}}
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
	return w.restart(ctx)
}

// trafficOf is what the generator plays: a flow for every address from the lowest host's to the highest's.
func trafficOf(t p4ctl.Tables) (*rounds, pktgen.Job) {
	t = t.Canonical()
	lowest := t.Workers[0].Address
	r := &rounds{}
	for _, h := range t.Workers {
		r.hosts = append(r.hosts, uint16(asNumber(h.Address)-asNumber(lowest)))
	}
	flows := int(r.hosts[len(r.hosts)-1]) + 1
	return r, pktgen.Job{
		Placement: pktgen.Placement{Workers: flows, Clusters: 1}, Addressing: pktgen.Addressing{Workers: lowest, Server: t.Servers[0]}, Size: trafficFrame,
	}
}

func asNumber(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// rounds sends from one host after the other.
type rounds struct {
	hosts []uint16 // flows
	next  int
}

// Total implements pktgen.Source.
func (r *rounds) Total() int { return trafficPlay }

// Fill implements pktgen.Source.
func (r *rounds) Fill(dst []regmap.Descriptor) int {
	n := min(len(dst), trafficPlay-r.next)
	for i := range n {
		dst[i] = regmap.Descriptor{Time: uint64(r.next) * trafficGap, Flow: r.hosts[r.next%len(r.hosts)], Sequence: uint32(r.next)}
		r.next++
	}
	return n
}

// restart plays the frames from their first one again, once all of the last time have left.
func (w *watch) restart(ctx context.Context) error {
	if err := w.rest(ctx); err != nil {
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

// rest waits for what is on its way.
func (w *watch) rest(ctx context.Context) error {
	if err := fpga.DrainQueue(ctx, w.dev); err != nil {
		return err
	}
	if err := w.dev.Sleep(ctx, trafficStep); err != nil { // for the last answers
		return err
	}
	w.take()
	return nil
}

// step lets some frames pass and looks at them.
func (w *watch) step(ctx context.Context) error {
	if err := w.dev.Sleep(ctx, trafficStep); err != nil {
		return err
	}
	w.clock = w.clock.Add(trafficStep)
	w.take()
	switch state, err := w.generator.State(); {
	case err != nil:
		return err
	case state == pktgen.Done:
		return w.restart(ctx)
	case !state.Busy():
		return fmt.Errorf("%w: it is %v while the switch is told", pktgen.ErrState, state)
	}
	return nil
}

// tell writes a slot's tables while frames go on.
func (w *watch) tell(ctx context.Context, slot int, tables p4ctl.Tables) error {
	changes := p4ctl.Diff(w.tables, tables)
	if changes.Empty() {
		return nil
	}
	w.announce(Told{Slot: slot, Changes: changes.Len()}, tables)
	if err := w.write(ctx, changes); err != nil {
		return fmt.Errorf("slot %d: %w", slot, err)
	}
	w.tables = tables
	return w.step(ctx) // what begins now finds this slot's tables
}

// refused tries a slot's tables with a host in it that is to be added although it is there.
func (w *watch) refused(ctx context.Context, slot int, tables p4ctl.Tables) error {
	without := w.tables.Canonical()
	without.Workers = without.Workers[:len(without.Workers)-1]
	changes := p4ctl.Diff(without, tables)
	w.announce(Told{Slot: slot, Changes: changes.Len(), Refused: true}, tables)
	w.never = true
	refusal := (*p4ctl.BatchError)(nil)
	switch err := w.write(ctx, changes); {
	case err == nil:
		return fmt.Errorf("%w: a batch with a host in it that was there already was taken", fpga.ErrRefused)
	case !errors.As(err, &refusal):
		return err
	}
	w.never, w.after = false, w.before
	return w.step(ctx)
}

func (w *watch) announce(t Told, tables p4ctl.Tables) {
	w.report.Told = append(w.report.Told, t)
	w.before, w.after, w.since, w.turned = foundIn(w.tables), foundIn(tables), inFlight, [2]bool{}
}

// write sends one batch and lets frames pass until it is answered.
func (w *watch) write(ctx context.Context, changes p4ctl.Plan) error {
	if err := w.step(ctx); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		_, err := w.bed.Tables.ApplyWhole(ctx, changes)
		answered <- err
	}()
	for {
		if err := w.step(ctx); err != nil {
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

// end lets the last frames out and counts those that never came.
func (w *watch) end(ctx context.Context) error {
	if err := w.generator.Abort(); err != nil {
		return err
	}
	if err := w.rest(ctx); err != nil {
		return err
	}
	c, err := fpga.Snapshot(w.dev)
	w.report.Lost = int64(c.Generator.SentPackets) - int64(w.report.Frames)
	return err
}

// take looks at what has left the card.
func (w *watch) take() {
	w.observed = w.bed.Cards[0].Tap.Drain(w.observed[:0]) // the same updates once more
	w.packets = w.recorder.DrainPackets(w.packets[:0])
	for i := 0; i < len(w.packets); i++ {
		switch p := &w.packets[i]; p.Kind {
		case twin.Delivered:
			w.frame(p)
		case twin.Ack:
			n := 1
			for i+n < len(w.packets) && w.packets[i+n].Kind == twin.Ack && w.packets[i+n].Update.Seq == p.Update.Seq {
				n++
			}
			w.answer(w.packets[i : i+n])
			i += n - 1
		default:
			w.report.Frames++
			w.mixed(fmt.Sprintf("a frame of %s found no entry", netip.AddrFrom4(p.Addresses.SourceIP)))
		}
	}
}

// frame is an update behind the queue, with the identity that it found.
func (w *watch) frame(p *twin.Packet) {
	w.report.Frames++
	has := identity{p.Update.Cluster, p.Update.Worker}
	old, now := w.before.identity[p.Addresses.SourceIP] == has, w.after.identity[p.Addresses.SourceIP] == has
	w.judge(0, old, now, olaf.Time(p.Update.GenNS)*olaf.Time(olaf.Nanosecond), func() string {
		return fmt.Sprintf("a frame of %s found worker %d of cluster %d", netip.AddrFrom4(p.Addresses.SourceIP), has.worker, has.cluster)
	})
}

// answer is all copies of one.
func (w *watch) answer(copies []twin.Packet) {
	w.report.Copies += len(copies)
	cluster := copies[0].Update.Cluster
	members := make([]olaf.WorkerID, len(copies))
	for i := range copies {
		members[i] = copies[i].Update.Worker
	}
	slices.Sort(members)
	old, now := slices.Equal(w.before.group[cluster], members), slices.Equal(w.after.group[cluster], members)
	w.judge(1, old, now, copies[0].At, func() string { return fmt.Sprintf("an answer to cluster %d found the workers %v", cluster, members) })
}

// judge says which tables were found by something that began at a time, after the others of its kind.
func (w *watch) judge(kind int, old, now bool, at olaf.Time, what func() string) {
	switch {
	case old && now: // the batch says nothing else
	case now && !w.never:
		w.turned[kind] = true
		w.last().After++
	case old && !w.turned[kind] && at <= w.since:
		w.last().Before++
	default:
		w.mixed(what())
	}
}

// last is the batch at hand. Before the first one both tables are the same.
func (w *watch) last() *Told { return &w.report.Told[len(w.report.Told)-1] }

func (w *watch) mixed(what string) {
	if w.report.Mixed++; w.report.Mixed == 1 {
		w.report.First = what
	}
}
