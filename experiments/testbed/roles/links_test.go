package roles

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// fakeWires are cables between interfaces of hosts: a frame that is sent at one end arrives at the listeners of the other.
type fakeWires struct {
	mu     sync.Mutex
	cables map[string]string // from host/interface to host/interface
	loses  int               // frames to lose first
	heard  map[string][][]byte
	sent   map[string]int // probe frames by host/interface
	open   int            // captures
}

// wiredHost is one host at these wires.
type wiredHost struct {
	localHost
	name  string
	wires *fakeWires
	fails map[string]error // by interface
	rates map[string]int   // by host/interface, in Mbit/s
	alice string           // host/interface that alice reserved
}

func (h wiredHost) Reservations(context.Context) (all []testbed.Reservation, err error) {
	if name, here := strings.CutPrefix(h.alice, h.name+"/"); here {
		all = append(all, testbed.Reservation{Owner: "alice@desk", Resources: []string{testbed.InterfaceResource(name)}})
	}
	return all, nil
}

func (h wiredHost) About(_ context.Context, what testbed.AboutRequest) (about testbed.HostAbout, err error) {
	about.NIC = &testbed.NIC{Mbps: h.rates[h.name+"/"+what.Interface]}
	return about, nil
}

func (h wiredHost) SendProbe(_ context.Context, name string, token []byte) error {
	h.wires.mu.Lock()
	defer h.wires.mu.Unlock()
	h.wires.sent[h.name+"/"+name]++
	if h.wires.loses > 0 {
		h.wires.loses--
		return h.fails[name]
	}
	to := h.wires.cables[h.name+"/"+name]
	h.wires.heard[to] = append(h.wires.heard[to], []byte("a frame of others"), capture.EncodeProbe(make([]byte, 6), token))
	return h.fails[name]
}

func (h wiredHost) capture(_ context.Context, o live.Options) (testbed.Frames, error) {
	name := o.Interface
	if err := h.fails[name]; err != nil {
		return nil, err
	}
	h.wires.mu.Lock()
	defer h.wires.mu.Unlock()
	h.wires.open++
	return &wiredFrames{wires: h.wires, at: h.name + "/" + name}, nil
}

// wiredFrames are the frames that arrive at one end.
type wiredFrames struct {
	testbed.Frames
	wires *fakeWires
	at    string
}

func (f *wiredFrames) Next(p *capture.Packet) error {
	f.wires.mu.Lock()
	defer f.wires.mu.Unlock()
	all := f.wires.heard[f.at]
	if len(all) == 0 {
		return capture.ErrIdle
	}
	p.Data, f.wires.heard[f.at] = all[0], all[1:]
	return nil
}

func (f *wiredFrames) Close() error {
	f.wires.mu.Lock()
	defer f.wires.mu.Unlock()
	f.wires.open--
	return nil
}

