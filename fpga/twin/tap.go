package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// Observer receives the queue's events in order, with device times. It must not use the twin. Slots count from 0;
// dropped updates have engine.NoSlot. inside lists the contributors of a program's sum and is valid during the
// call; it is nil for a worker's update.
type Observer interface {
	Arrival(at olaf.Time, class engine.Class, slot engine.Slot, u *olaf.Update, inside []olaf.Contributor)
	Start(at olaf.Time, slot engine.Slot)
	Departure(at olaf.Time, slot engine.Slot, u *olaf.Update)
}

// AnswerObserver is an Observer that also receives the arrival of sums at the workers of their cluster. The
// observation is valid during the call.
type AnswerObserver interface {
	Answer(at olaf.Time, o *olaf.Observation)
}

// Kind is the kind of a recorded packet.
type Kind uint8

const (
	// Delivered is an update on its way to the parameter server, after the queue.
	Delivered Kind = iota
	// Ack is one copy of an ACK on its way to a worker, after VNP4-2.
	Ack
	// Bypassed is a frame of the generator that bypassed the queue: not OLAF, by its destination port, or from an
	// unknown source.
	Bypassed
	// Answered is one copy of a sum on its way to a worker.
	Answered
)

// Addresses are a frame's addresses, from sender to receiver. Unlike olaf.Addresses they include the destination
// port, which differs in frames that are not OLAF.
type Addresses struct {
	SourceMAC, DestMAC   [6]byte
	SourceIP, DestIP     [4]byte
	SourcePort, DestPort uint16
}

// Packet is one frame that left the card, with all its contents.
type Packet struct {
	At        olaf.Time // last bit out, on the generator's run clock
	Queued    olaf.Duration
	Kind      Kind
	Addresses Addresses
	// Update is the header. For an ACK, Worker is the receiver of the copy and Lanes is 0. For a bypassed frame the
	// identity is the one in its header.
	Update olaf.Update
	Lanes  []int32          // valid until the next DrainPackets; nil for an ACK
	Status olaf.QueueStatus // of an ACK: the status written by VNP4-2
	Port   uint8            // egress port of an ACK or of a copy of a sum
	Seg    uint64           // position of the lanes in the vector
	ToS    uint8            // type of service
	Format uint8            // of a bypassed frame, from its flow: 0 is OLAF, else the program's code
	// Contributors has the contributors of a delivered or answered frame's Observation, and is valid as long.
	Contributors []olaf.Contributor
}

// tap has the observations and packets since the last drain. A drain swaps the arenas, so its result stays valid
// until the next one.
type tap struct {
	observations []olaf.Observation
	packets      []Packet
	inside       [2][]olaf.Contributor
	lanes        [2][]int32
	side         int // index into inside
	laneSide     int
}

// Drain appends the updates delivered since the last Drain to buf, in order, and returns it. At counts on the
// generator's run clock. Contributors (nil without provenance) are valid until the next Drain.
func (t *Twin) Drain(buf []olaf.Observation) []olaf.Observation {
	buf = append(buf, t.tap.observations...)
	t.tap.observations = t.tap.observations[:0]
	t.tap.side ^= 1
	t.tap.inside[t.tap.side] = t.tap.inside[t.tap.side][:0]
	return buf
}

// Record turns the recording of a twin with Config.Wire on or off between runs. It takes effect when the queue is
// next configured.
func (t *Twin) Record(on bool) { t.recording = on && t.cfg.Wire }

// DrainPackets appends the packets recorded since the last DrainPackets to buf, in order of time, and returns it.
// Without Config.Wire there are none. Lanes are valid until the next DrainPackets.
func (t *Twin) DrainPackets(buf []Packet) []Packet {
	buf = append(buf, t.tap.packets...)
	t.tap.packets = t.tap.packets[:0]
	t.tap.laneSide ^= 1
	t.tap.lanes[t.tap.laneSide] = t.tap.lanes[t.tap.laneSide][:0]
	return buf
}

// keepContributors copies c into the arena.
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

// keepLanes copies v into the arena.
func (p *tap) keepLanes(v []int32) []int32 {
	arena := p.lanes[p.laneSide]
	from := len(arena)
	arena = append(arena, v...)
	p.lanes[p.laneSide] = arena
	return arena[from:len(arena):len(arena)]
}

// runTime converts device time to the generator's run clock.
func (t *Twin) runTime(at olaf.Time) olaf.Time { return at - cycleTime(t.generator.zero) }

func uplinkAddresses(f *flow) Addresses {
	return Addresses{f.SourceMAC, f.DestMAC, f.SourceIP, f.DestIP, f.SourcePort, f.DestPort}
}

// downlinkAddresses returns the flow's addresses in the opposite direction.
func downlinkAddresses(f *flow) Addresses {
	return Addresses{f.DestMAC, f.SourceMAC, f.DestIP, f.SourceIP, f.DestPort, olaf.UDPPort}
}
