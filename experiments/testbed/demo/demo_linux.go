package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/pktgen/process"
	"github.com/vishvananda/netlink"
)

// ErrWrong says that something did not add up.
var ErrWrong = olaf.NewError(olaf.Failed, "the kernel's sums are not what was sent")

// Config is what is asked for.
type Config struct {
	process.Job
	Every time.Duration // between two packets of a worker
	Skip  int           // packets that a worker leaves out, every so-many-th
	Mode  xdp.Mode
	// Command starts a worker or a server: its name and its arguments. It is what 'olafctl' does with 'worker' and 'ps'.
	Command func(args ...string) *exec.Cmd
	Say     func(format string, args ...any) // what goes on
}

// Report is what happened.
type Report struct {
	Workers []process.WorkerReport `json:"workers"`
	Server  process.ServerReport   `json:"server"`
	Kernel  map[string]uint64      `json:"kernel"` // counts of the program
	Took    time.Duration          `json:"took_ns"`
	Agent   int                    `json:"agent_resent"` // sums that the server asked the aggregator for
	Checks  []Check                `json:"identities"`
}

// Check is an identity that was held.
type Check struct {
	Name  string `json:"name"`
	Left  uint64 `json:"left"`
	Right uint64 `json:"right"`
	Holds bool   `json:"holds"`
}

// port is that of every socket.
const port = olaf.UDPPort

// address is that of an end of child i's cable: the switch's, or the child's. The server is the child behind the last worker.
func address(i int, ofSwitch bool) netip.Addr {
	last := byte(2)
	if ofSwitch {
		last = 1
	}
	return netip.AddrFrom4([4]byte{10, 77, byte(i), last})
}

func at(i int, ofSwitch bool) netip.AddrPort { return netip.AddrPortFrom(address(i, ofSwitch), port) }

// bench is the demo while it stands.
type bench struct {
	*Config
	lab    *netlab.Lab
	hub    *netlab.Node
	cables []*netlab.Cable // of the workers, then the server's
	adds   *xdp.Aggregator
	opened []io.Closer
}

// Run sets everything up, plays the job, holds what must hold, and takes everything down. The error matches netlab.ErrRights or
// xdp.ErrRights, ErrWrong, or is the kernel's.
func Run(ctx context.Context, c Config) (r *Report, err error) {
	b := &bench{Config: &c}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(); err != nil {
		return nil, err
	}
	c.Say("%d namespaces, %d cables, XDP program xagg in mode %s", c.Workers+2, len(b.cables), c.Mode)
	started := time.Now()
	if r, err = b.play(ctx); err != nil {
		return nil, err
	}
	r.Took = time.Since(started)
	return r, b.judge(r)
}

// open makes namespaces, cables and the program.
func (b *bench) open() (err error) {
	if b.lab, err = netlab.New(); err != nil {
		return err
	}
	if b.hub, err = b.lab.Node("switch"); err != nil {
		return err
	}
	if err = b.hub.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644) }); err != nil {
		return fmt.Errorf("let the switch's namespace forward results: %w", err)
	}
	for i := range b.Workers + 1 {
		name := "worker" + strconv.Itoa(i)
		if i == b.Workers {
			name = "ps"
		}
		if err = b.plug(i, name); err != nil {
			return err
		}
	}
	return b.load()
}

// plug adds a child with its cable and addresses.
func (b *bench) plug(i int, name string) error {
	n, err := b.lab.Node(name)
	if err != nil {
		return err
	}
	c, err := netlab.Connect(netlab.End{Node: n, Name: "data"}, netlab.End{Node: b.hub, Name: name}, 1500)
	if err != nil {
		return err
	}
	b.cables = append(b.cables, c)
	if err := errors.Join(c.A.Address(netip.PrefixFrom(address(i, false), 24)), c.B.Address(netip.PrefixFrom(address(i, true), 24))); err != nil {
		return err
	}
	gateway := address(i, true).As4()
	return n.Do(func() error {
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: c.A.Index, Gw: net.IP(gateway[:])}); err != nil {
			return fmt.Errorf("%s: route to the others: %w: %w", name, netlab.ErrNetwork, err)
		}
		return nil
	})
}

// load puts the program on every worker's cable, with the server's as the way up.
func (b *bench) load() (err error) {
	b.adds, err = xdp.LoadAggregator(xdp.AggregatorBuild{Fragments: b.Fragments(), Lanes: b.Lanes, Senders: 2 * b.Workers})
	if err != nil {
		return err
	}
	up := b.cables[b.Workers]
	var senders []xdp.Sender
	for i := range b.Workers {
		senders = append(senders, xdp.Sender{Address: address(i, false), Cluster: b.ID, Worker: olaf.WorkerID(i)})
		attached, err := b.adds.Attach(b.cables[i].B, b.Mode)
		if err != nil {
			return err
		}
		b.opened = append(b.opened, attached)
	}
	pass, err := xdp.AttachPass(up.A)
	if err != nil {
		return err
	}
	b.opened = append(b.opened, pass)
	parent := xdp.Parent{Job: b.ID, Children: b.Workers, Source: olaf.Addresses{
		SrcIP: address(b.Workers, true).As4(), DstIP: address(b.Workers, false).As4(), SrcMAC: [6]byte(up.B.MAC), DstMAC: [6]byte(up.A.MAC),
	}}
	return errors.Join(b.adds.SetSenders(senders), b.adds.Configure(parent), b.adds.SetUplink(up.B), b.adds.Run(true))
}

