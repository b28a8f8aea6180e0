package endpoint

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/internal/splitmix"
)

// Timeouts of ATP's released client for the first acknowledgement and for each later one.
const (
	ATPFirstTimeout = 50 * olaf.Millisecond
	ATPTimeout      = 200 * olaf.Microsecond
)

// ATPWindow is the default window per thread in the released client.
const ATPWindow = 100

// atpFrame is the length of a frame in the released client. It is the unit of the client's congestion window.
const atpFrame olaf.Size = 308

// linger is the maximum time for which a server waits until a batch of answers is full.
const linger = olaf.Microsecond

// ATP configures ATP's workers and server.
type ATP struct {
	// Profile is atp.Released, the default, or atp.Paper. The profiles differ in the choice of an aggregator, in the
	// number of acknowledgements out of order that count as a loss, and in whether the server proposes other
	// aggregators after a collision.
	Profile string
	// Aggregators is the number of aggregators that the job may use, and Base the first of them. The default is all
	// aggregators of the released switch.
	Aggregators, Base int
	// Window is the maximum number of packets in flight; default ATPWindow.
	Window int
	// Trigger is the number of acknowledgements out of order after which earlier missing packets are resent; default
	// the profile's.
	Trigger int
	// FirstTimeout is the timeout for the first acknowledgement of a vector, Timeout for each further one. Defaults are
	// ATPFirstTimeout and ATPTimeout.
	FirstTimeout, Timeout olaf.Duration
	// Congestion adjusts the window when acknowledgements have congestion marks.
	Congestion bool
	// Silent disables resending by workers: ATP without its recovery.
	Silent bool
	// Batch is the number of acknowledgements that a server sends together. Acknowledgements of repeated packets are
	// sent at once.
	Batch int
	// PerRack is the number of workers at each switch below the server's; 0 if all are at the server's switch.
	PerRack int
	Fixed   Fixed
}

func (o *ATP) check(cfg *Config) error {
	o.Profile = cmp.Or(o.Profile, atp.Released)
	o.Aggregators = cmp.Or(o.Aggregators, atp.DefaultSlots)
	o.Window = cmp.Or(o.Window, ATPWindow)
	if o.Trigger == 0 {
		o.Trigger = 1
		if o.Profile == atp.Paper {
			o.Trigger = 3
		}
	}
	o.FirstTimeout = cmp.Or(o.FirstTimeout, ATPFirstTimeout)
	o.Timeout = cmp.Or(o.Timeout, ATPTimeout)
	o.Batch = max(o.Batch, 1)
	switch {
	case o.Profile != atp.Released && o.Profile != atp.Paper:
		return fmt.Errorf("%w: ATP has no profile %q; there are %s, %s", ErrConfig, o.Profile, atp.Released, atp.Paper)
	case o.Aggregators < 1 || o.Base < 0 || o.Base+o.Aggregators > atp.MaxSlots:
		return fmt.Errorf("%w: aggregators %d to %d; an index of 16 bits reaches 0 to %d", ErrConfig, o.Base,
			o.Base+o.Aggregators-1, atp.MaxSlots-1)
	case o.Window < 1 || o.Window > o.Aggregators:
		return fmt.Errorf("%w: a window of %d packets over %d aggregators of the job; it must be 1 to as many",
			ErrConfig, o.Window, o.Aggregators)
	case o.Trigger < 0 || o.FirstTimeout < 0 || o.Timeout < 0 || o.PerRack < 0:
		return fmt.Errorf("%w: ATP sends again after %d acknowledgements out of order, %s or %s; use times "+
			"(--timeout) of more than 0, or leave them out", ErrConfig, o.Trigger, o.FirstTimeout, o.Timeout)
	case o.Profile == atp.Released && o.racks(cfg.Workers) > 1:
		return fmt.Errorf("%w: ATP's profile %s knows one level of switches; take %s, or workers on one switch",
			ErrConfig, atp.Released, atp.Paper)
	}
	if most := o.minFanIn(cfg.Workers); most > atp.MaxFan && o.Profile == atp.Paper || most > atp.MaxMembers {
		return fmt.Errorf("%w: %d workers a switch; ATP's fan-in is %d at most, and a bitmap has %d bits", ErrConfig,
			most, atp.MaxFan, atp.MaxMembers)
	}
	return nil
}

// racks returns the number of racks, and thus of switches, that have workers.
func (o *ATP) racks(workers int) int {
	if o.PerRack == 0 || o.PerRack >= workers {
		return 1
	}
	return (workers + o.PerRack - 1) / o.PerRack
}

// minFanIn returns the fan-in that the switches must at least support. It is the number of workers if there is one
// rack, and otherwise the larger of the fan-ins of both levels.
func (o *ATP) minFanIn(workers int) int {
	if o.racks(workers) == 1 {
		return workers
	}
	return max(o.PerRack, o.racks(workers))
}

