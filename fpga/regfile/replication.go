package regfile

import "github.com/olafctl/olaf/fpga/regmap"

// Replication contains the multicast groups that were written through registers. Each member has its worker id in bits
// 15:0 and its port in bits 23:16.
type Replication struct {
	groups map[uint32][]uint32
}

// Clear removes all groups.
func (r *Replication) Clear() { r.groups = map[uint32][]uint32{} }

// Group returns the members of a group, or nil if the group was never written.
func (r *Replication) Group(group uint32) []uint32 { return r.groups[group] }

// resize sets the number of members of a group to n.
func (r *Replication) resize(group, n uint32) {
	if n == 0 {
		delete(r.groups, group)
		return
	}
	members := make([]uint32, n)
	copy(members, r.groups[group])
	r.groups[group] = members
}

// group returns the members of the group selected by register group_index.
func (f *File[C]) group() []uint32 { return f.Replication.Group(f.Reg(regmap.ReplicationGroupIndex)) }

func (f *File[C]) readMember() uint32 {
	at, g := f.Reg(regmap.ReplicationMemberIndex), f.group()
	if at >= uint32(len(g)) {
		return 0
	}
	f.Set(regmap.ReplicationMemberIndex, at+1)
	return g[at]
}

func (f *File[C]) writeMember(v uint32) *Reason {
	at, g := f.Reg(regmap.ReplicationMemberIndex), f.group()
	if at >= uint32(len(g)) {
		return BadValue("the group has no such member; set group_size first")
	}
	g[at] = v
	f.Set(regmap.ReplicationMemberIndex, at+1)
	return nil
}
