package roles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
)

// HeldScheme is the first part of the address of a device that a testbed's holder on this host lends. The name of the
// testbed and the role follow, as in held:paper/queue.
const HeldScheme = "held:"

// LentDevice is a device of a host's part of a testbed. The part's holder opens the device and lends it to the
// commands that use the testbed.
type LentDevice struct {
	Role      string `json:"role"`
	Address   string `json:"address"`             // of the device on its host
	Generator string `json:"generator,omitempty"` // another device of the host, whose generator sends to this one
	// Capture is the server's interface if it is on the same host, so that no clocks of two hosts are compared.
	Capture    string      `json:"capture,omitempty"`
	Stamps     live.Stamps `json:"stamps,omitempty"`
	ServerPort int         `json:"server_port,omitempty"` // of a card, to the interface of Capture
}

// line describes the device in the plan of its part.
func (d *LentDevice) line() string {
	words := []string{d.Role, d.Address}
	if d.Generator != "" {
		words = append(words, "fed by "+d.Generator)
	}
	if d.Capture != "" {
		words = append(words, fmt.Sprintf("captured at %s behind port %d with %s stamps", d.Capture, d.ServerPort, d.Stamps))
	}
	return strings.Join(words, ", ")
}

// capturesAtQueue reports whether the host of the queue captures the frames and no clocks of two hosts are compared.
func (p *Plan) capturesAtQueue() bool {
	return p.Server != nil && p.Mirror == nil && p.ClockBy != lab.ByProbe && p.Server.Host == p.Queue.Host &&
		(p.Generator == nil || p.Generator.Host == p.Queue.Host)
}

// joinsAtQueue reports whether a generator on the queue's host belongs to the queue's device. If another host captures,
// the generator is a separate device, because its clock is compared with that host's.
func (p *Plan) joinsAtQueue() bool {
	return p.Generator != nil && p.Generator.Host == p.Queue.Host && (p.Server == nil || p.capturesAtQueue())
}

// devicesOn returns the devices that the holder on a host opens.
func (p *Plan) devicesOn(host string) (all []LentDevice) {
	if p.Nodes != nil {
		return nil
	}
	g, q := p.Generator, p.Queue
	if q.Host == host {
		d := LentDevice{Role: lab.QueueName, Address: q.Device}
		if p.joinsAtQueue() {
			d.Generator = g.deviceAddress()
		}
		if p.capturesAtQueue() {
			d.Capture, d.Stamps, d.ServerPort = p.Server.Interface, p.Server.Stamps, q.Port
		}
		all = append(all, d)
	}
	if g != nil && g.Host == host && !p.joinsAtQueue() {
		all = append(all, LentDevice{Role: lab.Generator, Address: g.deviceAddress()})
	}
	return all
}

// addressOf returns the address at which commands reach the device of a role. A testbed that is up lends its devices.
func (p *Plan) addressOf(name string, role *Role) string {
	h := p.HostOf(role.Host)
	if p.isUp {
		return h.Address(HeldScheme + p.Name + "/" + name)
	}
	return h.Address(role.deviceAddress())
}

// HeldDevice returns the row of the device table for devices that a testbed's holder on this host lends. built lists
// the programs that such devices may have.
func HeldDevice(built ...program.Description) testbed.Device {
	agent := testbed.AgentDevice(built...)
	row := agent
	row.Prefix, row.Name, row.Also, row.Part = HeldScheme, "TESTBED/ROLE", "", true
	row.Abilities &^= testbed.Dialled
	row.NotCard = "'olafctl testbed up' opened it with its capture"
	row.Registers = func(ctx context.Context, name string, o testbed.DeviceOptions) (fpga.Device, error) {
		target, err := FindHeld(name)
		if err != nil {
			return nil, err
		}
		return agent.Registers(ctx, target, o)
	}
	row.Testbed = func(ctx context.Context, name string, o testbed.OpenOptions) (*testbed.Testbed, error) {
		target, err := FindHeld(name)
		if err != nil {
			return nil, err
		}
		return testbed.OpenLent(ctx, target, o)
	}
	return row
}

// FindHeld returns the address of the agent that lends a device on this host. name contains the testbed and the role,
// as in paper/queue. The error matches ErrUnfit or lab.ErrHolder.
func FindHeld(name string) (target string, err error) {
	name, role, _ := strings.Cut(name, "/")
	s, err := lab.Show(name)
	switch {
	case errors.Is(err, lab.ErrAbsent): // the holder ended after the testbed was brought up
		return "", fmt.Errorf("%w: %s", ErrUnfit, (&Plan{Name: name}).missingHolder())
	case err != nil:
		return "", err
	}
	if target = s.Lent[role]; target == "" {
		return "", fmt.Errorf("%w: %s lends no %s on this host", lab.ErrHolder, name, role)
	}
	return target, nil
}

