//go:build !linux

package pcie

import "io"

type lock struct{}

func takeLock(string, string, bool) (*lock, error) { return nil, errNoMap }

func (*lock) release() error { return nil }

func findUsers(Bus, string) []string { return nil }

type guard struct{}

func (*Device) startGuard() error { return nil }

func (*guard) end() {}

// Guard returns an error, because cards can only be opened on Linux.
func Guard(Bus, string, io.Reader) error { return errNoMap }
