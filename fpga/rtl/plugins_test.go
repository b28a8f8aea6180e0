package rtl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/pair"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// lastByte is the table in sim/plugins_sim.sv: the last byte of a source address is the worker, in one of two clusters.
type lastByte struct{}

func (lastByte) Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	w := source.As4()[3]
	return olaf.ClusterID(w & 1), olaf.WorkerID(w), true
}
func (lastByte) Server(netip.Addr) bool                       { return false }
func (lastByte) Group(olaf.ClusterID) ([]olaf.WorkerID, bool) { return nil, false }
func (lastByte) Version() uint64                              { return 0 }

// buildPlugins compiles two of OpenNIC's plugins that are connected back to back.
func buildPlugins(t *testing.T) (program string) {
	t.Helper()
	needTools(t)
	dir := t.TempDir()
	names, content := listSources()
	sourceFiles := []string{}
	for _, name := range names {
		if name == "olaf_sim.sv" || name == "harness.cpp" {
			continue
		}
		// The simulation of the box counts both edges of the clock; the plugins have an ordinary clock.
		content[name] = bytes.ReplaceAll(content[name], []byte(clockedTwice), []byte(clocked))
		sourceFiles = append(sourceFiles, name)
	}
	for _, name := range []string{
		"opennic/olaf_axil_cdc.sv", "opennic/olaf_opennic_250mhz.sv", "sim/plugins_sim.sv", "sim/plugins.cpp",
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[path.Base(name)] = text
		sourceFiles = append(sourceFiles, path.Base(name))
	}
	for _, name := range sourceFiles {
		if err := os.WriteFile(filepath.Join(dir, name), content[name], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"--cc", "--exe", "-O3", "-Wno-UNOPTFLAT", "--x-assign", "fast", "--x-initial", "fast", "--noassert",
		"--top-module", "plugins_sim", "-Mdir", "build", "-o", "plugins"}, sourceFiles...)
	if err := runTool(t.Context(), dir, "verilator", args...); err != nil {
		t.Fatal(err)
	}
	build := filepath.Join(dir, "build")
	if err := runTool(t.Context(), build, "make", "-s", "-j", "2", "-f", "Vplugins_sim.mk", "CXX=c++", "LINK=c++", "OPT_FAST=-O1"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(build, "plugins")
}

// script is the simulation's input. The same accesses are made to a device.
type script struct {
	t                *testing.T
	text             strings.Builder
	device           fpga.Device
	generator, queue int // indexes of the plugins
	want             []string
}

// cardsOf returns the plugins to which an access goes.
func (s *script) cardsOf(addr uint32) []int {
	switch {
	case addr == regmap.CommonCommand && s.generator != s.queue:
		return []int{s.generator, s.queue}
	case addr&^0xfff == regmap.GeneratorBase:
		return []int{s.generator}
	}
	return []int{s.queue}
}

func (s *script) write(addr, value uint32) {
	s.t.Helper()
	if err := s.device.Write32(addr, value); err != nil {
		s.t.Fatal(err)
	}
	for _, card := range s.cardsOf(addr) {
		fmt.Fprintf(&s.text, "w %x %x %x\n", card, addr-boxBase, value)
	}
}

// read expects that a plugin answers as the device does.
func (s *script) read(addr uint32) {
	s.t.Helper()
	v, err := s.device.Read32(addr)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&s.text, "r %x %x\n", s.cardsOf(addr)[0], addr-boxBase)
	s.want = append(s.want, fmt.Sprintf("r %x", v))
}

func (s *script) sleep(cycles int64) {
	s.t.Helper()
	if err := s.device.Sleep(context.Background(), olaf.Duration(cycles)*olaf.Cycle); err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&s.text, "c %x\n", cycles)
}