// TestLinksAreProbed checks probe frames over the links of a testbed: a link that leads elsewhere is reported on one
// line with both ends and their hosts, no frame enters a link that another user has reserved at one end, and no capture
// is left.
func TestLinksAreProbed(t *testing.T) {
	const toQueue, toServer = "gen/eth0", "q/out"
	right := map[string]string{toQueue: "q/in", toServer: "ps/eth0"}
	nowhere := "no probe frame from eth0 of host gen reached in of host q in 1s; check the cable between them"
	for name, c := range map[string]struct {
		text          string
		cables        map[string]string
		loses         int
		fails         map[string]error // by host/interface
		rates         map[string]int
		alice         string // end that another user has reserved
		user          string // command that uses the queue
		queue, server string // part of each link's fault, or of the reason why it is not checked
		bad           int    // faults
	}{
		"good":             {text: between, cables: right},
		"a lossy one":      {text: between, cables: right, loses: 5},
		"nowhere":          {text: between, cables: map[string]string{toServer: "ps/eth0"}, queue: nowhere, bad: 1},
		"crossed":          {text: between, cables: map[string]string{toQueue: "ps/eth0", toServer: "q/in"}, queue: nowhere, server: "reached eth0 of host ps", bad: 2},
		"two line rates":   {text: between, cables: right, rates: map[string]int{toQueue: 100_000, "q/in": 25_000, toServer: 25_000}, queue: "eth0 of host gen has a line rate of 100000 Mbit/s and in of host q one of 25000", bad: 1},
		"from a reserved":  {text: between, cables: right, alice: toQueue, queue: "host gen: interface eth0: it is reserved by alice@desk"},
		"to a reserved":    {text: between, cables: right, alice: "q/in", queue: "host q: interface in: it is reserved by alice@desk"},
		"in use":           {text: between, cables: right, user: "bob@desk (olafctl bench)", queue: "host q is in use by bob@desk (olafctl bench), whose run", server: "host q is in use"},
		"without rights":   {text: between, cables: right, fails: map[string]error{toServer: errors.New("not permitted")}, server: "host q: not permitted", bad: 1},
		"nothing captured": {text: between, cables: right, fails: map[string]error{"ps/eth0": live.ErrPermission}, server: "host ps: capturing is not permitted", bad: 1},
		"cards": {text: good, queue: "pci:0000:5e:00.0 of host gen has no interface on its host; each bench sends frames",
			server: "pci:0000:3b:00.0 of host q has no interface"},
		"twins": {text: "hosts: {h: {}}\nroles:\n  generator: {host: h, device: 'twin:'}\n  queue: {host: h, device: 'twin:'}\n",
			queue: "the cable is part of twin: of host h"},
	} {
		synctest.Test(t, func(t *testing.T) {
			wires := &fakeWires{cables: c.cables, loses: c.loses, heard: map[string][][]byte{}, sent: map[string]int{}}
			s := &Hosts{plan: rolePlan(t, c.text)}
			s.access.Devices = testbed.Devices{cardRow, testbed.TwinDevice()}
			for _, h := range s.plan.Hosts {
				fails := map[string]error{}
				for at, err := range c.fails {
					if host, end, _ := strings.Cut(at, "/"); host == h.Name {
						fails[end] = err
					}
				}
				s.links = append(s.links, wiredHost{name: h.Name, wires: wires, fails: fails, rates: c.rates, alice: c.alice})
			}
			links, err := s.requireLinks(t.Context(), []Examination{{Name: "q", HostAbout: testbed.HostAbout{User: c.user}}})
			for i, want := range []string{c.queue, c.server}[:len(links)] {
				if got := links[i].Fault + links[i].Unchecked; !strings.Contains(got, want) || (want == "") != (got == "") {
					t.Errorf("%s: the link from %s to %s: %q, want %q", name, links[i].From.Role, links[i].To.Role, got, want)
				}
			}
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != c.bad || (err != nil) != errors.Is(err, ErrUnfit) || (err != nil) != (LinkFault(links) != nil) {
				t.Errorf("%s: %v, want %d lines", name, err, c.bad)
			}
			if slices.ContainsFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "link from ") }) {
				t.Errorf("%s: %q, want the links' names", name, lines)
			}
			if n := wires.sent[toQueue]; c.alice+c.user != "" && n > 0 {
				t.Errorf("%s: %d frames were sent over a reserved or used link", name, n)
			}
			if wires.open != 0 {
				t.Errorf("%s: %d captures are left", name, wires.open)
			}
		})
	}
}

// TestLinksOfNodes checks the list of cables between hosts in a tree.
func TestLinksOfNodes(t *testing.T) {
	f, err := lab.Parse("lab.yaml", []byte(spread))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ResolveHosts(f)
	if err != nil {
		t.Fatal(err)
	}
	want := []LinkCheck{{From: LinkEnd{Role: "low", Host: "a", Interface: "eth0"}, To: LinkEnd{Role: "high", Host: "b", Interface: "eth0"}},
		{From: LinkEnd{Role: "high", Host: "b", Interface: "eth1"}, To: LinkEnd{Role: "ps", Host: "c", Interface: "eth0"}}}
	if got := p.findLinks(); !slices.Equal(got, want) {
		t.Errorf("the links are %+v, want %+v", got, want)
	}
}
