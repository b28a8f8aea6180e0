package sched

import (
	"slices"

	"github.com/olafctl/olaf"
)

// Instance is a problem in numerical form for planners. Units and jobs are identified by index, and quantities are in
// bits, bits per second and seconds.
type Instance struct {
	Problem *Problem
	Slot    float64 // s
	Epsilon float64 // s
	Step    float64 // bit/s
	Port    float64 // bit/s
	Server  float64 // bit/s
	Units   []Unit
	Jobs    []Member
	// Initial contains the connections before slot 0, by pair of units in both orders.
	Initial map[[2]int]int
	index   map[string]int
}

// Unit returns the index of the unit with the given name, which must exist.
func (in *Instance) Unit(name string) int { return in.index[name] }

// Member is one job in an instance.
type Member struct {
	ID      string
	Arrival int     // first slot
	Volume  float64 // bits per worker
	Update  float64 // s
	Late    olaf.Duration
	Workers int
	Server  int     // unit
	Shares  []Share // the workers' units, in order of units
	Segment olaf.Size
	// Switches lists the units whose switch may aggregate the job, in order.
	Switches []int
}

// Share describes the workers of a job in one unit.
type Share struct{ Unit, Workers int }

// NoSwitch is used as the unit if the parameter server aggregates.
const NoSwitch = -1

// IsWhole reports whether all workers of the job are in one unit.
func (m *Member) IsWhole() bool { return len(m.Shares) == 1 }

// IsOffloaded reports whether the switch of unit replaces the job's server.
func (m *Member) IsOffloaded(unit int) bool { return m.IsWhole() && m.Shares[0].Unit == unit }

// Streams returns the number of streams from the workers in share s to the server if the switch of unit aggregates.
func (m *Member) Streams(s Share, unit int) int {
	switch {
	case s.Unit != unit:
		return s.Workers
	case m.IsWhole():
		return 0
	}
	return 1
}

// Instance converts a problem that satisfies Check. If partial is set, a switch may aggregate only some of a job's
// workers.
func (p *Problem) Instance(partial bool) *Instance {
	in := &Instance{
		Problem: p, Slot: p.Slot.Seconds(), Epsilon: p.Reconfiguration.Seconds(), Step: float64(p.Step), Port: float64(p.PortRate),
		Server: float64(p.ServerRate), Units: p.Units, Initial: map[[2]int]int{},
		index: make(map[string]int, len(p.Units)),
	}
	for i := range p.Units {
		in.index[p.Units[i].Name] = i
	}
	for _, c := range p.Connections {
		v, u := in.index[c.Between[0]], in.index[c.Between[1]]
		in.Initial[[2]int{v, u}] += c.Count
		in.Initial[[2]int{u, v}] += c.Count
	}
	for i := range p.Jobs {
		in.Jobs = append(in.Jobs, in.member(&p.Jobs[i], partial))
	}
	return in
}

func (in *Instance) member(j *Job, partial bool) Member {
	m := Member{
		ID: j.ID, Arrival: j.ArrivalSlot(in.Problem.Slot), Volume: float64(j.Volume.Bits()), Update: j.Update.Seconds(), Late: j.Update,
		Server: in.index[j.Server], Segment: j.Segment,
	}
	for name, n := range j.Workers {
		m.Shares = append(m.Shares, Share{in.index[name], n})
		m.Workers += n
	}
	slices.SortFunc(m.Shares, func(a, b Share) int { return a.Unit - b.Unit })
	if j.ServerOnly || !m.IsWhole() && !partial {
		return m
	}
	for _, s := range m.Shares {
		if u := &in.Units[s.Unit]; u.INC > 0 && (u.Memory == 0 || j.Segment <= u.Memory) {
			m.Switches = append(m.Switches, s.Unit)
		}
	}
	return m
}

// Finish returns the time at which a job is done. last is the last slot in which it sends, and unit is the unit whose
// switch aggregates, or NoSwitch.
func (in *Instance) Finish(m *Member, last, unit int) olaf.Duration {
	end := in.Problem.Slot * olaf.Duration(last+1)
	if m.IsOffloaded(unit) {
		return end
	}
	return end + m.Late
}

// Origin returns the arrival time of the first job, which is the start of its first slot.
func (in *Instance) Origin() olaf.Duration {
	first := in.Jobs[0].Arrival
	for i := range in.Jobs {
		first = min(first, in.Jobs[i].Arrival)
	}
	return in.Problem.Slot * olaf.Duration(first)
}
