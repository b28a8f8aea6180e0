package testbedtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Links are those by which this process, and no other test beside it, keeps XDP programs on interfaces.
func Links() (ids []link.ID, err error) {
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

// Detach takes the programs of these names off all interfaces on which this process keeps them, as somebody else may do.
func Detach(names ...string) error {
	ids, err := Links()
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

// nameOf is the name of the program of a link.
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