// place returns the rack of a worker and the worker's index in the rack.
func (o *ATP) place(worker, workers int) (rack, at int) {
	if o.racks(workers) == 1 {
		return 0, worker
	}
	return worker / o.PerRack, worker % o.PerRack
}

// inRack returns the number of workers in a rack.
func (o *ATP) inRack(rack, workers int) int {
	if o.racks(workers) == 1 {
		return workers
	}
	return min(o.PerRack, workers-rack*o.PerRack)
}

// aggregators chooses the aggregators for the packets of a job.
type aggregators struct {
	atp   *ATP
	job   olaf.ClusterID
	table []uint32 // used by the released profile, by place in the window
	used  []bool   // aggregators used by the job
}

func newAggregators(o *ATP, job olaf.ClusterID) aggregators {
	a := aggregators{atp: o, job: job}
	if o.Profile != atp.Released {
		return a
	}
	a.table, a.used = make([]uint32, o.Window), make([]bool, o.Aggregators)
	for i := range a.table {
		for salt := uint16(0); ; salt++ {
			at := hash16(uint16(job), uint16(i), salt) % o.Aggregators
			if salt == 0xffff { // 16 bits of hash do not reach every index: use the next free one
				at = slices.Index(a.used, false)
			}
			if !a.used[at] {
				a.used[at], a.table[i] = true, uint32(o.Base+at)
				break
			}
		}
	}
	return a
}

// hash16 returns the hash that the released client uses: the low 16 bits of the CRC-32 over three little-endian words.
func hash16(a, b, c uint16) int {
	var key [6]byte
	binary.LittleEndian.PutUint16(key[0:], a)
	binary.LittleEndian.PutUint16(key[2:], b)
	binary.LittleEndian.PutUint16(key[4:], c)
	return int(crc32.ChecksumIEEE(key[:]) & 0xffff)
}

// of returns the aggregator for the packet with the given sequence number. In the paper, it is a hash of job and
// number. The released client cycles through a table with one entry for each place in the window.
func (a *aggregators) of(seq uint64) uint32 {
	if a.table == nil {
		return uint32(a.atp.Base + hash16(uint16(a.job), uint16(seq), uint16(seq>>16))%a.atp.Aggregators)
	}
	return a.table[(seq-1)%uint64(len(a.table))]
}

// remap sets the aggregator for a packet's place in the window to the one that the server proposed, unless the job
// already uses that aggregator.
func (a *aggregators) remap(seq uint64, proposed uint32) {
	at := int(proposed) - a.atp.Base
	if a.table == nil || at < 0 || at >= len(a.used) || a.used[at] {
		return
	}
	place := &a.table[(seq-1)%uint64(len(a.table))]
	a.used[int(*place)-a.atp.Base] = false
	a.used[at], *place = true, proposed
}

// proposals cycles through a shuffled list of the aggregators that a server can propose.
type proposals struct {
	order []uint32
	next  int
}

func newProposals(o *ATP, job olaf.ClusterID) proposals {
	p := proposals{order: make([]uint32, o.Aggregators)}
	for i := range p.order {
		p.order[i] = uint32(o.Base + i)
	}
	for i := len(p.order) - 1; i > 0; i-- {
		k := splitmix.MixBits(uint64(job)<<32|uint64(i)) % uint64(i+1)
		p.order[i], p.order[k] = p.order[k], p.order[i]
	}
	return p
}

func (p *proposals) take() uint32 {
	v := p.order[p.next]
	p.next = (p.next + 1) % len(p.order)
	return v
}

// rackShift is the position of the rack bits in a packet's bitmap. The low half contains the contributing workers in a
// rack, and the high half contains the racks.
const rackShift = 32

// contributors is a set of workers.
type contributors []uint64

func (c contributors) has(w int) bool { return c[w/64]&(1<<(w%64)) != 0 }
func (c contributors) add(w int)      { c[w/64] |= 1 << (w % 64) }

// inside returns the workers whose contributions a packet contains, according to its bitmaps.
func (o *ATP) inside(into []int, p *program.Packet, workers int) []int {
	into = into[:0]
	racks, one := uint32(p.Bitmap>>rackShift), uint32(p.Bitmap)
	whole := racks&(racks-1) != 0 // packets from several racks leave the server's switch only when complete
	for r := range o.racks(workers) {
		if o.racks(workers) > 1 && racks>>r&1 == 0 {
			continue
		}
		for at := range o.inRack(r, workers) {
			if whole || one>>at&1 != 0 {
				into = append(into, r*o.PerRack+at)
			}
		}
	}
	return into
}
