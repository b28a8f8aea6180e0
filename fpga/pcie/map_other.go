//go:build !linux

package pcie

func mapFile(string, int64, bool) (Window, error) { return nil, errNoMap }