// play loads bursts whose updates merge, regardless of a few cycles on the way, and reads the results. Behind each burst,
// a probe frame bypasses the queue.
func (s *script) play() {
	const bursts, flows, apart, spacing = 6, 4, 40, 6000
	kind, _ := engine.FindDiscipline("olaf")
	for _, w := range []struct{ addr, value uint32 }{
		{regmap.QueueMode, kind.Code}, {regmap.QueueDepth, 8},
		{regmap.QueueLimiterControl, regmap.QueueLimiterControlEnable}, {regmap.QueueLimiterIncrement, 1 << 24},
		{regmap.QueueControl, regmap.QueueControlEnable}, {regmap.GeneratorFlows, flows},
		{regmap.GeneratorDescriptors, bursts * (flows + 2 + 1)},
	} {
		s.write(w.addr, w.value)
	}
	var descriptors []uint32
	for b := range bursts {
		for i := range flows + 2 {
			d := regmap.Descriptor{Time: uint64(spacing*b + apart*i), Flow: uint16(i % flows), Length: 256, Sequence: uint32(b), Reward: int32(b * i)}
			words := make([]uint32, regmap.DescriptorWords)
			d.Put(words)
			descriptors = append(descriptors, words...)
		}
		probe := regmap.Descriptor{Time: uint64(spacing*b + spacing*3/4), Length: 64, Sequence: uint32(b), Flags: regmap.FlagNotOlaf}
		words := make([]uint32, regmap.DescriptorWords)
		probe.Put(words)
		descriptors = append(descriptors, words...)
	}
	for memory, words := range [][]uint32{descriptors, trainingFlows(flows)} {
		s.write(regmap.GeneratorMemSelect, uint32(memory))
		for _, w := range words {
			s.write(regmap.GeneratorMemData, w)
		}
	}
	s.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	s.sleep(200)
	s.write(regmap.GeneratorCommand, regmap.GeneratorCommandStart)
	s.sleep(bursts*spacing + 4000)
	s.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
	for _, register := range []uint32{
		regmap.GeneratorSentPackets, regmap.GeneratorLatePackets, regmap.QueueIn, regmap.QueueAppended, regmap.QueueAggregated,
		regmap.QueueReplaced, regmap.QueueDeliveredFrames, regmap.QueueDeliveredUpdates, regmap.QueueBypassed, regmap.QueueMalformed,
		regmap.QueueLostBeforeEngine, regmap.GeneratorState,
	} {
		s.read(register)
	}
}

// expectFrames appends the frames that have left a twin.
func (s *script) expectFrames(packets []twin.Packet) (frames []string) {
	s.t.Helper()
	for i := range packets {
		p := &packets[i]
		data := make([]byte, olaf.MaxFrame)
		a := &p.Addresses
		n, err := olaf.EncodeUpdate(data, &olaf.Addresses{SrcMAC: a.SourceMAC, DstMAC: a.DestMAC, SrcIP: a.SourceIP,
			DstIP: a.DestIP, SrcPort: a.SourcePort}, &p.Update, p.Lanes)
		if err != nil {
			s.t.Fatal(err)
		}
		binary.BigEndian.PutUint16(data[36:], a.DestPort)
		frames = append(frames, "f "+hex.EncodeToString(data[:n]))
	}
	return frames
}

// run passes the script to the simulation, and returns its answers and its frames.
func (s *script) run(program string) (answers, frames []string) {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), program)
	c.Stdin = strings.NewReader(s.text.String())
	out, err := c.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if line := lines.Text(); line[0] == 'r' {
			answers = append(answers, line)
		} else {
			frames = append(frames, line)
		}
	}
	return answers, frames
}

// TestPlugins checks that OpenNIC's plugin is a complete card whose generator feeds its queue, and that two plugins
// back to back are a generator's card and a queue's card. Their counters and frames must equal those of one twin, and
// of two joined twins.
func TestPlugins(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a simulation")
	}
	program := buildPlugins(t)
	newTwin := func() *twin.Twin {
		d, err := twin.New(twin.Config{Slots: 8, Clusters: 16, Tables: lastByte{}, Wire: true})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	one := newTwin()
	joined, err := pair.JoinTwins(newTwin(), newTwin())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*script{
		"one card":  {device: one, generator: 1, queue: 1},
		"two cards": {device: joined, generator: 0, queue: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			if s.generator != s.queue {
				fmt.Fprintf(&s.text, "w %x %x 1\n", s.generator, regmap.GeneratorControl-boxBase)
			}
			s.play()
			answers, frames := s.run(program)
			if d := cmp.Diff(s.want, answers); d != "" {
				t.Errorf("registers (-twin +plugin):\n%s", d)
			}
			packets := s.device.(interface {
				DrainPackets([]twin.Packet) []twin.Packet
			}).DrainPackets(nil)
			if d := cmp.Diff(s.expectFrames(packets), frames); d != "" || len(frames) == 0 {
				t.Errorf("%d frames (-twin +plugin):\n%s", len(frames), d)
			}
		})
	}
}
