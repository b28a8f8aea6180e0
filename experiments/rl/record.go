package rl

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"

	"github.com/olafctl/olaf/pktgen/trace"
)

// TraceHeader returns the header for a trace of the training c. The header contains everything that determines the
// trace's bytes.
func TraceHeader(c *Config, clock string, payload bool) (trace.Header, error) {
	job, err := json.Marshal(c)
	if err != nil {
		return trace.Header{}, fmt.Errorf("describe the training: %w", err)
	}
	h := trace.Header{Tool: "olafctl", GoVersion: runtime.Version(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, Seed: c.Seed, Clock: clock,
		Env: "LunarLander-v3", Workers: c.Workers, Clusters: c.Clusters, Lanes: Params, Network: c.Network.Kind, Payload: payload, Job: job}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "GOAMD64" {
				h.GOAMD64 = s.Value
			}
		}
		for _, m := range info.Deps {
			if m.Path == "github.com/ByteArena/box2d" {
				h.Box2D = m.Version
			}
		}
	}
	initial := sha256.New()
	for cluster := range c.Clusters {
		if err := binary.Write(initial, binary.LittleEndian, c.Initial(cluster)[:]); err != nil {
			return trace.Header{}, err
		}
	}
	h.Initial = hex.EncodeToString(initial.Sum(nil))
	for k := range c.Workers {
		h.Speeds = append(h.Speeds, math.Round(c.Speed(k)*1e6)/1e6)
	}
	return h, nil
}

// recordFlush is the maximum number of updates in a recording that a power failure can destroy.
const recordFlush = 256

// Recorder is an Observer that writes a trace file. The caller must close the file, even after an interrupt.
type Recorder struct {
	File *trace.File
	// Then, if not nil, observes every update that was written, for a live curve.
	Then    Observer
	written int
}

// OnUpdate appends one update to the trace and flushes the file from time to time.
func (r *Recorder) OnUpdate(u *trace.Update, gradient *Weights) error {
	if err := r.File.Append(u, gradient[:]); err != nil {
		return err
	}
	r.written++
	if r.written%recordFlush == 0 {
		if err := r.File.Flush(); err != nil {
			return err
		}
	}
	if r.Then != nil {
		return r.Then.OnUpdate(u, gradient)
	}
	return nil
}
