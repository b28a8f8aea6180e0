package atp

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// Two racks of workers below the server's switch.
const (
	racks    = 2
	inRack   = 3
	root     = racks
	server   = root + 1
	hosts    = server + 1 // number of the first worker
	toParent = -1         // a rack's port to its parent
)

// hopped is a packet on a link of such a network: from a worker, a rack's sum, or an acknowledgement.
type hopped struct {
	at, from int // destination, and the port of arrival there
	packet
}

type packet struct {
	key                          [2]int // job and sequence
	workers, racks               uint32 // bitmaps of the contributors
	value                        int64
	again, second, collided, ack bool
}

func (p *packet) index() int { return (p.key[1] + 3*p.key[0]) % table }

// level is a slow, simple table for one switch, with the owner and contributors of each aggregator.
type level struct {
	second bool // this switch is above others
	fan    int
	owner  map[int][2]int
	parts  map[int]map[uint32]int64
}

// takes returns the class of a packet and the packet that leaves.
func (l *level) takes(p packet) (class string, leaves packet) {
	i := p.index()
	owner, held := l.owner[i]
	mine := held && owner == p.key
	who := p.workers
	if l.second {
		who = p.racks
	}
	_, inside := l.parts[i][who]
	free := func() { delete(l.owner, i); delete(l.parts, i) }
	switch {
	case p.ack && mine:
		free()
		return "released", p
	case p.ack, p.second != l.second, p.again && !mine:
		return "forwarded", p
	case p.again && l.second:
		free()
		return "flushed_by_resend", p
	case held && !mine:
		p.collided = true
		return "collided", p
	case inside && !p.again && len(l.parts[i]) < l.fan:
		return "duplicate_dropped", packet{}
	}
	if !held {
		l.owner[i], l.parts[i] = p.key, map[uint32]int64{}
	}
	if !inside { // otherwise the first value counts
		l.parts[i][who] = p.value
	}
	p.second, p.value = true, 0
	all := uint32(0)
	for bit, v := range l.parts[i] {
		all |= bit
		p.value += v
	}
	if l.second {
		p.racks = all
	} else {
		p.workers = all
	}
	switch {
	case p.again:
		free()
		return "flushed_by_resend", p
	case inside:
		return "duplicate_answered", p
	case len(l.parts[i]) < l.fan:
		return "consumed", packet{}
	}
	return "completed", p
}

// hop is a switch together with its reference.
type hop struct {
	*Switch
	ref      level
	arrivals uint64
	left     []packet
	to       []program.Dest
}

