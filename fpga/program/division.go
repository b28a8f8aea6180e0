package program

import (
	"cmp"
	"fmt"

	"github.com/olafctl/olaf"
)

// Tenant is a job in a switch with an index of its members by port.
type Tenant struct {
	Job
	Ports []int // index in Members of the member at each port, or -1
}

// Tenants lists the jobs in a switch, indexed by job id. The entry of an unused id is nil.
type Tenants []*Tenant

// Find returns the job with the given id, or nil if there is none.
func (t Tenants) Find(id olaf.ClusterID) *Tenant {
	if int(id) < len(t) {
		return t[id]
	}
	return nil
}

// Put adds a job, replacing any job with the same id.
func (t *Tenants) Put(k *Tenant) {
	for int(k.ID) >= len(*t) {
		*t = append(*t, nil)
	}
	(*t)[k.ID] = k
}

// OwnerOf returns the job that slot i is assigned to, or nil if there is none.
func (t Tenants) OwnerOf(i int) *Tenant {
	for _, k := range t {
		if k != nil && i >= k.Base && i < k.Base+k.Slots {
			return k
		}
	}
	return nil
}

// Overlaps reports whether the partitions of two jobs have a slot in common.
func (j *Job) Overlaps(o *Job) bool {
	return j.Slots > 0 && o.Slots > 0 && j.Base < o.Base+o.Slots && o.Base < j.Base+j.Slots
}

// CheckOverlap returns an error if the partitions of two different jobs have a slot in common. places is the protocol's
// term for slots. The error matches ErrConfig.
func (j *Job) CheckOverlap(o *Job, places string) error {
	if o.ID == j.ID || !o.Overlaps(j) {
		return nil
	}
	return fmt.Errorf("%w: the %s of jobs %d and %d overlap: %d to %d and %d to %d; give each its own",
		ErrConfig, places, o.ID, j.ID, o.Base, o.Base+o.Slots-1, j.Base, j.Base+j.Slots-1)
}

// Division describes a table that is partitioned among jobs. Every slot waits for all members of the job that it is
// assigned to.
type Division struct {
	Slots   int // number of slots in the table
	Members int // number of bits in a slot's bitmap
	// Places, Children and Sum are the protocol's words in errors, such as aggregators, workers and "a set".
	Places, Children, Sum string
}

// AdmitJob checks a job against the existing jobs and returns its Tenant. A job without a number of slots is assigned
// the slots from its base to the table's end. The error matches ErrConfig.
func (d Division) AdmitJob(j Job, beside Tenants) (*Tenant, error) {
	j.Slots = cmp.Or(j.Slots, d.Slots-j.Base)
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
		if err := j.CheckOverlap(&other.Job, d.Places); err != nil {
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
