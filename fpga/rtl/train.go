package rtl

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Training stream. It merges, fills the queue and keeps every input beat busy. It is repeated because loading takes
// many clocks, and the program would otherwise be optimized for loading.
const (
	trainFlows    = 12
	trainClusters = 3
	trainFrames   = 4000
	trainCycles   = 5 * trainFrames // length of a round: slightly more than its beats take
	trainRounds   = 32
	trainRate     = 20 << 24 // bytes per cycle in 8.24 fixed point
)

// trainingKey returns a text that distinguishes builds that were profiled with different streams.
func trainingKey() string {
	return fmt.Sprint(trainFlows, trainClusters, trainFrames, trainCycles, trainRounds, trainRate)
}

// trainProgram runs the training stream on a program, so that the program writes a profile for the compiler.
func (c *Config) trainProgram(ctx context.Context, program string) (err error) {
	card := &Card{cfg: Config{Build: c.Build, Tables: trainees(min(trainClusters, c.Clusters))}}
	if card.child, err = startChild(program, patience, card); err != nil {
		return err
	}
	defer card.Close()
	flows, frames := min(trainFlows, c.Flows), min(trainFrames, c.Descriptors)
	for _, w := range []struct{ addr, value uint32 }{
		{regmap.QueueMode, 1 | regmap.QueueModeProvenance}, {regmap.QueueDepth, uint32(min(8, c.Slots))},
		{regmap.QueueLimiterControl, regmap.QueueLimiterControlEnable}, {regmap.QueueLimiterIncrement, trainRate},
		{regmap.QueueControl, regmap.QueueControlEnable}, {regmap.GeneratorFlows, uint32(flows)},
		{regmap.GeneratorDescriptors, uint32(frames)},
	} {
		if err := card.Write32(w.addr, w.value); err != nil {
			return err
		}
	}
	if err := card.child.setReports(reportLog); err != nil {
		return err
	}
	for memory, words := range [][]uint32{trainingDescriptors(frames, flows, c.FrameBytes), trainingFlows(flows)} {
		if err := card.Write32(regmap.GeneratorMemSelect, uint32(memory)); err != nil {
			return err
		}
		if err := card.WriteBurst(regmap.GeneratorMemData, words); err != nil {
			return err
		}
	}
	for range trainRounds {
		if err := card.playRound(ctx); err != nil {
			return err
		}
	}
	return nil
}

// playRound plays the loaded training stream once.
func (c *Card) playRound(ctx context.Context) error {
	if err := c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm); err != nil {
		return err
	}
	if err := c.Sleep(ctx, 100*olaf.Cycle); err != nil { // time for the generator's prefetch
		return err
	}
	if err := c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStart); err != nil {
		return err
	}
	return c.Sleep(ctx, trainCycles*olaf.Cycle)
}

// trainees is a table that maps source addresses to workers by their last byte. Its value is the number of clusters.
type trainees int

func (t trainees) Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	i := int(source.As4()[3])
	return olaf.ClusterID(i % int(t)), olaf.WorkerID(i), true
}
func (trainees) Version() uint64 { return 0 }

func trainingFlows(n int) []uint32 {
	words := make([]uint32, n*regmap.FlowWords)
	for i := range n {
		f := regmap.Flow{SourceIP: [4]byte{10, 0, 0, byte(i)}, DestPort: olaf.UDPPort, Worker: olaf.WorkerID(i),
			Enable: true}
		f.Put(words[i*regmap.FlowWords:])
	}
	return words
}

// trainingDescriptors returns descriptors for consecutive frames of 256 bytes, with some long frames among them.
func trainingDescriptors(n, flows, longest int) []uint32 {
	words := make([]uint32, n*regmap.DescriptorWords)
	for i := range n {
		size := 256
		if i%64 == 0 {
			size = 1500
		}
		d := regmap.Descriptor{Flow: uint16(i * 5 % flows),
			Length: uint16(min(size, longest) / olaf.LaneBytes * olaf.LaneBytes), Sequence: uint32(i)}
		d.Put(words[i*regmap.DescriptorWords:])
	}
	return words
}
