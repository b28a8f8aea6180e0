package vector

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Build makes the program that v names, of those described, with its jobs and members, ready to play. Options of the
// program line: profile, wrap, parent (true, false), lanes, slots (or segments, aggregators), workers (or members: children
// at ports 0 to n-1), h (or fan), jobs (ids joined by commas; 0 alone by default). The error matches ErrFormat for words
// that nobody knows, and program.ErrConfig for values that the program refuses.
func (v *Vector) Build(described []program.Description) (Subject, error) {
	i := slices.IndexFunc(described, func(d program.Description) bool { return d.Name == v.Program })
	if i < 0 {
		return Subject{}, fmt.Errorf("%w: unknown program %q; there are %s", ErrFormat, v.Program, names(described))
	}
	d := &described[i]
	o := options{jobs: []olaf.ClusterID{0}, workers: 2}
	for _, f := range v.Options {
		if err := o.set(f); err != nil {
			return Subject{}, fmt.Errorf("%w: program line: %w", ErrFormat, err)
		}
	}
	p, err := d.New(o.cfg)
	if err != nil {
		return Subject{}, err
	}
	s := Subject{Program: p, Description: d}
	o.job.Members = make([]program.Member, o.workers)
	for w := range o.job.Members {
		o.job.Members[w] = program.Member{Worker: olaf.WorkerID(w), Port: program.Port(w)}
		s.Members = append(s.Members, program.Port(w))
	}
	part := p.Slots() / len(o.jobs)
	for k, id := range o.jobs {
		o.job.ID = id
		if len(o.jobs) > 1 {
			o.job.Base, o.job.Slots = k*part, part
		}
		if err := p.Configure(o.job); err != nil {
			return Subject{}, err
		}
	}
	return s, nil
}

func names(described []program.Description) string {
	all := make([]string, len(described))
	for i := range described {
		all[i] = described[i].Name
	}
	return strings.Join(all, ", ")
}

// options is what a program line says.
type options struct {
	cfg     program.Config
	job     program.Job
	jobs    []olaf.ClusterID
	workers int
}

func (o *options) set(f Field) error {
	switch f.Name {
	case "profile":
		o.cfg.Profile = f.Value
		return nil
	case "wrap":
		return boolean(f, &o.cfg.Wrap)
	case "parent":
		return boolean(f, &o.job.Parent)
	case "lanes":
		return number(f, 0, olaf.MaxLanes, &o.cfg.LaneMemory)
	case "slots", "segments", "aggregators":
		return number(f, 1, 1<<24, &o.cfg.Slots)
	case "workers", "members":
		return number(f, 1, MaxPort, &o.workers)
	case "level":
		return number(f, 0, 1, &o.job.Level)
	case "h", "fan":
		return number(f, 0, 1<<20, &o.job.Fan)
	case "jobs":
		return o.setJobs(f.Value)
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

func boolean(f Field, to *bool) error {
	v, err := strconv.ParseBool(f.Value)
	if err != nil {
		return fmt.Errorf("%s=%s is neither true nor false", f.Name, f.Value)
	}
	*to = v
	return nil
}

func number(f Field, low, high int, to *int) error {
	v, err := strconv.Atoi(f.Value)
	if err != nil || v < low || v > high {
		return fmt.Errorf("%s=%s is not a number from %d to %d", f.Name, f.Value, low, high)
	}
	*to = v
	return nil
}
