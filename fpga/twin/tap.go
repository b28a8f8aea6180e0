package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// Observer is told what happens in the queue, in order, with device times. It must not use the twin. A slot is a place in
// the queue, from 0; engine.NoSlot is where dropped updates go. An update that a program made says who is inside, valid during the
// call; nil where a worker sent it.
type Observer interface {
	Arrival(at olaf.Time, class engine.Class, slot engine.Slot, u *olaf.Update, inside []olaf.Contributor)
	Start(at olaf.Time, slot engine.Slot)
	Departure(at olaf.Time, slot engine.Slot, u *olaf.Update)
}

// AnswerObserver is an Observer that is told, too, when a sum has reached the workers of its cluster. What it is told of is valid
// during the call.
type AnswerObserver interface {
	Answer(at olaf.Time, o *olaf.Observation)
}

// Kind is what a recorded packet is.
type Kind uint8

const (
	// Delivered is an update on its way to the parameter server, after the queue.
	Delivered Kind = iota
	// Ack is one copy of an ACK on its way to a worker, after VNP4-2.
	Ack
	// Bypassed is a frame of the generator that went around the queue: not OLAF (its destination port says so), or from
	// an unknown source.
	Bypassed
	// Answered is one copy of a sum on its way to a worker.
	Answered
)

// Addresses are a frame's, in the order of sending. Unlike olaf.Addresses they name the destination port, which is another
// one in frames that are not OLAF.
type Addresses struct {
	SourceMAC, DestMAC   [6]byte
	SourceIP, DestIP     [4]byte
	SourcePort, DestPort uint16
}

// Packet is one frame that left the card, with all that its bytes hold.
type Packet struct {
	At        olaf.Time // last bit out, on the generator's run clock
	Queued    olaf.Duration
	Kind      Kind
	Addresses Addresses
	// Update is the header. An ACK's Worker is the copy's addressee, its Lanes 0; a bypassed frame's identity is what its
	// header claims.
	Update olaf.Update
	Lanes  []int32          // valid until the next DrainPackets; nil for an ACK
	Status olaf.QueueStatus // of an ACK: what VNP4-2 wrote into it
	Port   uint8            // egress port of an ACK, or of a copy of a sum
	Seg    uint64           // place of the lanes in the vector
	ToS    uint8            // type of service
	Format uint8            // of a bypassed frame, as its flow says: 0 OLAF's, else that of the program of this code
	// Contributors are those of a delivered or answered frame's Observation, and valid as long.
	Contributors []olaf.Contributor
}

// tap is what was seen since the last drain. Arenas are swapped by a drain, so that what it handed out stays valid until
// the next one.
type tap struct {
	observations []olaf.Observation
	packets      []Packet
	inside       [2][]olaf.Contributor
	lanes        [2][]int32
	side         int // of inside
	laneSide     int
}

// Drain appends the updates delivered since the last Drain to buf, in order, and returns it. At counts on the generator's
// run clock. Contributors (nil without provenance) are valid until the next Drain.
func (t *Twin) Drain(buf []olaf.Observation) []olaf.Observation {
	buf = append(buf, t.tap.observations...)
	t.tap.observations = t.tap.observations[:0]
	t.tap.side ^= 1
	t.tap.inside[t.tap.side] = t.tap.inside[t.tap.side][:0]
	return buf
}

// Record turns the recording of a twin with Config.Wire off and on, between runs: it holds from the next configuration of
// the queue.
func (t *Twin) Record(on bool) { t.recording = on && t.cfg.Wire }

// DrainPackets appends the packets recorded since the last DrainPackets to buf, in order of their times, and returns it.
// There are none without Config.Wire. Lanes are valid until the next DrainPackets.
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

// runTime is a device time on the generator's run clock.
func (t *Twin) runTime(at olaf.Time) olaf.Time { return at - cycleTime(t.generator.zero) }

func uplinkAddresses(f *flow) Addresses {
	return Addresses{f.SourceMAC, f.DestMAC, f.SourceIP, f.DestIP, f.SourcePort, f.DestPort}
}

// downlinkAddresses is the way back.
func downlinkAddresses(f *flow) Addresses {
	return Addresses{f.DestMAC, f.SourceMAC, f.DestIP, f.SourceIP, f.DestPort, olaf.UDPPort}
}
