//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// perhapsClosed reports whether an output may have been closed when the process began. Go opens /dev/null for reading
// and writing in place of a closed output. Because some programs pass such a file on purpose, it is not an error.
func perhapsClosed(f *os.File) bool {
	var own, null unix.Stat_t
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return false
	}
	return unix.Fstat(int(f.Fd()), &own) == nil && unix.Stat(os.DevNull, &null) == nil &&
		own.Mode&unix.S_IFMT == unix.S_IFCHR && own.Rdev == null.Rdev
}