func newHop(t *testing.T, at int) *hop {
	t.Helper()
	s, err := New(program.Config{Slots: table, LaneMemory: 1, Profile: Paper})
	if err != nil {
		t.Fatal(err)
	}
	h := &hop{Switch: s, ref: level{second: at == root, fan: inRack, owner: map[int][2]int{}, parts: map[int]map[uint32]int64{}}}
	j := program.Job{Members: programtest.NewMembers(inRack), Parent: at != root}
	if at == root {
		h.ref.fan, j.Members, j.Level = racks, programtest.NewMembers(racks), 1
	}
	for id := range jobs {
		j.ID = olaf.ClusterID(1 + id)
		if err := s.Configure(j); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// Emit implements program.Out.
func (h *hop) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	h.to = append(h.to, to)
	h.left = append(h.left, packet{
		key: [2]int{int(p.Job), int(p.Seg)}, workers: uint32(p.Bitmap), racks: uint32(p.Bitmap >> 32), value: int64(int32(lanes[0])),
		ack:   p.Kind == program.Ack,
		again: p.Flags&program.Resend != 0, second: p.Flags&program.Second != 0, collided: p.Flags&program.Collision != 0,
	})
}

// hears gives a packet to both, and returns the packets that leave and their destinations.
func (h *hop) hears(t *testing.T, d *program.Description, c *hopped) ([]packet, []program.Dest) {
	t.Helper()
	in := program.Packet{
		Kind: program.Data, Job: olaf.ClusterID(c.key[0]), Seg: uint64(c.key[1]), Index: uint32(c.index()), Lanes: 1,
		Bitmap: uint64(c.workers) | uint64(c.racks)<<32,
		Trace:  program.NewTrace(0, uint32(c.key[1]), 1),
	}
	if c.ack {
		in.Kind, in.Trace = program.Ack, program.Trace{}
	}
	for flag, set := range map[program.Flags]bool{program.Resend: c.again, program.Second: c.second, program.Collision: c.collided} {
		if set {
			in.Flags |= flag
		}
	}
	h.arrivals++
	h.left, h.to = h.left[:0], h.to[:0]
	have := d.ClassName(h.Receive(0, program.Port(c.from), &in, []uint32{uint32(int32(c.value))}, h))
	want, leaves := h.ref.takes(c.packet)
	var left []packet
	if leaves != (packet{}) {
		left = append(left, leaves)
	}
	if have != want || !slices.Equal(h.left, left) {
		t.Fatalf("switch %d, packet %d, %+v: %s, and %+v leaves; the reference says %s, and %+v", c.at, h.arrivals, c, have, h.left,
			want, left)
	}
	return h.left, h.to
}

// TestUnreliableLevels sends packets of two jobs, whose workers are in two racks, through the racks' switches to the
// server's switch, and the server's acknowledgements back. Every link loses, repeats and reorders packets. It checks
// every switch against its reference.
func TestUnreliableLevels(t *testing.T) {
	d := Describe()
	nodes := [...]*hop{newHop(t, 0), newHop(t, 1), newHop(t, root)}
	var way *programtest.Way[hopped]
	var rounds, tries [jobs][racks * inRack][places]int
	inside := map[[2]int]uint32{}
	var whole [][2]int
	heard := 0
	serve := func(p *packet) {
		for r := range racks {
			switch {
			case p.racks>>r&1 == 0:
			case bits.OnesCount32(p.racks) > 1: // only complete racks are added
				inside[p.key] |= (1<<inRack - 1) << (r * inRack)
			default:
				inside[p.key] |= p.workers << (r * inRack)
			}
		}
		if inside[p.key] == 1<<(racks*inRack)-1 {
			whole = append(whole, p.key)
		}
	}
	hear := func(worker int, p *packet) {
		job, place := p.key[0]-1, (p.key[1]-1)%places
		if 1+rounds[job][worker][place]*places+place == p.key[1] {
			rounds[job][worker][place]++
			tries[job][worker][place] = 0
			heard++
		}
	}
	programtest.RunUnreliable(t, 4, func(r *rand.Rand, w *programtest.Way[hopped]) {
		way = w
		for _, key := range whole {
			w.Send(hopped{root, toParent, packet{key: key, ack: true}})
		}
		whole = whole[:0]
		job, worker, place := r.IntN(jobs), r.IntN(racks*inRack), r.IntN(places)
		rack, port := worker/inRack, worker%inRack
		again := tries[job][worker][place] > 0
		if again && r.IntN(8) > 0 {
			return // resend rarely: an aggregator that is flushed too often never completes
		}
		tries[job][worker][place]++
		w.Send(hopped{rack, port, packet{
			key: [2]int{1 + job, 1 + rounds[job][worker][place]*places + place}, workers: 1 << port, racks: 1 << rack,
			value: int64(r.IntN(2001) - 1000), again: again,
		}})
	}, func(c hopped) {
		switch {
		case c.at >= hosts:
			hear(c.at-hosts, &c.packet)
			return
		case c.at == server:
			serve(&c.packet)
			return
		}
		left, to := nodes[c.at].hears(t, &d, &c)
		for i, p := range left {
			switch {
			case to[i] == program.Up && c.at == root:
				way.Send(hopped{server, 0, p})
			case to[i] == program.Up:
				way.Send(hopped{root, c.at, p})
			case c.at == root:
				for rack := range racks {
					way.Send(hopped{rack, toParent, p})
				}
			default:
				for k := range inRack {
					way.Send(hopped{hosts + c.at*inRack + k, 0, p})
				}
			}
		}
	})
	arrivals := uint64(0)
	for at, h := range nodes {
		programtest.CheckAccount(t, &d, h.Switch, h.arrivals)
		if h.CountOccupied() != len(h.ref.owner) {
			t.Errorf("switch %d holds %d aggregators, its reference %d", at, h.CountOccupied(), len(h.ref.owner))
		}
		arrivals += h.arrivals
	}
	if sums := d.CountsOf(nodes[root].Switch).Of("completed"); heard < int(arrivals)/50 || sums == 0 {
		t.Errorf("workers heard of %d sums, and the root completed %d, in %d packets: they hardly came on", heard, sums, arrivals)
	}
	t.Logf("%d arrived at switches, the root completed %d, workers heard of %d; %d on the way at the end",
		arrivals, d.CountsOf(nodes[root].Switch).Of("completed"), heard, way.CountInFlight())
}
