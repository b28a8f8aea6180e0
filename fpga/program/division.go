package program

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// Tenant is a job as a switch holds it: beside the members, who of them hangs on which port.
type Tenant struct {
	Job
	Ports []int // by port, the place among Members of whoever hangs on it, -1 for nobody
}

// Tenants are the jobs of a switch by id, nil where there is none.
type Tenants []*Tenant

// Of is the job of that id, nil where there is none.
func (t Tenants) Of(id olaf.ClusterID) *Tenant {
	if int(id) < len(t) {
		return t[id]
	}
	return nil
}

// Put adds a job or takes the place of the one with its id.
func (t *Tenants) Put(k *Tenant) {
	for int(k.ID) >= len(*t) {
		*t = append(*t, nil)
	}
	(*t)[k.ID] = k
}

// Holding is the job that slot i is a part of, nil where it is nobody's.
func (t Tenants) Holding(i int) *Tenant {
	for _, k := range t {
		if k != nil && i >= k.Base && i < k.Base+k.Slots {
			return k
		}
	}
	return nil
}

// Overlaps says that two jobs were given the same slot.
func (j *Job) Overlaps(o *Job) bool {
	return j.Slots > 0 && o.Slots > 0 && j.Base < o.Base+o.Slots && o.Base < j.Base+j.Slots
}

// Beside checks that a job and another were given no slot in common. The error matches ErrConfig.
func (j *Job) Beside(o *Job, places string) error {
	if o.ID == j.ID || !o.Overlaps(j) {
		return nil
	}
	return fmt.Errorf("%w: the %s of jobs %d and %d overlap: %d to %d and %d to %d; give each its own",
		ErrConfig, places, o.ID, j.ID, o.Base, o.Base+o.Slots-1, j.Base, j.Base+j.Slots-1)
}

// Division is the rule of a table in which every job has slots of its own and every slot waits for all members of its job.
type Division struct {
	Slots   int // of the table
	Members int // that a slot has bits for
	// Places, Children and Sum are the protocol's words in errors, such as aggregators, workers and "a set".
	Places, Children, Sum string
}

// Admit checks a job beside those that are there; one that names no length takes the table from its base to the end. The
// error matches ErrConfig.
func (d Division) Admit(j Job, beside Tenants) (*Tenant, error) {
	if j.Slots == 0 {
		j.Slots = d.Slots - j.Base
	}
	switch {
	case j.Base < 0 || j.Slots < 1 || j.Base+j.Slots > d.Slots:
		return nil, fmt.Errorf("%w: job %d asks for %s %d to %d of %d", ErrConfig, j.ID, d.Places, j.Base,
			j.Base+j.Slots-1, d.Slots)
	case len(j.Members) < 1 || len(j.Members) > d.Members:
		return nil, fmt.Errorf("%w: %d %s; a bitmap has bits for 1 to %d", ErrConfig, len(j.Members), d.Children,
			d.Members)
	case j.Fan != 0 && j.Fan != len(j.Members):
		return nil, fmt.Errorf("%w: a fan-in of %d for %d %s; %s is complete when all are inside", ErrConfig, j.Fan,
			len(j.Members), d.Children, d.Sum)
	}
	for _, other := range beside {
		if other == nil {
			continue
		}
		if err := j.Beside(&other.Job, d.Places); err != nil {
			return nil, err
		}
	}
	k := &Tenant{Job: j}
	for i, m := range j.Members {
		if m.Port < 0 {
			return nil, fmt.Errorf("%w: member %d has no port", ErrConfig, i)
		}
		for int(m.Port) >= len(k.Ports) {
			k.Ports = append(k.Ports, -1)
		}
		k.Ports[m.Port] = i
	}
	return k, nil
}
