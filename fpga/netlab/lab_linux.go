package netlab

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
)

// ErrNetwork is the kind of everything that the kernel refuses of a network although the process has the rights.
var ErrNetwork = olaf.NewError(olaf.Device, "the kernel refuses the network")

// Lab is some namespaces and the cables between them. Its methods, and those of its nodes, may be called side by side.
type Lab struct{ nodes []*Node }

// New makes an empty lab. The error matches ErrRights, with a line for each right that is missing.
func New() (*Lab, error) {
	if err := Missing(NamespaceRights...); err != nil {
		return nil, err
	}
	return &Lab{}, nil
}

// Node makes a namespace in which nothing is but a loopback interface that is up. The name is for messages. It is not safe to
// be called side by side with itself.
func (l *Lab) Node(name string) (*Node, error) {
	n, err := newNode(name)
	if err != nil {
		return nil, err
	}
	l.nodes = append(l.nodes, n)
	return n, nil
}

// Enter takes part in a namespace that another process made and keeps, by its Path there. What is made inside stays with that
// process; what this one holds by descriptors, such as programs, ends with this one.
func (l *Lab) Enter(name, path string) (*Node, error) {
	n, err := enterNode(name, path)
	if err != nil {
		return nil, err
	}
	l.nodes = append(l.nodes, n)
	return n, nil
}

// Close ends programs that run in the lab's namespaces, and removes namespaces with all that is in them.
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
