//go:build linux

package live_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/capture/live/livetest"
)

// open starts a capture on an interface that lasts until the test ends.
func open(t testing.TB, o live.Options) *live.Socket {
	t.Helper()
	s, err := live.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// cable creates a connected pair of interfaces with a sender and a socket.
func cable(t testing.TB, o live.Options) (*livetest.Transmitter, *live.Socket) {
	t.Helper()
	livetest.EnterNamespace(t)
	livetest.SetUp(t, "lo")
	livetest.AddVeth(t, "worker", "server")
	o.Interface = "server"
	s := open(t, o)
	return livetest.NewSender(t, "worker"), s
}

// kept is a copied packet.
type kept struct {
	data   []byte
	wire   int
	unixNS int64
}

// soon returns a context for waiting for packets that have arrived already or that the kernel sends at once.
func soon(t testing.TB) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(stop)
	return ctx
}

// take reads n packets.
func take(t testing.TB, s *live.Socket, n int) []kept {
	t.Helper()
	ctx := soon(t)
	var got []kept
	var p capture.Packet
	for len(got) < n {
		err := s.Next(&p)
		if errors.Is(err, capture.ErrIdle) {
			err = s.Wait(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			t.Fatalf("after %d of %d packets: %v", len(got), n, err)
		}
		if p.Number != len(got)+1 {
			t.Fatalf("packet %d is numbered %d", len(got)+1, p.Number)
		}
		got = append(got, kept{bytes.Clone(p.Data), p.Wire, p.UnixNS})
	}
	if err := s.Next(&p); !errors.Is(err, capture.ErrIdle) {
		t.Fatalf("after all %d packets there is %v", n, err)
	}
	return got
}

func TestFramesArriveAsSent(t *testing.T) {
	tx, s := cable(t, live.Options{})
	random := rand.New(rand.NewPCG(7, 7))
	frame := make([]byte, olaf.MaxFrame)
	before := time.Now().UnixNano()
	var want [][]byte
	for i := range 200 {
		u := olaf.Update{
			Cluster: olaf.ClusterID(random.Uint32()), Worker: olaf.WorkerID(random.Uint32()), Seq: random.Uint32(),
			Count: uint16(1 + random.IntN(9)),
			GenNS: random.Uint64N(olaf.GenModulus), Reward: int32(random.Uint32()), Lanes: uint16(random.IntN(350)),
		}
		lanes := make([]int32, u.Lanes)
		for j := range lanes {
			lanes[j] = int32(random.Uint32())
		}
		n, err := olaf.EncodeUpdate(frame, &livetest.Addresses, &u, lanes)
		if i%5 == 4 {
			n, err = olaf.EncodeAck(frame, &livetest.Addresses, &u, olaf.QueueStatus{Occupancy: 3, ActiveClusters: 2,
				Slots: 8}, lanes)
		}
		if err != nil {
			t.Fatal(err)
		}
		tx.Send(t, frame[:n])
		want = append(want, bytes.Clone(frame[:n]))
	}
	after := time.Now().UnixNano()
	for i, got := range take(t, s, len(want)) {
		if !bytes.Equal(got.data, want[i]) || got.wire != len(want[i]) {
			t.Fatalf("frame %d: %d of %d bytes\n%x\nwant\n%x", i, len(got.data), got.wire, got.data, want[i])
		}
		if got.unixNS < before || got.unixNS > after {
			t.Errorf("frame %d is stamped %d, sent between %d and %d", i, got.unixNS, before, after)
		}
	}
	if st := s.StampCounts(); st.Kernel != int64(len(want)) || st.Hardware+st.Late != 0 || st.Err() != nil {
		t.Errorf("stamped %+v", st)
	}
	if d, err := s.Drops(); d != (live.Drops{}) || err != nil {
		t.Errorf("drops %+v, %v", d, err)
	}
	if i := s.Info(); i.Stamps != live.Kernel || i.BufferBytes != live.DefaultBufferBytes || len(i.Notes) != 1 {
		t.Errorf("%+v", i)
	}
}

// TestDecoderContinuesAfterPauses checks that a decoder continues a live capture after pauses.
func TestDecoderContinuesAfterPauses(t *testing.T) {
	tx, s := cable(t, live.Options{})
	d := capture.NewDecoder(s)
	var a capture.Arrival
	for seq := range uint32(5) {
		if err := d.Next(&a); !errors.Is(err, capture.ErrIdle) {
			t.Fatal(err)
		}
		want := tx.Update(t, 9, seq)
		if err := s.Wait(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := d.Next(&a); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, a.Update); diff != "" {
			t.Errorf("(-sent +received)\n%s", diff)
		}
	}
	if l := d.Losses(); l != (capture.Losses{Packets: 5, Updates: 5}) {
		t.Errorf("%+v", l)
	}
}

// ipv4 returns an Ethernet frame with IPv4 and the given protocol.
func ipv4(protocol byte, port uint16, fragment uint16) []byte {
	b := make([]byte, 80)
	copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 66})
	binary.BigEndian.PutUint16(b[20:], fragment)
	b[22], b[23] = 64, protocol
	binary.BigEndian.PutUint16(b[36:], port)
	return b
}

