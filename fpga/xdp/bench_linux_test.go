package xdp

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"golang.org/x/sys/unix"
)

// packetCost reports the time of a program for one packet. It takes the best of several series, because disturbances
// only add time. Each series runs the program repeatedly on the same frame.
func packetCost(b *testing.B, p *ebpf.Program, frame []byte) {
	best := time.Hour
	for b.Loop() {
		_, d, err := p.Benchmark(frame, 1000, nil)
		if err != nil {
			b.Fatal(err)
		}
		best = min(best, d)
	}
	b.ReportMetric(float64(best.Nanoseconds()), "ns/packet")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkEmpty measures a program that drops everything, which is the minimum cost of any program.
func BenchmarkEmpty(b *testing.B) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, AttachType: ebpf.AttachXDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, int32(Drop)), asm.Return()}})
	if err != nil {
		b.Skip(err)
	}
	defer p.Close()
	packetCost(b, p, make([]byte, 256))
}

// BenchmarkQueue measures an update that is repeatedly replaced by its worker's next update, or merged into another
// worker's.
func BenchmarkQueue(b *testing.B) {
	for _, lanes := range []int{48, 256} {
		for _, log := range []int{0, 1 << 26} {
			for _, class := range []string{"replaced", "aggregated"} {
				b.Run(fmt.Sprintf("olaf/%s/lanes=%d/log=%v", class, lanes, log > 0), func(b *testing.B) {
					k := load(b, "olaf", dataplane.Build{Slots: 64, Clusters: 100, Lanes: lanes, FrameLanes: lanes, Senders: 100, LogBytes: log})
					defer k.Close()
					frames := prepare(b, k, lanes)
					if class == "aggregated" {
						if _, err := k.Arrive(frames[1]); err != nil {
							b.Fatal(err)
						}
					}
					packetCost(b, k.collection.Programs["arrive"], frames[0])
					if goal := map[bool]float64{false: 135, true: 220}[log > 0]; lanes == 48 {
						b.ReportMetric(goal, "ns-goal")
					}
					_, sums, err := k.Latch(false)
					if err != nil || sums[class] == 0 || sums[class]+2 < sums["in_bytes"]/uint64(len(frames[0])) {
						b.Fatalf("%v, %v", sums, err)
					}
				})
			}
		}
	}
}

// prepare enables a queue for two workers of a cluster, whose first update waits, and returns a frame of each.
func prepare(b *testing.B, k *Queue, lanes int) (frames [2][]byte) {
	var senders []dataplane.Sender
	for i := range frames {
		u := olaf.Update{Cluster: 3, Worker: olaf.WorkerID(i), Count: 1, Lanes: uint16(lanes)}
		frames[i] = make([]byte, u.Size())
		a := olaf.Addresses{SrcIP: addressOf(i).As4(), DstIP: [4]byte{10, 255, 0, 1}}
		if _, err := olaf.EncodeUpdate(frames[i], &a, &u, nil); err != nil {
			b.Fatal(err)
		}
		senders = append(senders, dataplane.Sender{Address: addressOf(i), Cluster: u.Cluster, Worker: u.Worker})
	}
	for _, err := range []error{k.SetSenders(senders), k.Configure(dataplane.Settings{Depth: 8}), k.Run(true)} {
		if err != nil {
			b.Fatal(err)
		}
	}
	if _, err := k.Arrive(frames[0]); err != nil {
		b.Fatal(err)
	}
	return frames
}

// BenchmarkAggregator measures packets of 64 children in turn, epoch after epoch: one is stored, 62 are added, and the
// last is added and sends the sum. A program in front creates each packet from the previous one; its own cost is
// reported by the first case.
func BenchmarkAggregator(b *testing.B) {
	drop, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, AttachType: ebpf.AttachXDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, int32(Drop)), asm.Return()}})
	if err != nil {
		b.Skip(err)
	}
	defer drop.Close()
	p := data{job: 7, count: 1, lanes: make([]int32, 320)}
	b.Run("nothing", func(b *testing.B) { packetCost(b, turns(b, drop), p.encode(b, addressOf(0).As4())) })
	for _, wrapping := range []bool{false, true} {
		for _, lanes := range []int{32, 48, 64, 128, 192, 256, 320} { // those of the paper's Fig. 6, and 48
			b.Run(fmt.Sprintf("lanes=%d/wrapping=%v", lanes, wrapping), func(b *testing.B) {
				a := loadAggregator(b, AggregatorBuild{Fragments: 2, Lanes: lanes, Wrapping: wrapping, Senders: MaxChildren},
					MaxChildren)
				p.lanes = p.lanes[:lanes]
				// Sums leave with the last child's source address, so that they can be turned into the next packet.
				if err := a.Configure(Parent{Job: 7, Children: MaxChildren,
					Source: olaf.Addresses{SrcIP: addressOf(MaxChildren - 1).As4()}}); err != nil {
					b.Fatal(err)
				}
				frame := p.encode(b, addressOf(0).As4())
				frame[19] = MaxChildren
				fixIPChecksum(frame)
				packetCost(b, turns(b, a.collection.Programs["arrive"]), frame)
				if goal := map[bool]float64{true: 225, false: 420}[wrapping]; lanes == 256 {
					b.ReportMetric(goal, "ns-goal")
				}
				sums, err := a.Latch()
				packets := sums["in_bytes"] / uint64(len(frame))
				if err != nil || packets == 0 || sums["consumed"]+sums["completed"] != packets ||
					sums["completed"] != packets/MaxChildren {
					b.Fatalf("%v, %v", sums, err)
				}
			})
		}
	}
}

