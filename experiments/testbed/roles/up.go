package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/lockfile"
)

var (
	// ErrUnfit reports that a host in a testbed cannot have its role.
	ErrUnfit  = olaf.NewError(olaf.Device, "not ready")
	errClocks = olaf.NewError(olaf.Device, "the clocks differ")
)

// Fault returns the first fault of the examined hosts, or nil if there is none. If forRun is set, a reason to withhold
// ages is not a fault.
func Fault(all []Examination, forRun bool) error {
	for i := range all {
		e := &all[i]
		for _, fault := range e.Faults {
			if !forRun || !strings.HasSuffix(fault, "ages will be withheld") {
				return fmt.Errorf("host %s: %w: %s", e.Name, ErrUnfit, fault)
			}
		}
		if e.Build != all[0].Build {
			return fmt.Errorf("host %s: %w: it runs another build of olafctl than host %s", e.Name, ErrUnfit, all[0].Name)
		}
	}
	return nil
}

// upFile returns the path of the file with the plan of a testbed that is up. It is in a folder that only this user can
// access. The error matches ErrAbsent if there is no such folder.
func upFile(name string) (string, error) {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("olafctl-%d-testbeds", os.Getuid()))
	info, err := os.Lstat(folder)
	switch {
	case !lab.IsTestbedName(name) || errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %s; 'olafctl testbed up FILE' brings one up, and testbed:FILE reads a file", lab.ErrAbsent, name)
	case err == nil && (!info.IsDir() || info.Mode().Perm() != 0o700 || !lockfile.Own(info)):
		err = fmt.Errorf("%w: %s is not a folder of this user's alone", lab.ErrHolder, folder)
	}
	return filepath.Join(folder, name+".json"), err
}

// makeUpFolder returns the same path as upFile. If there is no folder, it is created.
func makeUpFolder(name string) (path string, err error) {
	path, err = upFile(name)
	if errors.Is(err, lab.ErrAbsent) {
		if err = os.Mkdir(filepath.Dir(path), 0o700); errors.Is(err, fs.ErrExist) { // another process created it
			_, err = upFile(name)
		}
	}
	return path, err
}

