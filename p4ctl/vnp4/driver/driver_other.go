//go:build !linux || !(amd64 || arm64)

package driver

import "errors"

// Main returns an error, because the vendor's driver exists only for Linux.
func Main() error { return errors.New("the vitisnetp4 driver runs on Linux only") }
