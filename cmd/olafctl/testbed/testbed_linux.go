package testbed

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed/demo"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// openDatagrams opens the UDP socket of a worker or a server.
func openDatagrams(ctx context.Context, at netip.AddrPort) (*net.UDPConn, error) {
	return netlab.Datagrams(ctx, at)
}

// Rates that a machine with two processors sustains on time, and higher ones for a short demo.
const (
	demoLine  = 60 * olaf.Mbps
	demoRate  = 180 * olaf.Mbps
	shortLine = 200 * olaf.Mbps
	shortRate = 400 * olaf.Mbps
)

// demoFlags are the flags of testbed demo.
type demoFlags struct {
	demo.Config
	out   cli.Format
	short bool
	mode  string
	film  pictureFlags
}

func newTestbedDemoCmd(env *cli.Env) *cobra.Command {
	f := &demoFlags{Config: demo.Config{Job: endpoints.Job{ID: 1, Lanes: 256}, Line: demoLine, Rate: demoRate}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo job in namespaces with aggregation in the kernel",
		Long: `Run a demo job: a network namespace for each worker, the parameter server and the switch, where the XDP program xagg
aggregates in the kernel. Every value of every sum is checked, and workers drop packets so that recovery is exercised. It needs
root or the rights that 'olafctl testbed doctor' lists.`,
		Example: "  sudo olafctl testbed demo\n  sudo olafctl testbed demo --short -o json\n  sudo olafctl testbed " +
			"demo --record demo.svg",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, env) },
	}
	c, flags := &f.Config, cmd.Flags()
	flags.IntVar(&c.Workers, "workers", 4, "workers, one process and namespace each")
	flags.IntVar(&c.Values, "values", 1<<18, "32-bit values per vector")
	flags.IntVar(&c.Vectors, "vectors", 40, "vectors per worker")
	flags.Var(&c.Line, "line", "maximum rate of a worker")
	flags.Var(&c.Rate, "rate", "maximum rate of the aggregator, shared by the workers; 0bps for no limit")
	flags.IntVar(&c.Group, "group", lab.DefaultGroup, "packets per group acknowledgement, a power of two")
	flags.IntVar(&c.Skip, "skip", 101, "drop every n-th packet; 0 for none")
	flags.BoolVar(&f.short, "short", false, "a short demo: 3 vectors of 16,384 values")
	cli.Choose(cmd, &f.mode, "mode", "XDP mode: native|generic", string(dataplane.Native), string(dataplane.Generic))
	f.mode = string(dataplane.Native)
	f.film.Add(cmd)
	cli.AddFormatFlag(cmd, &f.out, cli.Table, cli.JSON)
	return cmd
}

// run completes the configuration and runs the demo. With --record, it records the output.
func (f *demoFlags) run(cmd *cobra.Command, env *cli.Env) error {
	c := f.Config
	if f.short {
		c.Values, c.Vectors, c.Line, c.Rate = 1<<14, 3, shortLine, shortRate
	}
	if c.Workers < 1 || c.Workers > xdp.MaxChildren {
		return cli.UsageError("--workers is %d; it must be 1 to %d", c.Workers, xdp.MaxChildren)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if c.Line <= 0 {
		return cli.UsageError("--line is %v; give a rate, because cables without rate control lose most packets",
			c.Line)
	}
	c.Mode = dataplane.Mode(f.mode)
	c.Command = func(args ...string) *exec.Cmd { return exec.Command(self, args...) }
	return f.film.RecordOutput(cmd, env, func(env *cli.Env) error { return runDemo(cmd.Context(), env, &c, f.out) })
}

// runDemo runs a demo and checks that no interface is left behind.
func runDemo(ctx context.Context, env *cli.Env, c *demo.Config, out cli.Format) error {
	c.Progress = func(format string, args ...any) { fmt.Fprintf(env.Stderr, format+"\n", args...) }
	before := listLinks()
	report, err := demo.RunDemo(ctx, *c)
	if err != nil {
		return cli.MarkNothingToShow(err)
	}
	if left := listLinks(); left != before {
		return fmt.Errorf("%w: interfaces were %s before and are %s now", demo.ErrWrong, before, left)
	}
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			*demo.Report
		}{cli.Info("demo"), report})
	}
	return printDemo(env, c, report)
}

