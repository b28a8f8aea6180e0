package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// Observer receives the queue's events in order, with device times. It must not call the twin. Slots are numbered from
// 0, and dropped updates have engine.NoSlot. For a program's sum, inside lists the contributors and is valid during the
// call; for a worker's update it is nil.
type Observer interface {
	Arrival(at olaf.Time, class engine.Class, slot engine.Slot, u *olaf.Update, inside []olaf.Contributor)
	Start(at olaf.Time, slot engine.Slot)
	Departure(at olaf.Time, slot engine.Slot, u *olaf.Update)
}

// answerObserver is an Observer that is also notified when a sum arrives at the workers of its cluster. The observation
// is valid during the call.
type answerObserver interface {
	Answer(at olaf.Time, o *olaf.Observation)
}

// Kind is a kind of recorded packet.
type Kind uint8

const (
	// Delivered is the kind of an update that leaves the queue for the parameter server.
	Delivered Kind = iota
	// Ack is the kind of a copy of an ACK that VNP4-2 sends to a worker.
	Ack
	// Bypassed is the kind of a frame from the generator that bypassed the queue, because its destination port is not
	// OLAF's or its source is unknown.
	Bypassed
	// Answered is the kind of a copy of a sum that is sent to a worker.
	Answered
)

// Addresses contains the addresses of a frame, from sender to receiver. Unlike olaf.Addresses, it includes the
// destination port, which is different in frames that are not OLAF.
type Addresses struct {
	SourceMAC, DestMAC   [6]byte
	SourceIP, DestIP     [4]byte
	SourcePort, DestPort uint16
}

// Packet is a frame that left the card, with its complete contents.
type Packet struct {
	At        olaf.Time // time when the last bit left, on the generator's run clock
	Queued    olaf.Duration
	Kind      Kind
	Addresses Addresses
	// Update is the header. For an ACK, Worker is the receiver of the copy, and Lanes is 0. For a bypassed frame, the
	// identity comes from its header.
	Update olaf.Update
	Lanes  []int32          // valid until the next DrainPackets; nil for an ACK
	Status olaf.QueueStatus // for an ACK: the status written by VNP4-2
	Port   uint8            // egress port, for an ACK or a copy of a sum
	Seg    uint64           // position of the lanes in the vector
	ToS    uint8            // type of service
	Format uint8            // for a bypassed frame, from its flow: 0 for OLAF, else the program's code
	// Contributors lists the contributors of a delivered or answered frame. It is valid as long as that frame's
	// Observation.
	Contributors []olaf.Contributor
}

// tap contains the observations and packets since the last drain. It has two sets of arenas, which each drain
// exchanges, so that the result of a drain stays valid until the next one.
type tap struct {
	observations []olaf.Observation
	packets      []Packet
	inside       [2][]olaf.Contributor
	lanes        [2][]int32
	side         int // index into inside
	laneSide     int
}

// Drain appends the updates delivered since its previous call to buf, in order, and returns it. At is on the
// generator's run clock. Contributors are nil without provenance, and are valid until the next call of Drain.
func (t *Twin) Drain(buf []olaf.Observation) []olaf.Observation {
	buf = append(buf, t.tap.observations...)
	t.tap.observations = t.tap.observations[:0]
	t.tap.side ^= 1
	t.tap.inside[t.tap.side] = t.tap.inside[t.tap.side][:0]
	return buf
}

// Record enables or disables recording for a twin with Config.Wire, between runs. The change takes effect when the
// queue is next configured.
func (t *Twin) Record(on bool) { t.recording = on && t.cfg.Wire }

// DrainPackets appends the packets recorded since its previous call to buf, in order of time, and returns it. Without
// Config.Wire there are none. Lanes are valid until the next call of DrainPackets.
func (t *Twin) DrainPackets(buf []Packet) []Packet {
	buf = append(buf, t.tap.packets...)
	t.tap.packets = t.tap.packets[:0]
	t.tap.laneSide ^= 1
	t.tap.lanes[t.tap.laneSide] = t.tap.lanes[t.tap.laneSide][:0]
	return buf
}

// keepContributors copies c into the arena and returns the copy.
func (p *tap) keepContributors(c []olaf.Contributor) []olaf.Contributor {
	if c == nil {
		return nil
	}
	arena := p.inside[p.side]
	from := len(arena)
	arena = append(arena, c...)
	p.inside[p.side] = arena
	return arena[from:len(arena):len(arena)]
}

// keepLanes copies v into the arena and returns the copy.
func (p *tap) keepLanes(v []int32) []int32 {
	arena := p.lanes[p.laneSide]
	from := len(arena)
	arena = append(arena, v...)
	p.lanes[p.laneSide] = arena
	return arena[from:len(arena):len(arena)]
}

// runTime converts device time to time on the generator's run clock.
func (t *Twin) runTime(at olaf.Time) olaf.Time { return at - cycleTime(t.generator.zero) }

func uplinkAddresses(f *flow) Addresses {
	return Addresses{f.SourceMAC, f.DestMAC, f.SourceIP, f.DestIP, f.SourcePort, f.DestPort}
}

// downlinkAddresses returns the addresses of a frame from the flow's receiver to its sender.
func downlinkAddresses(f *flow) Addresses {
	return Addresses{f.DestMAC, f.SourceMAC, f.DestIP, f.SourceIP, f.DestPort, olaf.UDPPort}
}
