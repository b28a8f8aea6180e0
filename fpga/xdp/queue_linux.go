package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/olafctl/olaf/fpga/dataplane"
)

// disciplines contains the functions that load the programs for each discipline of fpga/engine.
var disciplines = map[string]func() (*ebpf.CollectionSpec, error){
	"fifo": loadFifo,
	"olaf": loadOlaf,
}

// Queue is a queue in the kernel with one discipline. Its methods must not be called concurrently, except for Arrive.
type Queue struct {
	programs
	build    dataplane.Build
	running  bool
	settings dataplane.Settings
	exchange []byte
}

// LoadQueue loads the programs for a discipline into the kernel. The error matches netlab.ErrRights, ErrFeature or
// ErrKernel.
func LoadQueue(discipline string, build dataplane.Build) (*Queue, error) {
	return loadQueue(RunningKernel(), discipline, build)
}

// loadQueue loads the programs for a discipline into a kernel, which is probed first.
func loadQueue(kernel Kernel, discipline string, build dataplane.Build) (*Queue, error) {
	load, ok := disciplines[discipline]
	if !ok {
		return nil, fmt.Errorf("xdp: there is no program for queue %q, only for %s", discipline,
			strings.Join(slices.Sorted(maps.Keys(disciplines)), ", "))
	}
	spec, err := load()
	if err != nil {
		return nil, fmt.Errorf("xdp: %s: %w", discipline, err)
	}
	spec.Maps["slots"].ValueSize = uint32(build.Slots * (placeBytes + laneWords(build.Lanes)*wordBytes))
	spec.Maps["clusters"].ValueSize = uint32(build.Clusters * clusterBytes)
	q := &Queue{build: build}
	err = q.load(discipline, spec, shared{build.Senders, build.LogBytes, kernel}, map[string]any{
		"SLOTS": uint32(build.Slots), "CLUSTERS": uint32(build.Clusters), "LANES": uint32(build.Lanes),
		"FRAME_LANES": uint32(build.FrameLanes),
	})
	if err == nil {
		err = errors.Join(q.Reset(), q.Configure(dataplane.Settings{Depth: 1}))
	}
	if err != nil {
		_ = q.Close()
		return nil, err
	}
	return q, nil
}

// Layout of the queue's maps (bpf/queue.h, bpf/lanes.h).
const (
	placeBytes   = 128
	clusterBytes = 96
	wordBytes    = 8 // two lanes
	wordsAtOnce  = 8
)

func laneWords(lanes int) int { return (lanes/2 | (wordsAtOnce - 1)) + 1 }

// Reset empties the queue without counting the frames as discarded, clears all counts and restarts the numbering of
// decisions. The queue must be stopped, and its log must not be read at the same time.
func (q *Queue) Reset() error {
	const offLeaving = 24 // as in bpf/queue.h
	state := make([]byte, q.collection.Maps["queue"].ValueSize())
	binary.NativeEndian.PutUint32(state[offLeaving:], ^uint32(0))
	err := errors.Join(q.put("queue", state), q.put("clusters", make([]byte, q.build.Clusters*clusterBytes)))
	for bank := range uint32(2) {
		_, drained := q.drain(bank)
		err = errors.Join(err, drained)
	}
	return err
}

// Configure changes the queue's settings. The queue must be empty and stopped.
func (q *Queue) Configure(s dataplane.Settings) error {
	ring := s.Depth
	if s.FreeSlotOnStart {
		ring++ // the frame on the wire needs a place but is not counted
	}
	if s.Depth < 1 || ring > q.build.Slots {
		return fmt.Errorf("xdp: %d slots; the programs were loaded with room for %d frames", s.Depth, q.build.Slots)
	}
	q.settings = s
	return q.configure()
}

// Run starts the admission of updates to the queue, or stops it if on is false.
func (q *Queue) Run(on bool) error {
	q.running = on
	return q.configure()
}

// Cost returns the program's mean time per frame, measured by running it 1,000 times on the given frame. Each of these
// runs changes the queue like an arrival.
func (q *Queue) Cost(frame []byte) (time.Duration, error) {
	_, d, err := q.collection.Programs["arrive"].Benchmark(frame, 1000, nil)
	if err != nil {
		return 0, fmt.Errorf("xdp: %s: %w: %w", q.name, ErrKernel, err)
	}
	return d, nil
}

func (q *Queue) configure() error {
	s := &q.settings
	holds := 1 - boolBit(s.FreeSlotOnStart)
	depth := uint32(s.Depth)
	return q.put("config", encodeWords(boolBit(q.running), depth, depth+1-holds, holds, boolBit(s.RewardFilter),
		uint32(s.RewardThreshold)))
}

func encodeWords(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

func boolBit(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}