func tagged(frame []byte) []byte {
	return append(append(bytes.Clone(frame[:12]), 0x81, 0x00, 0x20, 0x07), frame[12:]...)
}

// TestOnlyOLAFFramesReachTheBuffer checks that only frames to OLAF's port reach the buffer, including broken ones, and
// that All captures everything.
func TestOnlyOLAFFramesReachTheBuffer(t *testing.T) {
	update := make([]byte, 256)
	if _, err := olaf.EncodeUpdate(update, &livetest.Addresses, &olaf.Update{Count: 1, Lanes: 48}, nil); err != nil {
		t.Fatal(err)
	}
	broken := bytes.Clone(update)
	broken[52], broken[53] = 0, 0 // count
	options := append(bytes.Clone(update[:34]), 1, 1, 1, 0)
	options = append(options, update[34:]...)
	options[14], options[17] = 0x46, options[17]+4
	for _, tt := range []struct {
		name  string
		frame []byte
		olaf  bool // passes the filter without All
		fault error
	}{
		{"update", update, true, nil},
		{"broken", broken, true, olaf.FaultCount},
		{"VLAN", tagged(update), true, olaf.FaultEtherType},
		{"IPv4 options", options, true, olaf.FaultIPOptions},
		{"no magic", ipv4(17, olaf.UDPPort, 0), true, olaf.FaultMagic},
		{"first fragment", ipv4(17, olaf.UDPPort, 0x2000), true, olaf.FaultMagic},
		{"later fragment", ipv4(17, olaf.UDPPort, 5), false, olaf.FaultLaterFragment},
		{"other port", ipv4(17, olaf.UDPPort+1, 0), false, olaf.FaultPort},
		{"TCP", ipv4(6, olaf.UDPPort, 0), false, olaf.FaultProtocol},
		{"ARP", append(bytes.Repeat([]byte{0xff}, 12), 8, 6, 0, 1), false, olaf.FaultEtherType},
		{"other VLAN", tagged(ipv4(17, 80, 0)), false, olaf.FaultEtherType},
		{"only addresses", append(bytes.Repeat([]byte{0xff}, 12), 0x88, 0xb5), false, olaf.FaultEtherType},
	} {
		for _, all := range []bool{false, true} {
			t.Run(map[bool]string{false: tt.name, true: tt.name + ", all"}[all], func(t *testing.T) {
				tx, s := cable(t, live.Options{All: all})
				tx.Send(t, tt.frame)
				if !all && !tt.olaf {
					tx.Update(t, 1, 77) // sent directly after the frame
				}
				got := take(t, s, 1)[0]
				f, err := olaf.ParseTruncated(got.data, got.wire)
				if !all && !tt.olaf {
					if err != nil || f.Update().Seq != 77 {
						t.Errorf("took noise: %x", got.data)
					}
					return
				}
				if !bytes.Equal(got.data, tt.frame) || got.wire != len(tt.frame) {
					t.Errorf("%d of %d bytes\n%x\nwant\n%x", len(got.data), got.wire, got.data, tt.frame)
				}
				if (err == nil) != (tt.fault == nil) || err != tt.fault {
					t.Errorf("%v, want %v", err, tt.fault)
				}
			})
		}
	}
}

// TestOverflow checks that packets that did not fit into the buffer are counted exactly.
func TestOverflow(t *testing.T) {
	tx, s := cable(t, live.Options{BufferBytes: 32 << 10})
	const sent = 3000
	seen := make(map[uint32]bool)
	received, overflowed, dropped := 0, int64(0), int64(0)
	var p capture.Packet
	for round := range 3 {
		for i := range sent / 3 {
			tx.Update(t, 1, uint32(round*sent+i))
		}
		before := overflowed
		for deadline := time.Now().Add(time.Minute); int64(received)+dropped < int64(round+1)*sent/3; {
			if time.Now().After(deadline) {
				t.Fatalf("%d received, %d dropped in round %d", received, dropped, round)
			}
			for s.Next(&p) == nil {
				f, err := olaf.ParseFrame(p.Data)
				if err != nil || seen[f.Update().Seq] {
					t.Fatal(err, f.Update().Seq)
				}
				seen[f.Update().Seq] = true
				received++
			}
			d, err := s.Drops()
			if err != nil {
				t.Fatal(err)
			}
			overflowed, dropped = d.Socket, d.Total() // on a busy host the interface may lose some too
		}
		if overflowed == before {
			t.Error("nothing overflowed")
		}
	}
	if d, err := s.Drops(); d.Socket != overflowed || int64(received)+d.Total() != sent || err != nil {
		t.Errorf("%d received, %+v dropped, %d sent: %v", received, d, sent, err)
	}
	if s.DroppedPackets() != dropped || received == 0 {
		t.Error(s.DroppedPackets(), received)
	}
}

