package atp

import (
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// TestUnreliable sends packets of two jobs' workers, which repeat them until they know of the sum, and acknowledgements
// of their server over a link that loses, repeats and reorders packets. It checks the table against its reference in
// both profiles.
func TestUnreliable(t *testing.T) {
	for _, profile := range Describe().Profiles {
		t.Run(profile, func(t *testing.T) { unreliable(t, profile) })
	}
}

// carried is a packet from a worker, or an acknowledgement.
type carried struct {
	key    [2]int // job and sequence
	worker int
	value  int64
	again  bool
	ack    bool
	heard  int // bitmap of the workers that received the acknowledgement
}

const (
	peers  = 5
	jobs   = 2
	places = 6 // packets in flight per worker
	table  = 7 // aggregators, shared by the jobs
)

func (c *carried) index() int { return (c.key[1] + 3*c.key[0]) % table }

// completer is the server. It stores the contributors for every sequence number of its jobs.
type completer struct {
	recorder
	inside map[[2]int]uint64
	whole  [][2]int
}

func (c *completer) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	c.recorder.Emit(to, p, lanes)
	if p.Kind == program.Ack {
		return
	}
	key := [2]int{int(p.Job), int(p.Seg)}
	bits := p.Bitmap
	if bits == 0 {
		bits = 1 << p.Worker
	}
	if c.inside[key] |= bits; c.inside[key] == 1<<peers-1 {
		c.whole = append(c.whole, key)
	}
}

func unreliable(t *testing.T, profile string) {
	ref := &reference{fan: peers, owner: map[int][2]int{}, parts: map[int]map[int]int64{}}
	s, err := New(program.Config{Slots: table, LaneMemory: 1, Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	for id := range jobs {
		if err := s.Configure(program.Job{ID: olaf.ClusterID(1 + id), Members: programtest.NewMembers(peers)}); err != nil {
			t.Fatal(err)
		}
	}
	d, out := Describe(), &completer{inside: map[[2]int]uint64{}}
	var way *programtest.Way[carried]
	var rounds, tries [jobs][peers][places]int
	arrivals, heard := uint64(0), 0
	programtest.RunUnreliable(t, 3, func(r *rand.Rand, w *programtest.Way[carried]) {
		way = w
		for _, key := range out.whole {
			w.Send(carried{key: key, ack: true, heard: r.IntN(1<<peers) | r.IntN(1<<peers) | r.IntN(1<<peers)})
		}
		out.whole = out.whole[:0]
		job, worker, place := r.IntN(jobs), r.IntN(peers), r.IntN(places)
		seq := 1 + rounds[job][worker][place]*places + place
		again := tries[job][worker][place] > 0
		tries[job][worker][place]++
		w.Send(carried{key: [2]int{1 + job, seq}, worker: worker, value: int64(r.IntN(2001) - 1000), again: again})
	}, func(c carried) {
		arrivals++
		in := program.Packet{Job: olaf.ClusterID(c.key[0]), Seg: uint64(c.key[1]), Index: uint32(c.index()), Lanes: 1,
			Worker: olaf.WorkerID(c.worker)}
		if c.ack {
			in.Kind = program.Ack
			want := "forwarded"
			if owner, held := ref.owner[c.index()]; held && owner == c.key {
				want = "released"
				delete(ref.owner, c.index())
				delete(ref.parts, c.index())
			}
			if have := d.ClassName(s.Receive(0, program.Uplink, &in, nil, out)); have != want {
				t.Fatalf("packet %d, an acknowledgement of %v, is %s, want %s", arrivals, c.key, have, want)
			}
			for w := range peers {
				job, place := c.key[0]-1, (c.key[1]-1)%places
				if c.heard>>w&1 == 1 && 1+rounds[job][w][place]*places+place == c.key[1] {
					rounds[job][w][place]++
					tries[job][w][place] = 0
					heard++
				}
			}
			return
		}
		in.Kind, in.Trace = program.Data, program.NewTrace(olaf.WorkerID(c.worker), uint32(c.key[1]), 1)
		if c.again {
			in.Flags = program.Resend
		}
		have := d.ClassName(s.Receive(0, program.Port(c.worker), &in, []uint32{uint32(int32(c.value))}, out))
		if want := ref.data(c.index(), c.key, c.worker, c.value, c.again); have != want {
			t.Fatalf("packet %d, %+v, is %s, the reference says %s", arrivals, c, have, want)
		}
		programtest.CompareOutputs(t, arrivals, &out.lines, &ref.out)
	})
	programtest.CheckAccount(t, &d, s, arrivals)
	if heard < int(arrivals)/10 {
		t.Errorf("workers heard of %d sums in %d packets: they hardly came on", heard, arrivals)
	}
	t.Logf("%d arrived, workers heard of %d sums; %d on the way at the end", arrivals, heard, way.CountInFlight())
}
