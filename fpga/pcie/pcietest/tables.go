package pcietest

import (
	"encoding/binary"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/pcie"
)

// Tables emulates the VitisNetP4 tables of a card, as they are programmed by the stand-in driver
// (p4ctl/vnp4/testdata/standin.c). The twin and the RTL use them for lookups.
type Tables struct {
	card     *Card
	workers  map[uint32]uint32
	clusters map[uint32]bool
	servers  map[uint32]bool
	version  uint64
}

// Registers of a window, and values of its command register.
const (
	windowKey, windowParams, windowCommand, windowCanary = 0x0, 0x4, 0x8, 0x10
	insertEntry, updateEntry, resetTable                 = 1, 2, 4
	serversTable, workersTable, clustersTable            = 1, 2, 3
	knownCard                                            = 0x1AF
)

// NewTables returns empty tables.
func NewTables() *Tables {
	return &Tables{workers: map[uint32]uint32{}, clusters: map[uint32]bool{}, servers: map[uint32]bool{}}
}

// Attach connects the tables to the register windows of a card. It replaces the card's OnStore.
func (t *Tables) Attach(c *Card) {
	t.card = c
	for _, base := range []uint32{pcie.TablesBase, pcie.TablesBase + pcie.TablesBytes/2} {
		c.Shell[base+windowCanary] = knownCard
	}
	c.OnStore = func(_ int, offset, value uint32) bool {
		if IsTableCommand(offset) {
			t.command(offset-windowCommand, value)
		}
		return false
	}
}

// IsTableCommand reports whether a write to offset changes a table.
func IsTableCommand(offset uint32) bool {
	return offset >= pcie.TablesBase && offset < pcie.TablesBase+pcie.TablesBytes &&
		offset%(pcie.TablesBytes/2) == windowCommand
}

func (t *Tables) command(base, value uint32) {
	t.version++
	key, params, table := t.card.Shell[base+windowKey], t.card.Shell[base+windowParams], value>>8
	there := value&0xFF == insertEntry || value&0xFF == updateEntry
	switch {
	case value&0xFF == resetTable && table == workersTable:
		clear(t.workers)
	case value&0xFF == resetTable && table == serversTable:
		clear(t.servers)
	case table == workersTable && there:
		t.workers[key] = params
	case table == workersTable:
		delete(t.workers, key)
	case table == serversTable:
		t.servers[key] = there
	case table == clustersTable:
		t.clusters[key] = there
	}
}

// Workers returns the number of workers in the tables.
func (t *Tables) Workers() int { return len(t.workers) }

// Version returns a number that is different after every change of the tables.
func (t *Tables) Version() uint64 { return t.version }

// Server reports whether addr belongs to a parameter server.
func (t *Tables) Server(addr netip.Addr) bool { return t.servers[ipNumber(addr)] }

// Worker returns the cluster id and worker id for a source address. It returns false if the address is not in the
// tables.
func (t *Tables) Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	params, ok := t.workers[ipNumber(source)]
	return olaf.ClusterID(params >> 16), olaf.WorkerID(params), ok
}

// Group reports whether the tables contain a cluster. It returns no members, because they are in the replication block.
func (t *Tables) Group(c olaf.ClusterID) ([]olaf.WorkerID, bool) { return nil, t.clusters[uint32(c)] }

func ipNumber(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}
