//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// perhapsClosed reports whether an output may have been closed when the process began. Go replaces such a file by
// /dev/null, opened for reading and writing. Some programs do that to others on purpose, so this is not an error.
func perhapsClosed(f *os.File) bool {
	var own, null unix.Stat_t
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return false
	}
	return unix.Fstat(int(f.Fd()), &own) == nil && unix.Stat(os.DevNull, &null) == nil &&
		own.Mode&unix.S_IFMT == unix.S_IFCHR && own.Rdev == null.Rdev
}
