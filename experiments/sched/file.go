package sched

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// ParseProblem parses and checks a jobs file. name is used in messages. The error matches ErrProblem and lists up to
// yamlfile.MaxErrors mistakes with their lines.
func ParseProblem(name string, text []byte) (*Problem, error) {
	p := &Problem{File: name}
	format := yamlfile.Format{
		Name:   "problem",
		Hint:   "docs/guide/scheduling.md has an example, and `olafctl schedule jobs` writes one",
		Schema: jobsSchema, Fail: func(line int, what string) error { return &Error{name, line, what} },
	}
	if err := format.Decode(text, p); err != nil {
		return nil, err
	}
	if err := p.expand(); err != nil {
		return nil, err
	}
	return p, p.Check()
}

// Text returns p in the format of a jobs file.
func (p *Problem) Text() ([]byte, error) {
	c := *p
	c.Schema = jobsSchema
	return yaml.Marshal(&c)
}

// expand replaces entries that stand for several units by single units, and sets counts that were left out.
func (p *Problem) expand() error {
	var units []Unit
	for i := range p.Units {
		u := p.Units[i]
		switch {
		case u.Count < 0 || u.Count > maxUnits:
			return &Error{p.File, u.LineOf("count"), fmt.Sprintf("unit %q has count %d; use 1 to %d", u.Name, u.Count,
				maxUnits)}
		case u.Count == 0:
			units = append(units, u)
		}
		for k := range u.Count {
			one := u
			one.Name, one.Count = u.Name+strconv.Itoa(k+1), 0
			units = append(units, one)
		}
	}
	p.Units = units
	for i := range p.Connections {
		if c := &p.Connections[i]; c.Count == 0 && !c.Has("count") {
			c.Count = 1
		}
	}
	return nil
}

// checker collects the errors in a problem.
type checker struct {
	p     *Problem
	units map[string]*Unit
	used  map[string]int // ports taken by the connections before slot 0, by unit
	wired map[[2]string]bool
	errs  []error
}

func (c *checker) fail(at yamlfile.Pos, key, format string, args ...any) {
	if len(c.errs) < yamlfile.MaxErrors {
		c.errs = append(c.errs, &Error{c.p.File, at.LineOf(key), fmt.Sprintf(format, args...)})
	}
}

// Check checks p. Every error matches ErrProblem. It names the file and the line, and suggests a fix.
func (p *Problem) Check() error {
	c := &checker{p: p, units: map[string]*Unit{}, used: map[string]int{}, wired: map[[2]string]bool{}}
	c.general()
	c.allUnits()
	c.connections()
	c.jobs()
	return errors.Join(c.errs...)
}

func (c *checker) general() {
	p := c.p
	if p.Slot < minSlot || p.Slot > maxSlot {
		c.fail(p.Pos, "slot", "slot is %v; it must be %v to %v, such as 1s", p.Slot, minSlot, maxSlot)
	}
	if p.Reconfiguration < 0 || p.Reconfiguration > p.Slot {
		c.fail(p.Pos, "reconfiguration", "reconfiguration is %v; it must be 0s to a slot (%v)", p.Reconfiguration, p.Slot)
	}
	c.rate(p.Pos, "step", p.Step)
	c.rate(p.Pos, "port_rate", p.PortRate)
	c.rate(p.Pos, "server_rate", p.ServerRate)
}

func (c *checker) rate(at yamlfile.Pos, key string, r olaf.Rate) {
	if r <= 0 || r > maxRate {
		c.fail(at, key, "%s is %v; it must be positive and at most %v, such as 40Gbps", key, r, maxRate)
	}
}

// within checks that n is between 0 and most.
func (c *checker) within(at yamlfile.Pos, key, of string, n, most int) {
	if n < 0 || n > most {
		c.fail(at, key, "%s has %s %d; use 0 to %d", of, key, n, most)
	}
}

func (c *checker) allUnits() {
	p := c.p
	if len(p.Units) == 0 || len(p.Units) > maxUnits {
		c.fail(p.Pos, "units", "there are %d units; use 1 to %d, such as units: [{name: r, count: 8, ports: 4, inc: "+
			"4}]", len(p.Units), maxUnits)
	}
	for i := range p.Units {
		u := &p.Units[i]
		of := fmt.Sprintf("unit %q", u.Name)
		switch first := c.units[u.Name]; {
		case !isName(u.Name):
			c.fail(u.Pos, "name", "a unit has the name %q; use a name of at most 64 letters, digits, - _ and .", u.Name)
		case first != nil:
			c.fail(u.Pos, "name", "%s appears twice, also in line %d; rename one", of, first.Line)
			continue
		}
		c.units[u.Name] = u
		c.within(u.Pos, "ports", of, u.Ports, maxPorts)
		c.within(u.Pos, "inc", of, u.INC, maxINC)
		if u.SwitchRate != 0 || u.Has("switch_rate") {
			c.rate(u.Pos, "switch_rate", u.SwitchRate)
		}
		if u.Memory < 0 || u.Memory == 0 && u.Has("memory") {
			c.fail(u.Pos, "memory", "%s has memory %v; omit memory if only inc is a limit", of, u.Memory)
		}
	}
}

// isName reports whether s can be used without quotes in files, tables and solver models.
func isName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