func TestSnapLength(t *testing.T) {
	tx, s := cable(t, live.Options{SnapBytes: 72})
	tx.Update(t, 1, 1)
	vlan := make([]byte, 256)
	if _, err := olaf.EncodeUpdate(vlan, &livetest.Addresses, &olaf.Update{Count: 1, Lanes: 48}, nil); err != nil {
		t.Fatal(err)
	}
	tx.Send(t, tagged(vlan))
	for i, got := range take(t, s, 2) {
		if len(got.data) != 72 || got.wire != 256+4*i {
			t.Errorf("%d of %d bytes", len(got.data), got.wire)
		}
	}
}

// TestSocketsOfThisHost checks that frames from a program on this host are valid, although the system has not completed
// their UDP checksum, and are captured once, although they are both sent and received here.
func TestSocketsOfThisHost(t *testing.T) {
	livetest.EnterNamespace(t)
	livetest.SetUp(t, "lo")
	s := open(t, live.Options{Interface: "lo"})
	udp, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(udp)
	frame := make([]byte, olaf.MaxFrame)
	for lanes := range 5 {
		n, err := olaf.EncodeUpdate(frame, &livetest.Addresses, &olaf.Update{Count: 1, Lanes: uint16(lanes), Worker: 4}, nil)
		if err != nil {
			t.Fatal(err)
		}
		to := &unix.SockaddrInet4{Port: olaf.UDPPort, Addr: [4]byte{127, 0, 0, 1}}
		if err := unix.Sendto(udp, frame[42:n], 0, to); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err)
		}
	}
	for i, got := range take(t, s, 5) {
		f, err := olaf.ParseFrame(got.data)
		if err != nil || f.Update().Worker != 4 || binary.BigEndian.Uint16(got.data[40:]) == 0 {
			t.Errorf("frame %d: %v\n%x", i, err, got.data)
		}
	}
}

func TestInterfaceGone(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(testing.TB, string)
		say  string
		lost bool // the counters are lost
	}{
		"removed": {livetest.RemoveLink, "server was removed", true},
		"down":    {livetest.SetDown, "server went down", false},
		"cable":   {func(t testing.TB, _ string) { livetest.RemoveLink(t, "worker") }, "server was removed", true},
	} {
		t.Run(name, func(t *testing.T) {
			tx, s := cable(t, live.Options{})
			tx.Update(t, 1, 1)
			tx.Update(t, 1, 2)
			tt.end(t, "server")
			var p capture.Packet
			for range 2 {
				if err := errors.Join(s.Wait(soon(t)), s.Next(&p)); err != nil {
					t.Fatalf("what was captured before: %v", err)
				}
			}
			for range 2 { // the error is final
				if err := s.Wait(soon(t)); err != nil {
					t.Error(err)
				}
				if err := s.Next(&p); !errors.Is(err, live.ErrGone) || !strings.Contains(err.Error(), tt.say) {
					t.Errorf("%v, want %q", err, tt.say)
				}
			}
			if _, err := s.Drops(); errors.Is(err, live.ErrGone) != tt.lost {
				t.Error(err)
			}
		})
	}
}

func TestStop(t *testing.T) {
	tx, s := cable(t, live.Options{})
	tx.Update(t, 1, 1)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	tx.Update(t, 1, 2)
	take(t, s, 1)
	if d, err := s.Drops(); d != (live.Drops{}) || err != nil {
		t.Error(d, err)
	}
}