// listLinks returns the names of the interfaces in this network namespace.
func listLinks() string {
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func printDemo(env *cli.Env, c *demo.Config, r *demo.Report) error {
	sent, skipped, resent, checked := 0, 0, 0, 0
	for _, w := range r.Workers {
		sent, skipped, resent, checked = sent+int(w.Data()), skipped+w.Skipped, resent+int(w.Counts["packets_resent"]),
			checked+w.Checked
	}
	fmt.Fprintf(env.Stdout, "%d workers, %s of %d values: %d values checked, all exact, in %.1f s\n",
		c.Workers, olaf.Plural(c.Vectors, "vector"), c.Values, checked, r.Took.Seconds())
	fmt.Fprintf(env.Stdout, "%d packets sent, %d of them as resends; %d dropped on purpose; the kernel completed %d "+
		"sums and dropped %d duplicates\n",
		sent, resent, skipped, r.Kernel["completed"], r.Kernel["duplicate"])
	fmt.Fprintf(env.Stdout, "the agent checked %s and found %s missing\n",
		olaf.Plural(int(r.Agent["groups_checked"]), "group"), olaf.Plural(int(r.Agent["fragments_missed"]), "packet"))
	fmt.Fprintf(env.Stdout, "the testbed is down: no namespace, cable or program is left\n\n")
	list := cli.Grid{Header: []string{"IDENTITY", "LEFT", "RIGHT", "HOLDS"}}
	for _, x := range r.Checks {
		list.Add(x.Name, fmt.Sprint(x.Left), fmt.Sprint(x.Right), map[bool]string{true: "yes", false: "NO"}[x.Holds])
	}
	return list.Write(env, cli.Table)
}

// Ability is a line in the report of 'testbed doctor': an ability of this machine and whether it is present.
type Ability struct {
	Name    string `json:"name"`
	Finding string `json:"says"`
	Remedy  string `json:"remedy,omitempty"` // how to get what is missing
	OK      bool   `json:"ok"`
	Better  bool   `json:"better,omitempty"` // optional, but recommended
}

func newTestbedDoctorCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:   "doctor [FILE]",
		Short: "Check what this machine can do with real packets, or all hosts in a file",
		Long: `Check what this machine can do with real packets: kernel, rights, namespaces, XDP in both modes, clocks, and, for half a
second, the frames per second of senders, program and pacer. For a testbed file with roles, check build, kernel,
rights, devices, interfaces, clocks and disk of all its hosts, and send probe frames over its links. Exit code 3: something required is missing.`,
		Example: "  sudo olafctl testbed doctor\n  olafctl testbed doctor paper.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				p, access, err := readRoles(env, args[0])
				if err != nil {
					return err
				}
				return doctorRoles(cmd.Context(), env, out, p, access)
			}
			all := examineTestbed()
			list, failed := abilityGrid(all)
			var err error
			if out == cli.JSON {
				err = cli.WriteJSON(env.Stdout, struct {
					cli.Head
					Checks []Ability `json:"checks"`
				}{cli.Check("testbed"), all})
			} else {
				err = list.Write(env, out)
			}
			if err == nil && failed > 0 {
				return fmt.Errorf("%w: %s for a testbed with real packets", errTestbed, olaf.Plural(failed, "part"))
			}
			return err
		},
	}
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	return cmd
}

// abilityGrid returns a list of abilities and the number of missing ones. A repeated remedy is abbreviated.
func abilityGrid(all []Ability) (list *cli.Grid, missing int) {
	list = &cli.Grid{Header: []string{"", "WHAT", "SEEN", "REMEDY"}}
	said := map[string]bool{}
	for _, a := range all {
		mark, remedy := "ok", a.Remedy
		if said[remedy] && remedy != "" {
			remedy = "the same as above"
		}
		said[a.Remedy] = true
		switch {
		case a.OK:
		case a.Better:
			mark = "better"
		default:
			mark = "MISSING"
			missing++
		}
		list.Add(mark, a.Name, a.Finding, remedy)
	}
	return list, missing
}

