package sched

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// jobsSchema is the schema of jobs files.
const jobsSchema = "olafctl.jobs/v1"

// ErrProblem is matched by errors in a problem. The message suggests a fix and names the file and the line if they are
// known.
var ErrProblem = olaf.NewError(olaf.Usage, "bad jobs")

// Error is one error in a problem.
type Error struct {
	File string // empty for a problem built in memory
	Line int    // 0 if unknown
	What string
}

func (e *Error) Error() string {
	return (&yamlfile.Error{File: e.File, Line: e.Line, What: e.What}).Error()
}

// Unwrap returns ErrProblem.
func (e *Error) Unwrap() error { return ErrProblem }

// Problem is the content of a jobs file: a network, and the jobs that send over it.
type Problem struct {
	yamlfile.Pos `yaml:"-" json:"-"`
	File         string        `yaml:"-" json:"-"`
	Schema       string        `yaml:"schema" json:"-"`
	Slot         olaf.Duration `yaml:"slot" json:"slot"` // Δt
	// δB, the step in which policies raise a worker's rate
	Step            olaf.Rate     `yaml:"step" json:"step"`
	Reconfiguration olaf.Duration `yaml:"reconfiguration,omitempty" json:"reconfiguration"` // ε, at most a slot
	PortRate        olaf.Rate     `yaml:"port_rate" json:"port_rate"`                       // per optical port, each direction
	// interface of a worker or parameter server
	ServerRate  olaf.Rate    `yaml:"server_rate" json:"server_rate"`
	HalfDuplex  bool         `yaml:"half_duplex,omitempty" json:"half_duplex,omitempty"` // port_rate is for both directions together
	PartialINC  bool         `yaml:"partial_inc,omitempty" json:"partial_inc,omitempty"` // a switch may aggregate some of a job's workers
	Fixed       bool         `yaml:"fixed,omitempty" json:"fixed,omitempty"`             // the connections can't be changed
	Connections []Connection `yaml:"connections,omitempty" json:"connections,omitempty"` // before slot 0; default none
	Units       []Unit       `yaml:"units" json:"units"`
	Jobs        []Job        `yaml:"jobs" json:"jobs"`
}

// Unit is a rack or pod. It consists of a programmable switch and the servers below it.
type Unit struct {
	yamlfile.Pos `yaml:"-" json:"-"`
	Name         string `yaml:"name" json:"name"`
	// number of equal units name1, name2 …; default one, called name
	Count      int       `yaml:"count,omitempty" json:"-"`
	Ports      int       `yaml:"ports" json:"ports"`                                 // to the optical cross-connect
	INC        int       `yaml:"inc,omitempty" json:"inc"`                           // jobs that the switch can aggregate at a time
	SwitchRate olaf.Rate `yaml:"switch_rate,omitempty" json:"switch_rate,omitempty"` // up and down together; default unlimited
	// for the segments of all jobs; default limited by inc only
	Memory olaf.Size `yaml:"memory,omitempty" json:"memory,omitempty"`
}

// Connection describes the optical connections between two units. Each connection uses one port in both units.
type Connection struct {
	yamlfile.Pos `yaml:"-" json:"-"`
	Between      []string `yaml:"between" json:"between"`       // two units
	Count        int      `yaml:"count,omitempty" json:"count"` // default 1
}

// Job is one iteration of a training job, which is to be scheduled.
type Job struct {
	yamlfile.Pos `yaml:"-" json:"-"`
	ID           string `yaml:"id" json:"id"`
	// a job sends from the first slot that begins at or after its arrival
	Arrival olaf.Duration `yaml:"arrival,omitempty" json:"arrival"`
	Volume  olaf.Size     `yaml:"volume" json:"volume"` // per worker
	// time for a server's update of the model; a switch needs none
	Update     olaf.Duration  `yaml:"update,omitempty" json:"update"`
	Workers    map[string]int `yaml:"workers" json:"workers"`                             // by unit
	Server     string         `yaml:"server" json:"server"`                               // unit of its parameter server
	ServerOnly bool           `yaml:"server_only,omitempty" json:"server_only,omitempty"` // never aggregated by a switch
	Segment    olaf.Size      `yaml:"segment,omitempty" json:"segment,omitempty"`         // memory that it needs in a switch
}

// Ranges of a problem's values.
const (
	maxUnits   = 512
	maxPorts   = 4096
	maxINC     = 65536
	maxJobs    = 100_000
	maxWorkers = 4096 // per job
	minSlot    = olaf.Microsecond
	maxSlot    = olaf.Hour
	maxVolume  = olaf.Size(1e15)
	maxRate    = olaf.Rate(1e15)
)

// Longest returns the maximum number of slots in a schedule. It is a million or, if slots are long, fewer, because
// virtual time ends after 53 days.
func (p *Problem) Longest() int { return int(min(1<<20, (1<<62)/p.Slot)) }

// ArrivalSlot returns the first slot in which j can send if slots have the given length.
func (j *Job) ArrivalSlot(slot olaf.Duration) int { return int((j.Arrival + slot - 1) / slot) }

// WithINC returns a copy of the problem in which every unit's switch has n places. 0 means none.
func (p *Problem) WithINC(n int) *Problem {
	c := *p
	c.Units = append([]Unit(nil), p.Units...)
	for i := range c.Units {
		c.Units[i].INC = n
	}
	return &c
}

// WithSlot returns a copy of the problem with slots of the given length.
func (p *Problem) WithSlot(slot olaf.Duration) *Problem {
	c := *p
	c.Slot = slot
	return &c
}

// WithMesh returns a copy of the problem with the connections from WithConnections, which are fixed.
func (p *Problem) WithMesh() *Problem {
	c := p.WithConnections()
	c.Fixed = true
	return c
}

// WithConnections returns a copy of the problem that has connections before slot 0. Every unit divides its ports evenly
// among the other units; the unit with fewer ports limits the connections of a pair. A unit with fewer ports than there
// are other units is not connected to all of them.
func (p *Problem) WithConnections() *Problem {
	c := *p
	c.Connections = nil
	n := len(p.Units)
	if n < 2 {
		return &c
	}
	free := make([]int, n)
	count := make([][]int, n)
	for v := range p.Units {
		free[v], count[v] = p.Units[v].Ports, make([]int, n)
	}
	// Units at equal distance on a ring are connected in one round, so that remaining ports are also spread evenly.
	for joined := true; joined; {
		joined = false
		for distance := 1; distance <= n/2; distance++ {
			for v := range n {
				u := (v + distance) % n
				if (2*distance == n && v >= distance) || free[v] == 0 || free[u] == 0 {
					continue
				}
				count[v][u]++
				free[v]--
				free[u]--
				joined = true
			}
		}
	}
	for v := range n {
		for u := v + 1; u < n; u++ {
			if k := count[v][u] + count[u][v]; k > 0 {
				c.Connections = append(c.Connections, Connection{Between: []string{p.Units[v].Name, p.Units[u].Name}, Count: k})
			}
		}
	}
	return &c
}
