package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build identifies the program that made a result. It contains everything about the program that can affect the result.
type Build struct {
	Commit  string `json:"commit,omitempty"`
	Modules string `json:"modules"` // SHA-256 over the versions and sums of all modules
	Go      string `json:"go"`
	Arch    string `json:"arch"`
	// Executable is the SHA-256 of the program file, if the commit does not identify it.
	Executable string `json:"executable,omitempty"`
}

// Hash returns the SHA-256 of all fields.
func (b Build) Hash() string {
	return hashBytes([]byte(strings.Join([]string{b.Commit, b.Modules, b.Go, b.Arch, b.Executable}, "\n")))
}

func hashBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// String returns a short name of the build for display.
func (b Build) String() string {
	const short = 12
	name := b.Commit[:min(short, len(b.Commit))]
	if b.Executable != "" {
		name = strings.TrimSpace(name + " changed " + b.Executable[:min(short, len(b.Executable))])
	}
	return fmt.Sprintf("%s %s %s", name, b.Go, b.Arch)
}

// ThisBuild returns the build of this process. executable is the path of its program file. The file is only read if the
// record of the toolchain does not identify it, because there is no commit or there are changes on top of the commit.
func ThisBuild(executable string) (Build, error) {
	b := Build{Go: runtime.Version(), Arch: runtime.GOARCH}
	modified := true
	modules := sha256.New()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			fmt.Fprintf(modules, "%s %s %s\n", m.Path, m.Version, m.Sum)
			if m.Replace != nil {
				fmt.Fprintf(modules, "=> %s %s %s\n", m.Replace.Path, m.Replace.Version, m.Replace.Sum)
			}
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				modified = s.Value != "false"
			}
		}
	}
	b.Modules = hex.EncodeToString(modules.Sum(nil))
	if b.Commit != "" && !modified {
		return b, nil
	}
	f, err := os.Open(executable)
	if err != nil {
		return b, fmt.Errorf("identify this program: %w", err)
	}
	defer f.Close() // the file is only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return b, fmt.Errorf("identify this program: %w", err)
	}
	b.Executable = hex.EncodeToString(h.Sum(nil))
	return b, nil
}
