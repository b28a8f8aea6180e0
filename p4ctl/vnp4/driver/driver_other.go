//go:build !linux || !(amd64 || arm64)

package driver

import "errors"

// Main fails: the vendor's driver exists for Linux only.
func Main() error { return errors.New("the vitisnetp4 driver runs on Linux only") }
