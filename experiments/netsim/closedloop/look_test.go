package closedloop

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// busyHost is a host's activity, derived from its notifications.
type busyHost struct {
	computes, computed int
	applying           olaf.Time // end of the current Apply; 0 for none
	applied            int
}

// TestPicturesOfARun checks that a snapshot between two events contains what the hosts do, the progress of the jobs and
// the counts of the links, as recorded by an observer, and that the last one equals the result.
func TestPicturesOfARun(t *testing.T) {
	const apply, updates = 3 * olaf.Microsecond, 4
	for name, c := range map[string]struct {
		jobs, perRack int
		server        bool
	}{"one switch": {1, 0, false}, "racks": {3, 2, false}, "servers": {3, 2, true}} {
		n := lab(4)
		n.Jobs, n.PerRack = c.jobs, c.perRack
		parts := iswitchParts(endpoint.ISwitch{}, 100)
		if c.jobs > 1 {
			parts = systemParts(t, "iswitch", system.Options{PerRack: c.perRack})
		}
		if c.server {
			parts = atpParts(crowdedATP(atp.Paper, 2))
		}
		hosts := make([]busyHost, c.jobs*4)
		j := Job{Layout: endpoint.Layout{Values: 41, PerPacket: 4}, Updates: updates, Compute: 50 * olaf.Microsecond, Apply: apply,
			Jitter: 0.5}
		j.Begin = func(w int, v uint32) olaf.Duration {
			hosts[w].computes++
			return 50*olaf.Microsecond + olaf.Duration(w+3*int(v))*olaf.Microsecond
		}
		j.Values = func(_ olaf.Time, w int, _ uint32) []uint32 { hosts[w].computed++; return nil }
		j.Applied = func(now olaf.Time, h int, _ *endpoint.Aggregate) { hosts[h].applying = now.Add(apply) }
		arrived, calls, last := 0, 0, (*Snapshot)(nil)
		j.Tap = func(*Frame) { arrived++ }
		j.Follow = func(at, next olaf.Time, look *Look) (olaf.Time, bool) {
			for i := range hosts {
				if h := &hosts[i]; h.applying > 0 && h.applying <= at {
					h.applied, h.applying = h.applied+1, 0
				}
			}
			if calls++; calls == 1 && (at != 0 || look.Events() != 0) {
				t.Errorf("%s: first asked at %d, after %d events", name, at, look.Events())
			}
			last = look.Snapshot(at)
			checkPicture(t, name, &n, last, hosts, arrived)
			if look.Events() != last.Events {
				t.Errorf("%s: %d events, %d in the picture", name, look.Events(), last.Events)
			}
			return at, true
		}
		r := run(t, n, j, parts, true, 3)
		frames, bytes := uint64(0), uint64(0)
		for _, h := range last.Hosts {
			if h.Doing != Finished || !h.Server && h.Updates != updates {
				t.Errorf("%s: at the end %+v", name, h)
			}
			frames, bytes = frames+h.Up.Frames+h.Down.Frames, bytes+h.Up.Bytes+h.Down.Bytes
		}
		peak := 0
		for _, s := range last.Switches {
			peak += s.Peak
		}
		if last.Frames != r.Frames || last.Lost != r.Lost || last.Underway != 0 || last.Events != r.Events || peak != int(r.OccupiedSlotsPeak) ||
			c.perRack == 0 && (frames != r.Frames || bytes != r.Bytes) {
			t.Errorf("%s: at the end %+v; the result is %+v", name, last, r)
		}
		if fmt.Sprint(last.Endpoints) != fmt.Sprint(r.Endpoints) || fmt.Sprint(last.Program) != fmt.Sprint(r.Program) {
			t.Errorf("%s: at the end %v and %v, want %v and %v", name, last.Endpoints, last.Program, r.Endpoints, r.Program)
		}
		for i, job := range last.Jobs {
			if job != (JobSnapshot{updates, 0, true}) {
				t.Errorf("%s: job %d ends as %+v", name, i, job)
			}
		}
		if calls < 100 {
			t.Errorf("%s: asked %d times in %d events", name, calls, r.Events)
		}
	}
}

