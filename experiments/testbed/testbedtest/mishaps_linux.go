package testbedtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// OwnLinks returns the links by which this process has attached XDP programs to interfaces. Links of parallel tests are
// not included.
func OwnLinks() (ids []link.ID, err error) {
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil { // closed meanwhile
			continue
		}
		for line := range strings.Lines(string(text)) {
			if id, ok := strings.CutPrefix(line, "link_id:"); ok {
				n, err := strconv.ParseUint(strings.TrimSpace(id), 10, 32)
				if err != nil {
					return nil, err
				}
				ids = append(ids, link.ID(n))
			}
		}
	}
	return ids, nil
}

// DetachPrograms detaches the named programs of this process from all interfaces, like another process could do.
func DetachPrograms(names ...string) error {
	ids, err := OwnLinks()
	found := false
	for _, id := range ids {
		l, why := link.NewFromID(id)
		if why != nil {
			return why
		}
		name, why := nameOf(l)
		if why == nil && slices.Contains(names, name) {
			found, why = true, l.Detach()
		}
		err = errors.Join(err, why, l.Close())
	}
	if err == nil && !found {
		err = fmt.Errorf("no program %s is on", strings.Join(names, " or "))
	}
	return err
}

// nameOf returns the name of the program that a link attaches.
func nameOf(l link.Link) (string, error) {
	i, err := l.Info()
	if err != nil {
		return "", err
	}
	p, err := ebpf.NewProgramFromID(i.Program)
	if err != nil {
		return "", err
	}
	defer p.Close()
	n, err := p.Info()
	if err != nil {
		return "", err
	}
	return n.Name, nil
}

// OwnNamespaces returns the network namespaces that this process has open.
func OwnNamespaces() (paths []string, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		path := "/proc/self/fd/" + e.Name()
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, "net:") {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// DoAtInterface calls do for the interface with the given name in any of the namespaces that this process has open.
func DoAtInterface(name string, do func(netlink.Link) error) error {
	paths, err := OwnNamespaces()
	for _, path := range paths {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked, so that the thread ends
			done <- doInside(path, name, do)
		}()
		if err := <-done; !errors.As(err, new(netlink.LinkNotFoundError)) {
			return err
		}
	}
	return errors.Join(err, fmt.Errorf("no interface is called %s", name))
}

// doInside calls do within a namespace. The calling thread stays in that namespace.
func doInside(path, name string, do func(netlink.Link) error) error {
	ns, err := os.Open(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return do(l)
}
