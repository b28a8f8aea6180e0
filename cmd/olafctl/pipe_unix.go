//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// perhapsClosed says that an output may have been closed when the process began. Go puts /dev/null, opened for reading and
// writing, in the place of such files before a program's first line; some programs start others with the same, so that it
// can't be called a failure.
func perhapsClosed(f *os.File) bool {
	var own, null unix.Stat_t
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return false
	}
	return unix.Fstat(int(f.Fd()), &own) == nil && unix.Stat(os.DevNull, &null) == nil && own.Mode&unix.S_IFMT == unix.S_IFCHR && own.Rdev == null.Rdev
}