var errTestbed = olaf.NewError(olaf.Device, "this machine lacks")

func examineTestbed() []Ability {
	all := []Ability{kernelAbility()}
	rights := append(append([]netlab.Right{}, xdp.LoadRights...), netlab.NamespaceRights[0], netlab.PacketRights[0])
	wanted := append(slices.Clone(rights), realtime.PriorityRight)
	remedy := "run with sudo, or give the program all of these rights: " + setcapCommand(wanted)
	for _, r := range wanted {
		a := Ability{Name: r.Name, Finding: "present, to " + r.For, OK: true}
		if netlab.CheckRights(r) != nil {
			a = Ability{Name: r.Name, Finding: "missing, to " + r.For, Remedy: remedy,
				Better: r == realtime.PriorityRight}
			if r.Global && netlab.InUserNamespace() {
				a.Remedy = netlab.UserNamespaceAdvice
			}
		}
		all = append(all, a)
	}
	if netlab.CheckRights(rights...) != nil {
		return append(all, Ability{Name: "namespaces", Finding: "not checked, because rights are missing",
			Remedy: "fix the lines above first"})
	}
	return append(all, tryTestbed()...)
}

// setcapCommand returns the command that gives the program all rights. It must give them at once, because each call
// replaces the rights from earlier calls.
func setcapCommand(rights []netlab.Right) string {
	var names []string
	for _, r := range rights {
		names = append(names, strings.ToLower(r.Name))
	}
	return "sudo setcap " + strings.Join(names, ",") + "+ep $(command -v olafctl)"
}

func kernelAbility() Ability {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Ability{Name: "kernel", Finding: err.Error(), Remedy: "run on Linux"}
	}
	release := string(bytes.TrimRight(name.Release[:], "\x00"))
	var resolution unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC, &resolution); err != nil || resolution.Nano() > 1 {
		return Ability{Name: "kernel", Finding: fmt.Sprintf("Linux %s, a clock of %d ns", release, resolution.Nano()),
			Remedy: "boot with high resolution timers"}
	}
	return Ability{Name: "kernel", Finding: "Linux " + release + ", a clock of 1 ns", OK: true}
}

// tryTestbed creates a virtual cable and attaches a program to it in every XDP mode.
func tryTestbed() (all []Ability) {
	lab, err := netlab.New()
	if err != nil {
		return []Ability{{Name: "namespaces", Finding: err.Error(), Remedy: "use a kernel with CONFIG_NET_NS"}}
	}
	defer lab.Close()
	var ends [2]netlab.End
	for i, name := range []string{"a", "b"} {
		n, err := lab.Node(name)
		if err != nil {
			return []Ability{{Name: "namespaces", Finding: err.Error(), Remedy: "use a kernel with CONFIG_NET_NS"}}
		}
		ends[i] = netlab.End{Node: n, Name: "data"}
	}
	c, err := netlab.ConnectNodes(ends[0], ends[1], netlab.MaxMTU)
	if err != nil {
		return []Ability{{Name: "namespaces", Finding: err.Error(), Remedy: "modprobe veth"}}
	}
	all = append(all, Ability{Name: "namespaces", Finding: fmt.Sprintf("created, with a cable of MTU %d", netlab.MaxMTU),
		OK: true})
	all = append(all, forwardAbility(ends[0].Node), descriptorAbility())
	if features := FeatureAbilities(xdp.RunningKernel()); features != nil {
		return append(all, features...)
	}
	p, err := xdp.LoadAggregator(xdp.AggregatorBuild{Fragments: 1, Lanes: 256, Senders: 2})
	if err != nil {
		return append(all, Ability{Name: "XDP programs", Finding: err.Error(),
			Remedy: "use kernel 6.1 or newer, with CONFIG_DEBUG_INFO_BTF"})
	}
	defer p.Close()
	for _, mode := range []dataplane.Mode{dataplane.Native, dataplane.Generic} {
		name := "XDP " + string(mode)
		l, err := p.Attach(c.B, mode)
		if err != nil {
			all = append(all, Ability{Name: name, Finding: err.Error(), Remedy: "use a driver with XDP, or the other " +
				"mode"})
			continue
		}
		all = append(all, Ability{Name: name, Finding: "attached to a virtual cable and detached", OK: true})
		_ = l.Close()
	}
	return append(all, qdiscAbility(), ratesAbility())
}