// close takes everything down.
func (b *bench) close() error {
	var errs []error
	for _, c := range b.opened {
		errs = append(errs, c.Close())
	}
	if b.adds != nil {
		errs = append(errs, b.adds.Close())
	}
	if b.lab != nil {
		errs = append(errs, b.lab.Close())
	}
	return errors.Join(errs...)
}

// child is a program in its namespace, and what it prints.
type child struct {
	process  *netlab.Process
	out, err bytes.Buffer
}

func (b *bench) start(i int, args ...string) (*child, error) {
	k := &child{}
	cmd := b.Command(append(args, "--id", strconv.Itoa(int(b.ID)), "--workers", strconv.Itoa(b.Workers), "--values", strconv.Itoa(b.Values),
		"--lanes", strconv.Itoa(b.Lanes), "--vectors", strconv.Itoa(b.Epochs), "--listen", at(i, false).String())...)
	cmd.Stdout, cmd.Stderr = &k.out, &k.err
	var err error
	k.process, err = b.cables[i].A.Node.Start(cmd)
	return k, err
}

// wait waits for a child's report.
func (k *child) wait(ctx context.Context, into any) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.process.Done():
	}
	if err := k.process.Wait(); err != nil {
		return fmt.Errorf("a process of the job ended: %w: %s", err, bytes.TrimSpace(k.err.Bytes()))
	}
	return json.Unmarshal(k.out.Bytes(), into)
}

// play runs the job.
func (b *bench) play(ctx context.Context) (*Report, error) {
	r := &Report{Workers: make([]process.WorkerReport, b.Workers)}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	agent, err := b.answer(ctx, r)
	if err != nil {
		return nil, err
	}
	args := []string{"ps", "--agent", at(b.Workers, true).String()}
	for i := range b.Workers {
		args = append(args, "--worker", at(i, false).String())
	}
	server, err := b.start(b.Workers, args...)
	if err != nil {
		return nil, err
	}
	workers := make([]*child, b.Workers)
	for i := range workers {
		workers[i], err = b.start(i, "worker", "--worker", strconv.Itoa(i), "--aggregator", at(i, true).String(),
			"--server", at(b.Workers, false).String(), "--every", b.Every.String(), "--skip", strconv.Itoa(b.Skip))
		if err != nil {
			return nil, err
		}
	}
	b.Say("%d workers and a parameter server, %d vectors of %d values in %d packets", b.Workers, b.Epochs, b.Values, b.Fragments())
	for i, w := range workers {
		if err := w.wait(ctx, &r.Workers[i]); err != nil {
			return nil, err
		}
	}
	if err := interrupt(server.process.PID()); err != nil {
		return nil, err
	}
	if err := server.wait(ctx, &r.Server); err != nil {
		return nil, err
	}
	stop()
	if err := <-agent; err != nil {
		return nil, err
	}
	r.Kernel, err = b.adds.Latch()
	return r, err
}

// interrupt asks a process to end and to report.
func interrupt(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(os.Interrupt)
}

// answer is the aggregator's agent: it sends sums once more that the server did not get. It ends with the context.
func (b *bench) answer(ctx context.Context, r *Report) (<-chan error, error) {
	var conn *net.UDPConn
	err := b.hub.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at(b.Workers, true)))
		return err
	})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	go func() {
		in, out, lanes := make([]byte, 2048), make([]byte, 2048), make([]int32, b.Lanes)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(in)
			if err != nil {
				done <- nil
				return
			}
			epoch, fragment, ok := process.DecodeAsk(in[:n])
			if !ok || fragment >= b.Fragments() {
				continue
			}
			a, err := b.adds.Fragment(fragment, lanes)
			if err != nil {
				done <- err
				return
			}
			if a.Epoch != epoch || a.Inside != b.Workers {
				continue
			}
			sum, err := process.EncodeSum(out, &b.Job, epoch, fragment, a.Count, lanes[:a.Lanes])
			if err != nil {
				done <- err
				return
			}
			r.Agent++
			_, _ = conn.WriteToUDPAddrPort(sum, from) // what is lost is asked for again
		}
	}()
	return done, nil
}

// judge holds the identities of a job.
func (b *bench) judge(r *Report) error {
	var sent, checked, wrong, results uint64
	for _, w := range r.Workers {
		sent += uint64(w.Sent)
		checked += uint64(w.Checked)
		wrong += uint64(w.Wrong)
		results += uint64(w.Results)
	}
	k, fragments := r.Kernel, uint64(b.Fragments()*b.Epochs)
	hold := func(name string, left, right uint64) {
		r.Checks = append(r.Checks, Check{name, left, right, left == right})
	}
	hold("packets sent = packets that the kernel decided about", sent, k["consumed"]+k["completed"]+k["duplicate"]+k["late"]+k["mismatched"]+k["out_of_range"])
	hold("sums completed = fragments of all vectors", k["completed"], fragments)
	hold("packets added = fragments × workers", k["consumed"]+k["completed"], fragments*uint64(b.Workers))
	hold("sums at the server = sums completed", uint64(r.Server.Sums), k["completed"])
	hold("results at the workers = fragments × workers", results, fragments*uint64(b.Workers))
	hold("values that workers checked = values × vectors × workers", checked, uint64(b.Values*b.Epochs*b.Workers))
	hold("values that were wrong = 0", wrong, 0)
	hold("packets of strangers, broken or lost before the program = 0", k["malformed"]+k["misidentified"]+k["lost_before_engine"], 0)
	var errs []error
	for _, c := range r.Checks {
		if !c.Holds {
			errs = append(errs, fmt.Errorf("%w: %s: %d, %d", ErrWrong, c.Name, c.Left, c.Right))
		}
	}
	return errors.Join(errs...)
}