func TestWait(t *testing.T) {
	tx, s := cable(t, live.Options{})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); cancel() }()
		if err := s.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		<-ended
		sent := make(chan struct{})
		go func() { defer close(sent); tx.Update(t, 1, 1) }()
		if err := s.Wait(soon(t)); err != nil {
			t.Fatal(err)
		}
		<-sent
		if err := s.Next(&capture.Packet{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusals(t *testing.T) {
	livetest.EnterNamespace(t)
	livetest.SetUp(t, "lo")
	livetest.AddVeth(t, "worker", "server")
	livetest.SetDown(t, "server")
	for _, tt := range []struct {
		options live.Options
		kind    error
		say     string
	}{
		{live.Options{}, live.ErrInterface, "no name"},
		{live.Options{Interface: "eth9"}, live.ErrInterface, `there is no "eth9"; there are lo, server, worker`},
		{live.Options{Interface: "server"}, live.ErrInterface, "server is down; sudo ip link set server up"},
		{live.Options{Interface: "lo", Stamps: live.Hardware}, live.ErrUnsupported, "use --stamps kernel"},
		{live.Options{Interface: "lo", Stamps: "gps"}, live.ErrOptions, `unknown clock "gps"`},
		{live.Options{Interface: "lo", SnapBytes: 71}, live.ErrOptions, "use 72 to 262144"},
		{live.Options{Interface: "lo", BufferBytes: -1}, live.ErrOptions, "use 0 to 1 GiB"},
	} {
		s, err := live.Open(tt.options)
		if s != nil || !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%+v: %v, want %q", tt.options, err, tt.say)
		}
	}
}

// TestPermission checks the error without the capability. It drops the capability in one thread, which ends with the
// test.
func TestPermission(t *testing.T) {
	runtime.LockOSThread()
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capset(header, &data[0]); err != nil {
		t.Fatal(err)
	}
	_, err := live.Open(live.Options{Interface: "lo"})
	if !errors.Is(err, live.ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Errorf("%v", err)
	}
}

// BenchmarkNext measures reading packets that are waiting.
func BenchmarkNext(b *testing.B) {
	tx, s := cable(b, live.Options{})
	var p capture.Packet
	b.ReportAllocs()
	for left := b.N; left > 0; {
		b.StopTimer()
		batch := min(left, 5000)
		for i := range batch {
			tx.Update(b, 1, uint32(i))
		}
		b.StartTimer()
		for taken := 0; taken < batch; {
			err := s.Next(&p)
			if err == nil {
				taken++
				continue
			}
			if !errors.Is(err, capture.ErrIdle) {
				b.Fatal(err)
			}
			if err := s.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		left -= batch
	}
}

// BenchmarkUnderLoad measures reading while another thread sends at full speed. It reports the time per packet, the
// reader's CPU share, and the drops.
func BenchmarkUnderLoad(b *testing.B) {
	tx, s := cable(b, live.Options{})
	before := threadTime(b)
	b.ResetTimer()
	go func() {
		for i := range b.N {
			tx.Update(b, 1, uint32(i))
		}
	}()
	var p capture.Packet
	var received, dropped int64
	for received+dropped < int64(b.N) {
		err := s.Next(&p)
		if err == nil {
			received++
			continue
		}
		if !errors.Is(err, capture.ErrIdle) {
			b.Fatal(err)
		}
		dropped = s.DroppedPackets()
		ctx, cancel := context.WithTimeout(b.Context(), time.Millisecond)
		if err := s.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			b.Fatal(err)
		}
		cancel()
	}
	b.StopTimer()
	b.ReportMetric(float64(threadTime(b)-before)/float64(b.N), "reader-ns/op")
	b.ReportMetric(float64(dropped), "dropped")
}

// threadTime returns this thread's CPU time.
func threadTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCapacity fills the buffer without reading and reports how many frames fit.
func BenchmarkCapacity(b *testing.B) {
	for _, lanes := range []int{48, 338, olaf.MaxLanes} {
		b.Run(fmt.Sprintf("%dB", olaf.FrameSize(lanes)), func(b *testing.B) {
			livetest.EnterNamespace(b)
			livetest.SetUp(b, "lo")
			s := open(b, live.Options{Interface: "lo"})
			tx := livetest.NewSender(b, "lo")
			frame := make([]byte, olaf.MaxFrame)
			n, err := olaf.EncodeUpdate(frame, &livetest.Addresses, &olaf.Update{Count: 1, Lanes: uint16(lanes)}, nil)
			if err != nil {
				b.Fatal(err)
			}
			held := 0
			for b.Loop() {
				for s.DroppedPackets() == 0 {
					for range 1000 {
						tx.Send(b, frame[:n])
					}
				}
				for held = 0; s.Next(&capture.Packet{}) == nil; held++ {
				}
			}
			b.ReportMetric(float64(held), "frames")
		})
	}
}

func TestLargestBuffer(t *testing.T) {
	livetest.EnterNamespace(t)
	livetest.SetUp(t, "lo")
	s, err := live.Open(live.Options{Interface: "lo", BufferBytes: 1 << 30, Stamps: live.Kernel})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if notes := s.Info().Notes; len(notes) != 0 {
		t.Errorf("%q", notes)
	}
}
