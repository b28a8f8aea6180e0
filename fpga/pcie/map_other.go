//go:build !linux

package pcie

import "errors"

// errNoMap says that this operating system cannot map a BAR.
var errNoMap = errors.New("driving a card needs Linux")

func mapFile(string, int64, bool) (Window, error) { return nil, errNoMap }
