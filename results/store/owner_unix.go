//go:build unix

package store

import (
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"syscall"
)

// ownerOf returns the user id and the number of hard links of a file. known is false if the file system has no owners.
func ownerOf(about fs.FileInfo) (uid, names int, known bool) {
	stat, known := about.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Nlink), true
}

// userName returns the name of a user, or the user id as text if there is no name.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("user %d", uid)
}
