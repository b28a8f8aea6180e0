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
)

// disciplines are the programs that decide, by the names that fpga/engine gives them.
var disciplines = map[string]func() (*ebpf.CollectionSpec, error){
	"fifo": loadFifo,
	"olaf": loadOlaf,
}

// Build is what is fixed when a queue is loaded.
type Build struct {
	Slots      int // frames that fit, the one on the wire included
	Clusters   int // cluster ids run from 0 to this minus 1
	Lanes      int // gradient lanes that a slot stores
	FrameLanes int // lanes that a frame may have; longer ones are malformed
	Senders    int // sources that the table may hold
	// LogBytes is the room of the decision log, a power of two and pages; 0 logs nothing.
	LogBytes int
	Kernel   Kernel // whose features are asked for before anything is loaded; nil is Running
}

// Settings are what changes between runs, while the queue is empty and does not run.
type Settings struct {
	Depth           int // slots in use
	FreeSlotOnStart bool
	RewardFilter    bool
	RewardThreshold int32 // Q24.8
}

// Queue is a queue of one discipline in the kernel. Its methods must not be called side by side, except for Arrive.
type Queue struct {
	programs
	build    Build
	running  bool
	settings Settings
	exchange []byte
}

// Load loads the programs of a discipline. The error matches netlab.ErrRights, ErrFeature or ErrKernel.
func Load(discipline string, build Build) (*Queue, error) {
	load, ok := disciplines[discipline]
	if !ok {
		return nil, fmt.Errorf("xdp: there is no program for queue %q; there are %s", discipline,
			strings.Join(slices.Sorted(maps.Keys(disciplines)), ", "))
	}
	spec, err := load()
	if err != nil {
		return nil, fmt.Errorf("xdp: %s: %w", discipline, err)
	}
	spec.Maps["slots"].ValueSize = uint32(build.Slots * (placeBytes + laneWords(build.Lanes)*wordBytes))
	spec.Maps["clusters"].ValueSize = uint32(build.Clusters * clusterBytes)
	q := &Queue{build: build}
	err = q.load(discipline, spec, shared{build.Senders, build.LogBytes, build.Kernel}, map[string]any{
		"SLOTS": uint32(build.Slots), "CLUSTERS": uint32(build.Clusters), "LANES": uint32(build.Lanes),
		"FRAME_LANES": uint32(build.FrameLanes),
	})
	if err == nil {
		err = errors.Join(q.Reset(), q.Configure(Settings{Depth: 1}))
	}
	if err != nil {
		_ = q.Close()
		return nil, err
	}
	return q, nil
}

// Sizes of what the programs lay out in maps (bpf/queue.h, bpf/lanes.h).
const (
	placeBytes   = 128
	clusterBytes = 96
	wordBytes    = 8 // two lanes
	wordsAtOnce  = 8
)

func laneWords(lanes int) int { return (lanes/2 | (wordsAtOnce - 1)) + 1 }

// Reset empties the queue without counting anything, forgets all counts, and begins to number decisions anew. It must not run,
// and nobody may be about to read its log.
func (q *Queue) Reset() error {
	const offLeaving = 24 // bpf/queue.h
	state := make([]byte, q.collection.Maps["queue"].ValueSize())
	binary.NativeEndian.PutUint32(state[offLeaving:], ^uint32(0))
	err := errors.Join(q.put("queue", state), q.put("clusters", make([]byte, q.build.Clusters*clusterBytes)))
	for bank := range uint32(2) {
		_, drained := q.drain(bank)
		err = errors.Join(err, drained)
	}
	return err
}

// Configure changes the settings. The queue must be empty and not run.
func (q *Queue) Configure(s Settings) error {
	ring := s.Depth
	if s.FreeSlotOnStart {
		ring++ // the frame on the wire needs a place but counts as none
	}
	if s.Depth < 1 || ring > q.build.Slots {
		return fmt.Errorf("xdp: %d slots; the programs were loaded with places for %d frames", s.Depth, q.build.Slots)
	}
	q.settings = s
	return q.configure()
}

// Run admits updates, or stops to.
func (q *Queue) Run(on bool) error {
	q.running = on
	return q.configure()
}

// Cost is what the program takes for a frame that comes a thousand times in a row; the queue decides about each.
func (q *Queue) Cost(frame []byte) (time.Duration, error) {
	_, d, err := q.collection.Programs["arrive"].Benchmark(frame, 1000, nil)
	if err != nil {
		return 0, fmt.Errorf("xdp: %s: %w: %w", q.name, ErrKernel, err)
	}
	return d, nil
}

func (q *Queue) configure() error {
	s := &q.settings
	holds := 1 - bit(s.FreeSlotOnStart)
	depth := uint32(s.Depth)
	return q.put("config", words(bit(q.running), depth, depth+1-holds, holds, bit(s.RewardFilter),
		uint32(s.RewardThreshold)))
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

func bit(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}