// BenchmarkAggregatorCores measures XAgg's Fig. 8: packets of 256 values that one or more processors add at once, each
// in different fragments of one model. It reports the best of several series, because disturbances only add time. The
// kernel measures each series, without the time in which other programs had the processor.
func BenchmarkAggregatorCores(b *testing.B) {
	const lanes, packets = 256, 1_000_000 // long enough that the series of all processors overlap
	for cores := 1; cores <= runtime.NumCPU(); cores++ {
		b.Run(fmt.Sprintf("cores=%d", cores), func(b *testing.B) {
			a := loadAggregator(b, AggregatorBuild{Fragments: cores, Lanes: lanes, Wrapping: true, Senders: MaxChildren}, MaxChildren)
			if err := a.Configure(Parent{Job: 7, Children: MaxChildren,
				Source: olaf.Addresses{SrcIP: addressOf(MaxChildren - 1).As4()}}); err != nil {
				b.Fatal(err)
			}
			all := make([]func() (time.Duration, error), cores)
			for i := range all {
				p := data{job: 7, count: 1, fragment: uint32(i), lanes: make([]int32, lanes)}
				frame := p.encode(b, addressOf(0).As4())
				frame[19] = MaxChildren
				fixIPChecksum(frame)
				turns := turns(b, a.collection.Programs["arrive"])
				all[i] = func() (time.Duration, error) {
					_, each, err := turns.Benchmark(frame, packets, nil)
					return each, err
				}
			}
			best := 0.0
			for b.Loop() {
				perNS := 0.0
				for _, each := range runOnProcessors(b, all) {
					perNS += 1 / float64(each.Nanoseconds())
				}
				best = max(best, perNS*lanes*32)
			}
			b.ReportMetric(best, "Gbit/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// runOnProcessors runs the functions at the same time, each on a separate processor, and returns their results.
func runOnProcessors(b *testing.B, all []func() (time.Duration, error)) []time.Duration {
	b.Helper()
	var group sync.WaitGroup
	took, errs := make([]time.Duration, len(all)), make([]error, len(all))
	for i, run := range all {
		group.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			var one unix.CPUSet
			one.Set(i)
			if errs[i] = unix.SchedSetaffinity(0, &one); errs[i] == nil {
				took[i], errs[i] = run()
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	return took
}

// turns returns a program that changes a packet to come from the next child, or from the next epoch, and calls another
// program. It subtracts from the IP identification what it adds to the address, so that the checksum stays valid.
func turns(b *testing.B, next *ebpf.Program) *ebpf.Program {
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { counter.Close() })
	calls, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1,
		Contents: []ebpf.MapKV{{Key: uint32(0), Value: next}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { calls.Close() })
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, AttachType: ebpf.AttachXDP, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.LoadMapPtr(asm.R1, counter.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "out"),
			asm.LoadMem(asm.R7, asm.R0, 0, asm.DWord),
			asm.Mov.Reg(asm.R1, asm.R7), asm.Add.Imm(asm.R1, 1),
			asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
			asm.LoadMem(asm.R1, asm.R6, 0, asm.Word), // data
			asm.LoadMem(asm.R2, asm.R6, 4, asm.Word), // data_end
			asm.Mov.Reg(asm.R3, asm.R1), asm.Add.Imm(asm.R3, olaf.HeaderBytes),
			asm.JGT.Reg(asm.R3, asm.R2, "out"),
			asm.Mov.Reg(asm.R4, asm.R7), asm.And.Imm(asm.R4, MaxChildren-1), // child
			asm.Mov.Imm(asm.R5, MaxChildren), asm.Sub.Reg(asm.R5, asm.R4),
			asm.StoreMem(asm.R1, 19, asm.R5, asm.Byte), // identification
			asm.Add.Imm(asm.R4, 1),
			asm.StoreMem(asm.R1, 29, asm.R4, asm.Byte), // source address
			asm.RSh.Imm(asm.R7, 6),                     // epoch
			asm.HostTo(asm.BE, asm.R7, asm.Half),
			asm.StoreMem(asm.R1, 60, asm.R7, asm.Half),
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.LoadMapPtr(asm.R2, calls.FD()),
			asm.Mov.Imm(asm.R3, 0),
			asm.FnTailCall.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
			asm.Return(),
		}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	return p
}