func (c *checker) connections() {
	for i := range c.p.Connections {
		k := &c.p.Connections[i]
		if len(k.Between) != 2 || k.Between[0] == k.Between[1] {
			c.fail(k.Pos, "between", "a connection is between two units, not %v; write between: [r1, r2]", k.Between)
			continue
		}
		if k.Count < 1 || k.Count > maxPorts {
			c.fail(k.Pos, "count", "connections between %s and %s: count %d; use 1 to %d", k.Between[0], k.Between[1],
				k.Count, maxPorts)
			continue
		}
		pair := orderPair(k.Between[0], k.Between[1])
		if c.wired[pair] {
			c.fail(k.Pos, "between", "the connections between %s and %s appear twice; give the sum of their counts "+
				"once", pair[0], pair[1])
		}
		c.wired[pair] = true
		for _, name := range pair {
			c.unit(k.Pos, "between", name)
			c.used[name] += k.Count
		}
	}
	for i := range c.p.Units {
		if u := &c.p.Units[i]; c.used[u.Name] > u.Ports {
			c.fail(u.Pos, "ports", "unit %q has %d ports, but its connections before slot 0 need %d", u.Name, u.Ports,
				c.used[u.Name])
		}
	}
}

func orderPair(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// unit returns the unit with the given name. If there is none, it records an error.
func (c *checker) unit(at yamlfile.Pos, key, name string) *Unit {
	u := c.units[name]
	if u == nil {
		names := olaf.Map(c.p.Units, func(u Unit) string { return u.Name })
		c.fail(at, key, "%s names the unknown unit %q%s", key, name, yamlfile.Suggest(name, names))
	}
	return u
}

func (c *checker) jobs() {
	p := c.p
	if len(p.Jobs) == 0 || len(p.Jobs) > maxJobs {
		c.fail(p.Pos, "jobs", "there are %d jobs; use 1 to %d", len(p.Jobs), maxJobs)
	}
	lines := map[string]int{}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if !isName(j.ID) {
			c.fail(j.Pos, "id", "a job has the id %q; use an id of at most 64 letters, digits, - _ and .", j.ID)
			continue
		}
		if first, twice := lines[j.ID]; twice {
			c.fail(j.Pos, "id", "job %q appears twice, also in line %d; rename one", j.ID, first)
			continue
		}
		lines[j.ID] = j.Line
		c.job(j)
	}
}

func (c *checker) job(j *Job) {
	of := fmt.Sprintf("job %q", j.ID)
	switch {
	case j.Arrival < 0 || c.p.Slot > 0 && j.Arrival/c.p.Slot >= olaf.Duration(c.p.Longest()):
		c.fail(j.Pos, "arrival", "%s has arrival %v; use a time in the first %d slots", of, j.Arrival, c.p.Longest())
	case j.Update < 0 || j.Update > maxSlot:
		c.fail(j.Pos, "update", "%s has update %v; use 0s to %v", of, j.Update, maxSlot)
	case j.Volume <= 0 || j.Volume > maxVolume:
		c.fail(j.Pos, "volume", "%s has volume %v; it must be positive and at most %v, such as 528MB", of, j.Volume, maxVolume)
	case j.Segment < 0 || j.Segment == 0 && j.Has("segment"):
		c.fail(j.Pos, "segment", "%s has segment %v; omit segment if only inc is a limit", of, j.Segment)
	case len(j.Workers) == 0:
		c.fail(j.Pos, "workers", "%s has no workers; give the number in each unit, such as workers: {r1: 4}", of)
	}
	known, total := true, 0
	for _, name := range sortedUnits(j) {
		n := j.Workers[name]
		known = c.unit(j.Pos, "workers", name) != nil && known
		if n < 1 || n > maxWorkers {
			c.fail(j.Pos, "workers", "%s has %d workers in %s; use 1 to %d", of, n, name, maxWorkers)
			known = false
		}
		total += n
	}
	if total > maxWorkers {
		c.fail(j.Pos, "workers", "%s has %d workers; use at most %d", of, total, maxWorkers)
	}
	if server := c.unit(j.Pos, "server", j.Server); server == nil || !known || len(c.errs) > 0 {
		return // errors that follow from these can wait for the next attempt
	}
	c.memory(j, of)
	c.reachable(j, of)
}

// memory rejects a job that fits into no switch's memory.
func (c *checker) memory(j *Job, of string) {
	if j.Segment == 0 || j.ServerOnly {
		return
	}
	most, unlimited := olaf.Size(0), false
	for i := range c.p.Units {
		most, unlimited = max(most, c.p.Units[i].Memory), unlimited || c.p.Units[i].Memory == 0
	}
	if !unlimited && j.Segment > most {
		c.fail(j.Pos, "segment", "%s needs a segment of %v, more than any switch has (%v); use a smaller segment, or "+
			"set server_only: true", of, j.Segment, most)
	}
}

// reachable rejects a job whose workers have no path to its server if no switch can replace the server.
func (c *checker) reachable(j *Job, of string) {
	if c.canOffload(j) {
		return
	}
	remote := 0
	for _, name := range sortedUnits(j) {
		if name == j.Server {
			continue
		}
		remote++
		switch {
		case c.p.Fixed && !c.wired[orderPair(name, j.Server)]:
			c.fail(j.Pos, "server", "%s can't be served: its workers in %s have no connection to its server in %s, "+
				"and connections are fixed", of, name, j.Server)
			return
		case c.units[name].Ports == 0:
			c.fail(j.Pos, "workers", "%s can't be served: its workers in %s can't reach its server in %s, because %s "+
				"has no ports", of, name, j.Server, name)
			return
		}
	}
	if ports := c.units[j.Server].Ports; !c.p.Fixed && remote > ports {
		c.fail(j.Pos, "server", "%s can't be served: its workers are in %d units other than its server's, and %s has "+
			"only %d ports", of, remote, j.Server, ports)
	}
}

// canOffload reports whether a switch can replace the job's server.
func (c *checker) canOffload(j *Job) bool {
	if j.ServerOnly || len(j.Workers) != 1 {
		return false
	}
	for name := range j.Workers {
		u := c.units[name]
		return u.INC > 0 && (u.Memory == 0 || j.Segment <= u.Memory)
	}
	return false
}