// checkUp returns an error if a testbed is up but a host has no holder, or if the command has flags for a driver, which
// only the holder can start. It does nothing for a testbed from a file.
func (s *Hosts) checkUp(ctx context.Context, driver []string) error {
	if !s.plan.isUp {
		return nil
	}
	if len(driver) > 0 {
		return fmt.Errorf("%w: testbed %s is up with its driver; give %s to 'olafctl testbed up'", testbed.ErrUnsupported, s.plan.Name, driver[0])
	}
	held, err := s.readStates(ctx)
	if i := slices.Index(held, nil); err == nil && i >= 0 {
		err = fmt.Errorf("host %s: %w: %s", s.plan.Hosts[i].Name, ErrUnfit, s.plan.missingHolder())
	}
	return err
}

// explainHeld adds advice to the error of a file's testbed if holders have opened its devices, or if another testbed of
// this user has reserved them.
func (p *Plan) explainHeld(err error, examined []Examination) error {
	if p.isUp {
		return err
	}
	for i := range examined {
		if r := examined[i].Holder; r != nil && r.Testbed != p.Name && !errors.Is(err, testbed.ErrReserved) {
			return fmt.Errorf("%w; host %s is reserved for testbed %s: use -d testbed:%[3]s, or 'olafctl testbed down %[3]s'", err,
				examined[i].Name, r.Testbed)
		}
	}
	if _, absent := loadUp(p.Name); absent != nil {
		return err
	}
	return fmt.Errorf("%w; testbed %s is up and its holders have opened the devices: use -d testbed:%[2]s", err, p.Name)
}

// stopUnheldGenerators stops the generators of cards whose holder was killed. A holder that runs stops them itself.
func (s *Hosts) stopUnheldGenerators(ctx context.Context) {
	if !s.plan.isUp {
		return
	}
	if held, err := s.readStates(ctx); err == nil && slices.Contains(held, nil) {
		_ = s.rest(ctx) // the run has failed already
	}
}

func (p *Plan) missingHolder() string {
	return fmt.Sprintf("no process holds testbed %s; 'olafctl testbed up' starts it again", p.Name)
}

// makeSocket returns the path for the socket of a lent device, in a folder that only this user can access.
func makeSocket(testbedName, role string) (path string, err error) {
	path, err = makeUpFolder(testbedName)
	return socketAt(path, role), err
}

// socketAt returns the path for the socket of a testbed whose plan is, or would be, at upPath.
func socketAt(upPath, role string) string {
	return strings.TrimSuffix(upPath, filepath.Ext(upPath)) + "-" + role
}

// removeSockets removes the sockets of a testbed that no process holds.
func removeSockets(testbedName string) {
	path, err := upFile(testbedName)
	if err != nil {
		return // there is no folder, or it is another user's
	}
	for _, role := range []string{lab.Generator, lab.QueueName} {
		_ = os.Remove(socketAt(path, role)) // most holders remove theirs
	}
	_ = os.Remove(filepath.Dir(path)) // fails while other testbeds are up
}

// serve opens the device and lends it until the returned function is called. That function also stops the generator.
func (d *LentDevice) serve(ctx context.Context, testbedName string, a testbed.Access) (s *testbed.Service, end func() error, err error) {
	path, err := makeSocket(testbedName, d.Role)
	if err != nil {
		return nil, nil, err
	}
	if err := d.stopGenerators(ctx, &a); err != nil {
		return nil, nil, err
	}
	a.Generator, a.Card.ServerPort = d.Generator, d.ServerPort
	if d.Capture != "" {
		a.Card.Capture = func() (testbed.Frames, error) {
			return localHost{&a}.capture(ctx, live.Options{Interface: d.Capture, Stamps: d.Stamps, Promiscuous: true})
		}
	}
	s, err = testbed.ServeDevice(ctx, d.Address, testbed.ServeOptions{Listen: "unix:" + path, Device: testbed.DeviceOptions{Access: a}})
	if err != nil {
		return nil, nil, err
	}
	return s, func() error {
		err := s.Close()
		a.Generator, a.Card.Capture = "", nil
		if stopped := d.stopGenerators(ctx, &a); err == nil {
			err = stopped
		}
		_ = os.Remove(filepath.Dir(path)) // fails while other testbeds are up
		return err
	}, nil
}

// stopGenerators stops the generators of the device and of the one that feeds it.
func (d *LentDevice) stopGenerators(ctx context.Context, a *testbed.Access) error {
	for _, address := range []string{d.Generator, d.Address} {
		if address == "" {
			continue
		}
		if err := stopGenerator(ctx, address, a); err != nil {
			return fmt.Errorf("stop the generator of %s: %w", address, err)
		}
	}
	return nil
}