// forwardAbility checks whether a namespace can forward packets. Nodes with aggregators need this.
func forwardAbility(n *netlab.Node) Ability {
	a := Ability{Name: "forwarding", Finding: "can be enabled in a namespace", OK: true}
	if err := n.Forward(); err != nil {
		a = Ability{Name: "forwarding", Finding: err.Error(),
			Remedy: "make /proc/sys writable: run outside the container, or with --privileged"}
	}
	return a
}

// leastDescriptors is the number of open files that a process needs for the largest tree, which has 64 workers, plus a
// margin.
const leastDescriptors = 1024

// descriptorAbility checks the limit on the number of open files.
func descriptorAbility() Ability {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return Ability{Name: "descriptors", Finding: err.Error(), Remedy: "run on Linux"}
	}
	a := Ability{Name: "descriptors", Finding: fmt.Sprintf("%d open files are allowed, and %d are enough for the "+
		"largest tree",
		limit.Cur, leastDescriptors), OK: limit.Cur >= leastDescriptors}
	if !a.OK {
		a.Finding, a.Remedy = fmt.Sprintf("%d open files are allowed, too few for the largest tree", limit.Cur),
			"raise it with 'ulimit -n 4096', or with LimitNOFILE= in the service"
	}
	return a
}

// FeatureAbilities returns the kernel features that programs need but this kernel does not have.
func FeatureAbilities(k xdp.Kernel) (all []Ability) {
	lacks, err := xdp.FindMissingFeatures(k)
	if err != nil {
		return []Ability{{Name: "kernel features", Finding: err.Error(), Remedy: "rebuild olafctl"}}
	}
	for _, f := range lacks {
		all = append(all, Ability{Name: f.Name, Finding: "not in this kernel, needed " + f.Use,
			Remedy: f.Remedy() + ", or use -d host:, which loads no programs"})
	}
	return all
}

// qdiscAbility reports whether the kernel has BPF qdiscs. They are optional, because they are not used.
func qdiscAbility() Ability {
	a := Ability{Name: "BPF qdiscs", Finding: "not in this kernel, but not needed: a thread serves the output", OK: true}
	if types, err := btf.LoadKernelSpec(); err == nil {
		if _, err := types.AnyTypeByName("bpf_struct_ops_Qdisc_ops"); err == nil {
			a.Finding = "in this kernel, but not needed: a thread serves the output"
		}
	}
	return a
}

// leastCarried is the rate in frames per second that this machine must be able to carry so that 5,000 frames per second
// arrive on time.
const leastCarried = 10_000

// ratesAbility measures for half a second which frame rate this machine can carry, as opening xdp: does.
func ratesAbility() Ability {
	c, err := realtime.Open(xdp.NewBackend(dataplane.Native), realtime.Hosts{})
	if err != nil {
		return Ability{Name: "rates", Finding: err.Error(), Remedy: "fix the lines above first"}
	}
	defer c.Close()
	r := c.Rates()
	a := Ability{Name: "rates", OK: c.Carry() >= leastCarried,
		Finding: fmt.Sprintf("frames with 48 lanes per second: senders %d, program %d, pacer %d, together %d; up to %d "+
			"are paced",
			r.Senders, r.Program, r.Pacer, c.Carry(), c.Carry()/2)}
	if !a.OK {
		a.Remedy = "stop other programs, or give the machine two processors"
		if netlab.CheckRights(realtime.PriorityRight) != nil {
			a.Remedy = "give olafctl " + realtime.PriorityRight.Name + " (see above), or " + a.Remedy
		}
	}
	return a
}