// checkPicture compares a snapshot with the activity of its hosts so far.
func checkPicture(t *testing.T, name string, n *Network, v *Snapshot, hosts []busyHost, arrived int) {
	t.Helper()
	rounds, ahead := make([]int, n.Jobs), make([]int, n.Jobs)
	for i := range hosts {
		h, got := &hosts[i], &v.Hosts[i]
		job := i / n.Workers
		if i%n.Workers == 0 {
			rounds[job] = math.MaxInt
		}
		rounds[job] = min(rounds[job], h.applied)
		doing := Talking
		switch {
		case h.applied == int(v.Rounds):
			doing = Finished
		case h.applying > 0:
			doing = Applying
		case h.computes > h.computed:
			doing = Computing
		}
		if got.Doing != doing || int(got.Updates) != h.applied || got.Job != job || got.Worker != i%n.Workers || got.Server {
			t.Fatalf("%s: at %d host %d is %+v, want %s after %d updates", name, v.Now, i, got, doing, h.applied)
		}
		if busy := float64(got.Up.Busy); v.Now == 0 && !math.IsNaN(busy) || v.Now > 0 && !(busy >= 0 && busy <= 1) ||
			(got.Up.Frames > 0) != (busy > 0) {
			t.Fatalf("%s: at %d a link of %d frames is busy for %g", name, v.Now, got.Up.Frames, busy)
		}
	}
	for i := range hosts {
		if hosts[i].applied > rounds[i/n.Workers] {
			ahead[i/n.Workers]++
		}
	}
	for i, job := range v.Jobs {
		if int(job.Rounds) != rounds[i] || job.Ahead != ahead[i] {
			t.Fatalf("%s: at %d job %d is %+v, want %d rounds and %d ahead", name, v.Now, i, job, rounds[i], ahead[i])
		}
	}
	if v.Frames != uint64(arrived)+v.Lost+v.Underway {
		t.Fatalf("%s: at %d %d frames, %d arrived and %d are on their way", name, v.Now, v.Frames, arrived, v.Underway)
	}
	for i, s := range v.Switches {
		if s.Occupied != len(s.Table) || s.Occupied > s.Peak || s.Slots < s.Peak || i > 0 && s.Name != fmt.Sprintf("rack-%d", i-1) || i == 0 &&
			s.Name != "root" {
			t.Fatalf("%s: at %d %+v", name, v.Now, s)
		}
		for k, slot := range s.Table {
			if !slot.Occupied || slot.Lanes != nil || k > 0 && slot.Place <= s.Table[k-1].Place {
				t.Fatalf("%s: at %d slot %d is %+v", name, v.Now, k, slot)
			}
		}
	}
}

// TestFollowIntervals checks that Follow is called at the requested instant or every few thousand events, and can end a
// run between two events.
func TestFollowIntervals(t *testing.T) {
	n := lab(4)
	j := Job{Layout: endpoint.Layout{Values: 4000, PerPacket: 4}, Updates: 8, Compute: 50 * olaf.Microsecond}
	parts := iswitchParts(endpoint.ISwitch{}, 1000)
	whole := run(t, n, j, parts, true, 1)
	end := olaf.Time(math.Round(float64(whole.Duration) * 1000))
	asked, final := 0, olaf.Time(0)
	j.Follow = func(_, next olaf.Time, look *Look) (olaf.Time, bool) {
		asked++
		final = next
		return math.MaxInt64, true
	}
	if r := run(t, n, j, parts, true, 1); r.Duration != whole.Duration || asked < int(whole.Events/often) ||
		asked > int(whole.Events/often)+3 || final != end || whole.Events < 2*often {
		t.Errorf("asked %d times in %d events, lastly about %d of %d; it took %g ns, want %g", asked, whole.Events, final, end,
			float64(r.Duration), float64(whole.Duration))
	}
	j.Layout.Values, j.Follow = 400, nil // fewer values, so that the run has fewer events
	end = olaf.Time(math.Round(float64(run(t, n, j, parts, true, 1).Duration) * 1000))
	for _, stop := range []olaf.Time{0, 1, end / 3, end - 1} {
		var at []olaf.Time
		j.Follow = func(last, next olaf.Time, _ *Look) (olaf.Time, bool) {
			at = append(at, last)
			if len(at) > 1 && next < stop {
				t.Errorf("asked before %d, at %d", stop, next)
			}
			return stop, next < stop
		}
		r := run(t, n, j, parts, true, 1)
		if now := math.Round(float64(r.Duration) * 1000); now > float64(stop) || len(at) > 2 || !r.Hung && stop < end {
			t.Errorf("stopped at %d: %g ps, asked at %v", stop, now, at)
		}
	}
}