// rememberUp stores the plan of a testbed that is up.
func rememberUp(p *Plan) error {
	path, err := makeUpFolder(p.Name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// forgetUp removes the plan of a testbed that was up.
func forgetUp(name string) error {
	path, err := upFile(name)
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", lab.ErrAbsent, name)
	}
	if old, absent := errorFile(name); absent == nil {
		_ = os.Remove(old) // there may be no old file
	}
	_ = os.Remove(filepath.Dir(path)) // fails while other testbeds are up
	return err
}

// loadUp returns the stored plan of a testbed that is up. The error matches ErrAbsent if the testbed is not up.
func loadUp(name string) (*Plan, error) {
	path, err := upFile(name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; 'olafctl testbed up FILE' brings one up, and testbed:FILE reads a file", lab.ErrAbsent, name)
	}
	p := new(Plan)
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err == nil && p.Queue == nil && p.Nodes == nil {
		err = errors.New("it has no queue")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", lab.ErrHolder, path, err)
	}
	p.isUp = true
	return p, nil
}

// BringUp sets up a testbed with roles. It examines all hosts, reserves them for the given time, starts a holder on
// each, which opens its devices, sends probe frames over the links, and stores the plan under the testbed's name. A
// testbed that is already up is examined and reserved again, and missing holders are started. If BringUp fails, it
// leaves reservations and holders as they were.
func BringUp(ctx context.Context, p *Plan, note string, lasts time.Duration, a testbed.Access) (all []Examination, links []LinkCheck,
	err error) {
	there, err := loadUp(p.Name)
	if err == nil && !isSamePlan(there, p) {
		return nil, nil, fmt.Errorf("%w and differs: %s; 'olafctl testbed down %[2]s' first, or give the file another name", lab.ErrExists, p.Name)
	}
	if err != nil && !errors.Is(err, lab.ErrAbsent) {
		return nil, nil, err
	}
	s, err := ConnectHosts(ctx, p, a)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if all, err = s.Examine(ctx, 0); err != nil {
		return nil, nil, err
	}
	if err := Fault(all, true); err != nil {
		return all, nil, err
	}
	held, err := s.readStates(ctx)
	if err != nil {
		return all, nil, err
	}
	probe := func(ctx context.Context, _ string, _ time.Duration) (undo undoing, err error) {
		links, err = s.requireLinks(ctx, all)
		return func(context.Context) error { return nil }, err
	}
	steps := []setupStep{s.reserve, s.hold, probe} // the devices are opened first, because they may be in use
	if p.Nodes != nil {
		steps = []setupStep{s.reserve, probe, s.hold} // holders move the ends of cables into namespaces
		if slices.ContainsFunc(held, func(part *lab.State) bool { return part != nil }) {
			steps = []setupStep{s.reserve, s.hold}
		}
	}
	if err = s.bringUp(ctx, note, lasts, steps); err == nil {
		for i := range all { // examined before
			all[i].Holder = &testbed.Reservation{Testbed: p.Name, Owner: s.access.OwnerName(), Left: lasts}
		}
	}
	return all, links, err
}

// setupStep is one step of setting up a testbed. undo undoes the step.
type setupStep func(ctx context.Context, note string, lasts time.Duration) (undo undoing, err error)

// bringUp takes the steps and stores the plan. If a step fails, it undoes the steps before.
func (s *Hosts) bringUp(ctx context.Context, note string, lasts time.Duration, steps []setupStep) (err error) {
	var undos []undoing
	defer func() {
		for _, undo := range slices.Backward(undos) {
			if err != nil {
				err = errors.Join(err, undo(context.WithoutCancel(ctx)))
			}
		}
	}()
	for _, step := range steps {
		undo, err := step(ctx, note, lasts)
		if err != nil {
			return err
		}
		undos = append(undos, undo)
	}
	return rememberUp(s.plan)
}

// isSamePlan reports whether two plans are equal in every field.
func isSamePlan(a, b *Plan) bool {
	left, err := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(left, right)
}

// TakeDown removes a testbed with roles. It ends the holders, stops the generators, ends the reservations, and deletes
// the stored plan. If a host cannot be reached, the other hosts are still released. The error names the unreachable
// host, and the plan remains stored, so that TakeDown can be called again. A testbed of another user is only removed if
// force is set; otherwise the error matches ErrReserved.
func TakeDown(ctx context.Context, p *Plan, a testbed.Access, force bool) error {
	s, unreached := connectReachable(ctx, p, a)
	if err := s.checkOwner(ctx, force); err != nil {
		return errors.Join(err, s.Close())
	}
	left := s.letGo(ctx)
	rested := s.rest(ctx)         // of a holder that was killed
	_, released := s.release(ctx) // reservations of a holder that was killed
	if err := errors.Join(unreached, rested, left, released, s.Close()); err != nil {
		return err
	}
	return forgetUp(p.Name)
}

// checkOwner returns an error that matches ErrReserved if another user has brought up or reserved the testbed. With force
// it ends such reservations instead.
func (s *Hosts) checkOwner(ctx context.Context, force bool) error {
	return s.each(func(i int) error {
		if s.links[i] == nil {
			return nil
		}
		all, err := s.links[i].Reservations(ctx)
		if err != nil {
			return err
		}
		for k := range all {
			r := &all[k]
			switch isTheirs := r.Testbed == s.plan.Name && r.Host == s.plan.Hosts[i].Name && r.Owner != s.access.OwnerName(); {
			case isTheirs && force:
				if _, err := s.links[i].Release(ctx, r.Testbed, r.Host, r.Owner); err != nil {
					return err
				}
			case isTheirs:
				return fmt.Errorf("%w by %s for testbed %s until %s; ask them, or use --force", testbed.ErrReserved, r.Owner, r.Testbed,
					testbed.FormatNear(time.Now().Add(r.Left), time.Now()))
			}
		}
		return nil
	})
}

// ExamineHosts examines the hosts of a testbed and, if they can have their roles, sends probe frames over its links.
func ExamineHosts(ctx context.Context, p *Plan, a testbed.Access) (all []Examination, links []LinkCheck, err error) {
	s, err := ConnectHosts(ctx, p, a)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if all, err = s.Examine(ctx, 0); err != nil {
		return nil, nil, err
	}
	if Fault(all, true) == nil {
		links = s.CheckLinks(ctx, all)
	}
	return all, links, ctx.Err()
}

// LinkFault returns an error for the first link that cannot be used, or nil if all links can. The error matches
// ErrUnfit.
func LinkFault(links []LinkCheck) error {
	for i := range links {
		if links[i].Fault != "" {
			return links[i].err()
		}
	}
	return nil
}

// DescribeHosts examines the hosts of a testbed and, if it is up, their holders.
func DescribeHosts(ctx context.Context, p *Plan, isUp bool, a testbed.Access) (all []Examination, err error) {
	s, err := ConnectHosts(ctx, p, a)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if all, err = s.Examine(ctx, 0); err != nil || !isUp {
		return all, err
	}
	held, err := s.readStates(ctx)
	if err != nil {
		return nil, err
	}
	for i, part := range held {
		if part == nil {
			all[i].Faults = append(all[i].Faults, p.missingHolder())
			continue
		}
		all[i].Testbed = part
		all[i].Faults = append(all[i].Faults, part.Faults...)
	}
	return all, nil
}

// rest stops the generators of all cards on connected hosts, and waits until they are idle.
func (s *Hosts) rest(ctx context.Context) error {
	var errs []error
	for _, role := range []*Role{s.plan.Generator, s.plan.Queue} {
		if role == nil || role.Device == "" || !s.isConnected(role.Host) {
			continue
		}
		lasts, err := s.access.IsLasting(role.Device)
		if err == nil && lasts {
			err = abortGenerator(ctx, s.plan.HostOf(role.Host).Address(role.Device), &s.access)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("host %s: stop the generator: %w", role.Host, err))
		}
	}
	return errors.Join(errs...)
}

// stopGenerator stops the generator of a card on its host. Devices that are created when they are opened have no
// generator that is still running.
func stopGenerator(ctx context.Context, address string, a *testbed.Access) error {
	if lasts, err := a.IsLasting(address); err != nil || !lasts {
		return err
	}
	return abortGenerator(ctx, address, a)
}

func abortGenerator(ctx context.Context, address string, a *testbed.Access) error {
	d, err := testbed.OpenDevice(ctx, address, testbed.DeviceOptions{Access: *a})
	if err != nil {
		return err
	}
	return errors.Join(d.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort), d.Close())
}
