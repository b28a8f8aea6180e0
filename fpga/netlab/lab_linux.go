package netlab

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
)

// ErrNetwork is the error for a network operation that the kernel rejects although the process has the necessary
// rights.
var ErrNetwork = olaf.NewError(olaf.Device, "the kernel refuses the network")

// Lab is a set of namespaces and the cables between them. Methods of a lab and of its nodes may be called concurrently.
type Lab struct{ nodes []*Node }

// New returns an empty lab. If rights are missing, the error matches ErrRights and lists them.
func New() (*Lab, error) {
	if err := CheckRights(NamespaceRights...); err != nil {
		return nil, err
	}
	return &Lab{}, nil
}

// Node creates a namespace with only a loopback interface. The name is used in messages. Node must not be called
// concurrently with itself.
func (l *Lab) Node(name string) (*Node, error) {
	n, err := newNode(name)
	if err != nil {
		return nil, err
	}
	l.nodes = append(l.nodes, n)
	return n, nil
}

// Enter joins a namespace that another process created; path is the Path of its node. Objects created in the namespace
// remain after this process ends, except for those that belong to descriptors of this process, such as programs.
func (l *Lab) Enter(name, path string) (*Node, error) {
	n, err := enterNode(name, path)
	if err != nil {
		return nil, err
	}
	l.nodes = append(l.nodes, n)
	return n, nil
}

// Close kills all programs in the lab's namespaces and removes the namespaces.
func (l *Lab) Close() error {
	var errs []error
	for i := len(l.nodes) - 1; i >= 0; i-- {
		if err := l.nodes[i].close(); err != nil {
			errs = append(errs, fmt.Errorf("remove the namespace of %s: %w", l.nodes[i].name, err))
		}
	}
	l.nodes = nil
	return errors.Join(errs...)
}
