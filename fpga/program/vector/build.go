package vector

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Build returns the program that v names, with its jobs and members, ready to play. A vector's program line has these
// options: profile, wrap, parent (true, false), lanes, slots (or segments, aggregators), workers (or members: children
// at ports 0 to n-1), h (or fan), jobs (ids joined by commas, default 0), racks (the number of switches with workers
// below another switch), and parents (addresses of candidate parents for the racks). The error matches ErrFormat for
// unknown words, and program.ErrConfig for values that the program rejects.
func (v *Vector) Build(described []program.Description) (Subject, error) {
	i := slices.IndexFunc(described, func(d program.Description) bool { return d.Name == v.Program })
	if i < 0 {
		return Subject{}, fmt.Errorf("%w: unknown program %q; there are %s", ErrFormat, v.Program, joinNames(described))
	}
	d := &described[i]
	o := options{jobs: []olaf.ClusterID{0}, workers: 2}
	for _, f := range v.Options {
		if err := o.setOption(f); err != nil {
			return Subject{}, fmt.Errorf("%w: program line: %w", ErrFormat, err)
		}
	}
	for i := range v.Steps {
		if s := &v.Steps[i]; s.In != nil && o.cfg.LaneMemory > 0 && len(s.In.Data) > o.cfg.LaneMemory {
			return Subject{}, fmt.Errorf(
				"%w: line %d: %d words of data where a slot stores %d; the program line may say lanes=%[3]d",
				ErrFormat, s.Line, len(s.In.Data), o.cfg.LaneMemory)
		}
	}
	tops, err := o.topNames(d)
	if err != nil {
		return Subject{}, err
	}
	s := Subject{Description: d, Racks: o.racks}
	top, children := o.job, o.workers
	if o.racks > 0 {
		top.Level, children = 1, o.racks
	}
	for _, name := range tops {
		if err := o.addSwitch(&s, name, top, children); err != nil {
			return Subject{}, err
		}
	}
	rack := o.job
	rack.Parent = true
	for r := range o.racks {
		if err := o.addSwitch(&s, fmt.Sprintf("rack%d", r), rack, o.workers); err != nil {
			return Subject{}, err
		}
	}
	return s, nil
}

// addSwitch adds a switch to the subject and configures its jobs.
func (o *options) addSwitch(s *Subject, name string, j program.Job, children int) error {
	p, err := s.Description.New(o.cfg)
	if err != nil {
		return err
	}
	w := Switch{Name: name, Program: p}
	j.Members = make([]program.Member, children)
	for c := range j.Members {
		j.Members[c] = program.Member{Worker: olaf.WorkerID(c), Port: program.Port(c)}
		w.Members = append(w.Members, program.Port(c))
	}
	part := p.Slots() / len(o.jobs)
	for k, id := range o.jobs {
		j.ID = id
		if len(o.jobs) > 1 {
			j.Base, j.Slots = k*part, part
		}
		if err := p.Configure(j); err != nil {
			return err
		}
	}
	s.Switches = append(s.Switches, w)
	return nil
}

// topNames returns the names of the switches above the racks. The first is the parent of the racks.
func (o *options) topNames(d *program.Description) ([]string, error) {
	switch {
	case len(o.parents) == 0:
		return []string{"root"}, nil
	case o.racks == 0:
		return nil, fmt.Errorf("%w: program line: parents are of racks, and there are none", ErrFormat)
	case d.Above == nil && len(o.parents) > 1:
		return nil, fmt.Errorf("%w: program line: %s does not say which of %d switches above it is taken", ErrFormat,
			d.Name, len(o.parents))
	}
	taken := 0
	if d.Above != nil {
		taken = d.Above(o.parents)
	}
	names := []string{o.parents[taken].String()}
	for i, a := range o.parents {
		if i != taken {
			names = append(names, a.String())
		}
	}
	return names, nil
}

func joinNames(described []program.Description) string {
	all := make([]string, len(described))
	for i := range described {
		all[i] = described[i].Name
	}
	return strings.Join(all, ", ")
}

// options contains the options in a vector's program line.
type options struct {
	cfg     program.Config
	job     program.Job
	jobs    []olaf.ClusterID
	workers int
	racks   int
	parents []netip.Addr
}

func (o *options) setOption(f Field) error {
	switch f.Name {
	case "profile":
		o.cfg.Profile = f.Value
		return nil
	case "wrap":
		return parseBool(f, &o.cfg.Wrap)
	case "parent":
		return parseBool(f, &o.job.Parent)
	case "lanes":
		return parseNumber(f, 0, olaf.MaxLanes, &o.cfg.LaneMemory)
	case "slots", "segments", "aggregators":
		return parseNumber(f, 1, 1<<24, &o.cfg.Slots)
	case "workers", "members":
		return parseNumber(f, 1, maxPort, &o.workers)
	case "level":
		return parseNumber(f, 0, 1, &o.job.Level)
	case "h", "fan":
		return parseNumber(f, 1, 1<<20, &o.job.Fan) // defaults to the number of children
	case "jobs":
		return o.setJobs(f.Value)
	case "racks":
		return parseNumber(f, 1, maxRacks, &o.racks)
	case "parents":
		return o.setParents(f.Value)
	}
	return fmt.Errorf("unknown option %q", f.Name)
}

func (o *options) setJobs(value string) error {
	o.jobs = nil
	for word := range strings.SplitSeq(value, ",") {
		id, err := strconv.ParseUint(word, 10, 16)
		if err != nil {
			return fmt.Errorf("job %q is not a number of 16 bits", word)
		}
		o.jobs = append(o.jobs, olaf.ClusterID(id))
	}
	return nil
}

func (o *options) setParents(value string) error {
	for word := range strings.SplitSeq(value, ",") {
		a, err := netip.ParseAddr(word)
		if err != nil {
			return fmt.Errorf("parent %q is not an IP address", word)
		}
		o.parents = append(o.parents, a)
	}
	return nil
}

func parseBool(f Field, to *bool) error {
	v, err := strconv.ParseBool(f.Value)
	if err != nil {
		return fmt.Errorf("%s=%s is neither true nor false", f.Name, f.Value)
	}
	*to = v
	return nil
}

func parseNumber(f Field, low, high int, to *int) error {
	v, err := strconv.Atoi(f.Value)
	if err != nil || v < low || v > high {
		return fmt.Errorf("%s=%s is not a number from %d to %d", f.Name, f.Value, low, high)
	}
	*to = v
	return nil
}
