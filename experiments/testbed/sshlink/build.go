package sshlink

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// Build identifies a build of this program.
type Build struct {
	Hash     string // hash of its code, as hexadecimal digits
	Version  string // includes the commit
	Platform string // such as linux/amd64
}

// ReadBuild identifies the program in a file. version is the program's version, which the caller must know. The hash is
// the hash in the Go toolchain's build ID, which depends on all of the program's code. If the file has no build ID, the
// whole file is hashed.
func ReadBuild(path, version string) (Build, error) {
	b := Build{Version: strings.Join(strings.Fields(version), "_"), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	file, err := os.Open(path)
	if err != nil {
		return b, fmt.Errorf("identify this program's build: %w", err)
	}
	defer file.Close()
	sum := sha256.New()
	if id := readBuildID(file); len(id) > 0 {
		sum.Write(id)
	} else if _, err := io.Copy(sum, io.NewSectionReader(file, 0, 1<<40)); err != nil {
		return b, fmt.Errorf("identify this program's build: %w", err)
	}
	b.Hash = hex.EncodeToString(sum.Sum(nil)[:16])
	return b, nil
}

// readBuildID returns the build ID that Go's linker wrote into an ELF file, or nil if there is none.
func readBuildID(file io.ReaderAt) []byte {
	const header = 16 // header of the note: sizes, type, and "Go"
	binary, err := elf.NewFile(file)
	if err != nil {
		return nil
	}
	note := binary.Section(".note.go.buildid")
	if note == nil {
		return nil
	}
	data, err := note.Data()
	if err != nil || len(data) <= header {
		return nil
	}
	return data[header:]
}

// matches reports whether an agent with the build other can serve this build. Both must have the same code, or the same
// commit for different platforms.
func (b Build) matches(other Build) bool {
	if b.Platform != other.Platform {
		return b.Version == other.Version
	}
	return b.Hash == other.Hash
}

// machines maps the output of uname -m to values of GOARCH.
var machines = map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm",
	"i686": "386", "riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x", "loongarch64": "loong64"}

// platformOf returns Go's name for the platform of a host, given the output of uname -s and uname -m.
func platformOf(system, machine string) string {
	arch, known := machines[machine]
	if !known {
		arch = machine
	}
	return strings.ToLower(system) + "/" + arch
}
