package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/calendar"
)

// extra is a source of background traffic.
type extra struct {
	w      worker
	source source
	size   olaf.Size
	server int32
}

func (s *sim) addExtras() {
	for i := range s.t.Background {
		b := &s.t.Background[i]
		at, server := int32(0), int32(0)
		for j, name := range s.names {
			if name == b.At {
				at = int32(j)
			}
			if name == b.To {
				server = int32(j - s.switches)
			}
		}
		spec := Clusters{Period: b.Rate.TimeToSend(b.Size), Start: b.Start, Stop: b.Stop, Arrivals: b.Arrivals}
		w := spec.newWorker(s.t.Seed, len(s.workers)+i)
		w.port = s.next[int(server)*len(s.names)+int(at)]
		s.extras = append(s.extras, extra{w, s.newSource(&spec), b.Size, server})
	}
}

// offerBackground offers a background packet to a port.
func (s *sim) offerBackground(to, x int32) {
	p := &s.ports[to]
	taken, started := p.output.Bypass(olaf.Time(s.now), s.extras[x].size, x)
	if !taken {
		p.bypassDropped++
	}
	if started {
		s.launchFrame(to)
	}
}

// scheduleExtra schedules a source's next background packet.
func (s *sim) scheduleExtra(i int) {
	x := &s.extras[i]
	x.w.gen = x.source.generationTime(&x.w)
	if x.w.gen < x.source.end {
		s.queue.Push(calendar.Event{At: x.w.gen, Ord: s.arrivalOrder(), What: kindExtra | uint64(i)})
	}
}

func (s *sim) sendExtra(i int32) {
	x := &s.extras[i]
	x.w.seq++
	s.meter.backgroundSent++
	s.offerBackground(x.w.port, i)
	s.scheduleExtra(int(i))
}
