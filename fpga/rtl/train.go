package rtl

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// What a program is trained with: a stream that merges, fills the queue and keeps every beat of the input busy. It is repeated, as
// a word that is loaded takes many clocks, and the program would be made for loading otherwise.
const (
	trainFlows    = 12
	trainClusters = 3
	trainFrames   = 4000
	trainCycles   = 5 * trainFrames // of a round: a bit more than its beats
	trainRounds   = 32
	trainRate     = 20 << 24 // bytes a cycle, 8.24
)

// training tells builds apart that were trained in other ways.
func training() string {
	return fmt.Sprint(trainFlows, trainClusters, trainFrames, trainCycles, trainRounds, trainRate)
}

// train leads a program through a stream of its own, so that it notes where its time goes.
func (c *Config) train(ctx context.Context, program string) (err error) {
	card := &Card{cfg: Config{Build: c.Build, Tables: trainees(min(trainClusters, c.Clusters))}}
	if card.child, err = start(program, patience, card); err != nil {
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
	if err := card.child.watch(reportLog); err != nil {
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
		if err := card.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// round plays what is loaded once.
func (c *Card) round(ctx context.Context) error {
	if err := c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm); err != nil {
		return err
	}
	if err := c.Sleep(ctx, 100*olaf.Cycle); err != nil { // for the generator to fetch ahead
		return err
	}
	if err := c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStart); err != nil {
		return err
	}
	return c.Sleep(ctx, trainCycles*olaf.Cycle)
}

// trainees are known by the last byte of their addresses, in so many clusters.
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

// trainingDescriptors are frames of 256 B behind each other, and now and then a long one.
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