// TestPortsAtEveryMoment checks at every moment that the frames at a port have left, wait or were dropped, that a
// sending port is busy all the time, and that the ports finally equal those of the result.
func TestPortsAtEveryMoment(t *testing.T) {
	const slots = 3
	n := hilly(4, slots)
	for i := range n.Hops.Switches {
		n.Hops.Switches[i].Up.Rate = 100 * olaf.Mbps
	}
	j := Job{Layout: endpoint.Layout{Values: 41, PerPacket: 4}, Updates: 3, Compute: 100 * olaf.Microsecond, Jitter: 0.1}
	var ports []PortNow
	most := 0
	j.Follow = func(last, next olaf.Time, look *Look) (olaf.Time, bool) {
		before := ports
		for _, at := range []olaf.Time{last, last + (next-last)/2, next} {
			ports = look.Ports(at)
			for i := 1; i < len(ports); i++ {
				p := &ports[i]
				most = max(most, p.Waiting)
				if p.In != p.Dropped+p.Left+uint64(p.Waiting) || p.Waiting > slots || p.Waiting > p.Most || p.Waiting > 0 &&
					!p.Sending || before != nil && p.Left < before[i].Left {
					t.Fatalf("at %d port %d is %+v", at, i, p)
				}
				if at == 0 {
					continue
				}
				busy := float64(p.Busy) * float64(at)
				if frames := float64(p.Left); busy > float64(at)*(1+1e-9) || (busy > 0) != (frames > 0) && !p.Sending {
					t.Fatalf("at %d port %d was busy for %g ps with %g frames", at, i, busy, frames)
				}
			}
		}
		for i := 1; i < len(ports); i++ {
			a, b := look.Ports(last)[i], look.Ports(next)[i]
			if was, is := float64(a.Busy)*float64(last), float64(b.Busy)*float64(next); last > 0 && a.Sending && b.Sending &&
				math.Abs(is-was-float64(next-last)) > 1 {
				t.Fatalf("port %d sends from %d to %d, of which it is busy for %g ps", i, last, next, is-was)
			} else if next > last && last > 0 && a.Sending && is-was < 0.5 {
				t.Fatalf("port %d sends at %d, but is not busy until %d", i, last, next)
			} else if last > 0 && !a.Sending && (b.Sending || math.Abs(is-was) > 1) {
				t.Fatalf("port %d is idle at %d and was busy for %g ps until %d", i, last, is-was, next)
			}
		}
		return last, true
	}
	r := run(t, n, j, systemParts(t, "switchml", system.Options{}), true, 1)
	if most != slots || len(ports) != len(r.Ports) {
		t.Errorf("%d waited at most, of %d ports", most, len(ports))
	}
	for i := 1; i < len(r.Ports); i++ {
		if ports[i] != (PortNow{r.Ports[i], 0, false}) {
			t.Errorf("port %d ends as %+v, want %+v", i, ports[i], r.Ports[i])
		}
	}
}

// TestTapSeesSourceAndDestination checks the tap's arrival, source and destination of frames: over a switch to the
// job's server, over racks to the workers of a ring, and through a tree of servers.
func TestTapSeesSourceAndDestination(t *testing.T) {
	type heard struct {
		kind          program.Kind
		from, at, aim int
		past          bool
	}
	const data, result = program.Data, program.Result
	xagg := xaggParts()
	worker := xagg.Worker
	xagg.Worker = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
		cfg.Line = 0 // line rates are not needed
		return worker(cfg, h)
	}
	l := Link{Rate: olaf.Gbps}
	for name, c := range map[string]struct {
		n     Network
		parts system.Parts
		want  []heard
	}{
		"a server": {Network{Workers: 2}, psParts(true), []heard{
			{data, 0, 3, 2, true}, {data, 0, 2, 2, true}, {data, 1, 3, 2, true}, {data, 1, 2, 2, true},
			{result, 2, 3, 0, true}, {result, 2, 0, 0, true}, {result, 2, 3, 1, true}, {result, 2, 1, 1, true},
		}},
		"racks": {Network{Workers: 2, PerRack: 1}, iswitchParts(endpoint.ISwitch{}, 4), []heard{
			{data, 0, 3, 3, false}, {data, 3, 2, 2, false}, {data, 1, 4, 4, false}, {data, 4, 2, 2, false},
			{result, 2, 3, 3, false}, {result, 3, 0, 0, false}, {result, 2, 4, 4, false}, {result, 4, 1, 1, false},
		}},
		"servers in a tree": {Network{Workers: 3, Tree: &Tree{Servers: []TreeServer{{Link: l}, {Link: l}}, Workers: []int{1, 1, 0}}},
			xagg, []heard{
				{data, 0, 3, 5, false}, {data, 0, 5, 5, false}, {data, 1, 3, 5, false}, {data, 1, 5, 5, false}, {data, 2, 3, 4, false},
				{data, 2, 4, 4, false},
				{data, 5, 3, 4, false}, {data, 5, 4, 4, false}, {result, 4, 3, 3, false}, {result, 4, 0, 0, false},
				{result, 4, 1, 1, false}, {result, 4, 2, 2, false},
			}},
	} {
		c.n.Link = l
		var got []heard
		j := Job{Layout: endpoint.Layout{Values: 4, PerPacket: 4}, Updates: 1, Compute: olaf.Microsecond}
		j.Tap = func(f *Frame) {
			if k := f.Packet.Kind; k == data || k == result {
				got = append(got, heard{k, f.From, f.To, f.For, f.Past})
			}
		}
		run(t, c.n, j, c.parts, true, 1)
		for _, h := range c.want {
			if !slices.Contains(got, h) {
				t.Errorf("%s: nobody heard %+v", name, h)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: heard %+v, want %+v", name, got, c.want)
		}
	}
}
