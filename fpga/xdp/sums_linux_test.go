package xdp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/internal/splitmix"
)

// TestSumReplay sends from children in two threads, with duplicates and packets of past epochs, of other lengths and
// beyond the model. It checks every decision against the program's, that an altered decision is found, and that a
// missing one makes the comparison void.
func TestSumReplay(t *testing.T) {
	const threads, drained = 2, 1000 // packets that a thread sends before it empties the log, which has room for some thousands
	build := AggregatorBuild{Fragments: 5, Lanes: 8, Senders: 4, LogBytes: 1 << 19}
	a := loadAggregator(t, build, 4)
	var log []dataplane.Decision
	var reads sync.Mutex
	drain := func() error {
		reads.Lock()
		defer reads.Unlock()
		return a.Decisions(func(d *dataplane.Decision) { log = append(log, *d) })
	}
	var all sync.WaitGroup
	for thread := range threads {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(thread)))
			for i := range *events / threads {
				p := data{job: 7, child: uint16(rng.IntN(4)), epoch: uint16(65530 + i/300 - rng.IntN(8)/7),
					fragment: uint32(rng.IntN(6)), count: 1, lanes: make([]int32, 8-rng.IntN(9)/8)}
				if _, err := a.Arrive(p.encode(t, addressOf(int(p.child)).As4())); err != nil {
					t.Error(err)
					return
				}
				if i%drained != drained-1 {
					continue
				}
				if err := drain(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := drain(); err != nil {
		t.Fatal(err)
	}
	counts, err := a.Latch()
	if err != nil {
		t.Fatal(err)
	}
	total := uint64(0)
	for _, class := range []string{"consumed", "completed", "duplicate", "late", "mismatched", "out_of_range"} {
		if counts[class] == 0 {
			t.Errorf("no packet was %s", class)
		}
		total += counts[class]
	}
	compare := func(log []dataplane.Decision) dataplane.Comparison {
		r, err := NewSumReplayer(build, Parent{Job: 7, Children: 4})
		if err != nil {
			t.Fatal(err)
		}
		for i := range log {
			r.Add(&log[i])
		}
		return r.Compare(total)
	}
	c := compare(log)
	if c.Void != "" || c.Equal != c.Checked || uint64(c.Checked) != total {
		t.Fatalf("%+v of %d", c, total)
	}
	t.Logf("%d of %d decisions as the program's", c.Equal, c.Checked)
	altered := append([]dataplane.Decision{}, log...)
	altered[len(altered)/2].Class ^= 1
	if c := compare(altered); c.Equal == c.Checked || c.First == "" {
		t.Errorf("an altered log: %+v", c)
	}
	if c := compare(log[1:]); c.Void == "" {
		t.Errorf("a log without its beginning: %+v", c)
	}
}

// The killed aggregator's job, and the environment variable that configures its process.
const (
	killChildren  = 3
	killFragments = 16
	killLanes     = 32
	killJob       = 7
	adderEnv      = "OLAFCTL_XDP_ADDER"
)

// TestKilledAggregator kills the process with the aggregator's program, at times from before the first packet of a
// vector to after its last sum, while others send, and starts it again. As the partial sums are lost, children send the
// vector again in another epoch (paper, §V). It checks that every sum is exact, in whichever epoch, and that none is
// missing at the end.
func TestKilledAggregator(t *testing.T) {
	if where := os.Getenv(adderEnv); where != "" {
		if err := adder(where); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	if err := netlab.CheckRights(append(append([]netlab.Right{}, netlab.NamespaceRights...),
		append(LoadRights, netlab.PacketRights...)...)...); err != nil {
		t.Skip(err)
	}
	k := newKilled(t)
	k.start()
	kills, repeated := 100, 0
	if testing.Short() {
		kills = 10
	}
	const packets = killFragments * killChildren
	for i := range kills {
		draw := splitmix.MixBits(uint64(i))
		if k.vector(i, int(draw%(packets+packets/4)), time.Duration(draw>>32%1000)*time.Microsecond) {
			repeated++
		}
	}
	t.Logf("%d of %d vectors were sent again in another epoch", repeated, kills)
	if repeated < kills/4 { // four fifths of the kills begin before the last packet
		t.Errorf("only %d of %d kills made anybody send again", repeated, kills)
	}
}

// killed contains the children and the server of an aggregator in another process.
type killed struct {
	*testing.T
	hub     *netlab.Node
	up      *netlab.Cable
	senders []*netlab.Socket
	server  *netlab.Socket
	adds    *exec.Cmd
	died    chan struct{}
	says    *bytes.Buffer // its error output
	epoch   uint16
}

func newKilled(t *testing.T) *killed {
	t.Helper()
	l, err := netlab.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	k := &killed{T: t}
	node := func(name string) *netlab.Node {
		n, err := l.Node(name)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	lay := func(a, b netlab.End) *netlab.Cable {
		c, err := netlab.ConnectNodes(a, b, 1500)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	k.hub = node("switch")
	for i := range killChildren {
		name := fmt.Sprint("child", i)
		s, err := lay(netlab.End{Node: node(name), Name: "up"}, netlab.End{Node: k.hub, Name: name}).A.Packets(false)
		if err != nil {
			t.Fatal(err)
		}
		k.senders = append(k.senders, s)
	}
	k.up = lay(netlab.End{Node: k.hub, Name: "up"}, netlab.End{Node: node("server"), Name: "down"})
	pass, err := AttachPass(k.up.B)
	if err != nil {
		t.Fatal(err)
	}
	if k.server, err = k.up.B.Packets(true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if k.adds != nil {
			_ = k.adds.Process.Kill()
			<-k.died
		}
		_ = pass.Close()
		for _, s := range append(k.senders, k.server) {
			_ = s.Close()
		}
	})
	return k
}

// adder is the process that is killed. Until then it aggregates in the namespace at path.
func adder(path string) error {
	l, err := netlab.New()
	if err != nil {
		return err
	}
	hub, err := l.Enter("switch", path)
	if err != nil {
		return err
	}
	a, err := LoadAggregator(AggregatorBuild{Fragments: killFragments, Lanes: killLanes, Senders: killChildren})
	if err != nil {
		return err
	}
	var senders []dataplane.Sender
	for i := range killChildren {
		senders = append(senders, dataplane.Sender{Address: addressOf(i), Cluster: killJob, Worker: olaf.WorkerID(i)})
		at, err := hub.Interface(fmt.Sprint("child", i))
		if err != nil {
			return err
		}
		link, err := a.Attach(at, dataplane.Native)
		if err != nil {
			return err
		}
		defer link.Close() // held until this process exits
	}
	up, err := hub.Interface("up")
	if err != nil {
		return err
	}
	err = errors.Join(a.SetSenders(senders), a.SetUplink(up),
		a.Configure(Parent{Job: killJob, Children: killChildren, Source: olaf.Addresses{
			SrcIP: [4]byte{10, 9, 0, 1}, DstIP: [4]byte{10, 9, 0, 2}, DstMAC: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		}}), a.Run(true))
	if err != nil {
		return err
	}
	fmt.Println("adds")
	_, err = io.Copy(io.Discard, os.Stdin) // runs until its parent exits
	return err
}

// start starts the aggregator anew, and waits until it aggregates.
func (k *killed) start() {
	k.Helper()
	adds := exec.Command(os.Args[0], "-test.run", "^TestKilledAggregator$")
	adds.Env = append(os.Environ(), adderEnv+"="+k.hub.Path())
	k.says = new(bytes.Buffer)
	adds.Stderr = k.says
	if _, err := adds.StdinPipe(); err != nil {
		k.Fatal(err)
	}
	out, err := adds.StdoutPipe()
	if err != nil {
		k.Fatal(err)
	}
	if err := adds.Start(); err != nil {
		k.Fatal(err)
	}
	died := make(chan struct{})
	k.adds, k.died = adds, died
	hung := time.AfterFunc(time.Minute, func() { _ = adds.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	hung.Stop()
	go func() {
		_ = adds.Wait() // it is killed
		close(died)
	}()
	if line != "adds\n" {
		k.Fatalf("the aggregator says %q, %v", strings.TrimSpace(line), err)
	}
}

func killValue(vector, child, fragment, lane int) int32 {
	return int32(splitmix.MixBits(uint64(vector)<<40^uint64(child)<<32^uint64(fragment)<<16^uint64(lane))) >> 4
}

// vector sends one vector and receives its sums. Each step sends a packet as long as there are any. A while after the
// given number of steps, the aggregator is killed in parallel and started again, and everything is sent again in
// another epoch, which is reported.
func (k *killed) vector(number, steps int, while time.Duration) (repeated bool) {
	k.Helper()
	k.epoch++
	missing := map[int]bool{}
	for f := range killFragments {
		missing[f] = true
	}
	next, alive, kill := 0, true, (*time.Timer)(nil)
	for deadline := time.Now().Add(time.Minute); len(missing) > 0 || alive; steps-- {
		if steps == 0 {
			process := k.adds.Process
			kill = time.AfterFunc(while, func() { _ = process.Kill() })
		}
		if next < killFragments*killChildren {
			k.send(number, next%killChildren, next/killChildren)
			next++
		}
		k.server.Wait(1) // one packet per millisecond, because the kernel needs several to end a process
		k.take(number, missing)
		select {
		case <-k.died:
			if kill == nil || kill.Stop() {
				k.Fatalf("vector %d: the aggregator ended by itself: %s", number, k.says)
			}
			if k.take(number, missing); len(missing) > 0 {
				repeated, next = true, 0
				k.epoch += 2
			}
			k.start()
			alive = false
		default:
		}
		if time.Now().After(deadline) {
			k.Fatalf("vector %d: %d sums never came", number, len(missing))
		}
	}
	return repeated
}

func (k *killed) send(vector, child, fragment int) {
	p := data{job: killJob, child: uint16(child), epoch: k.epoch, fragment: uint32(fragment), count: 1, lanes: make([]int32, killLanes)}
	for i := range p.lanes {
		p.lanes[i] = killValue(vector, child, fragment, i)
	}
	if err := k.senders[child].Send(p.encode(k.T, addressOf(child).As4())); err != nil {
		k.Fatal(err)
	}
}

// take checks every lane of the sums that have arrived.
func (k *killed) take(vector int, missing map[int]bool) {
	b := make([]byte, 2000)
	for {
		n, err := k.server.Receive(b)
		if err != nil {
			if !errors.Is(err, netlab.ErrAgain) {
				k.Fatal(err)
			}
			return
		}
		p, from := decode(k.T, b[:n])
		if netip.AddrFrom4(from.SrcIP) != netip.AddrFrom4([4]byte{10, 9, 0, 1}) || binary.BigEndian.Uint16(b[52:]) != killChildren {
			k.Fatalf("a sum of %d vectors from %v", p.count, from.SrcIP)
		}
		for i, got := range p.lanes {
			want := int32(0)
			for child := range killChildren {
				want += killValue(vector, child, int(p.fragment), i) // values of 28 bits, so that the sum of three is in range
			}
			if got != want {
				k.Fatalf("vector %d, fragment %d of epoch %d, lane %d: %d, want %d", vector, p.fragment, p.epoch, i, got, want)
			}
		}
		delete(missing, int(p.fragment))
	}
}
