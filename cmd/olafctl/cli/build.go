package cli

import (
	"runtime"
	"runtime/debug"
	"time"
)

// Build is what the Go toolchain recorded about this binary.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Dirty    bool   `json:"dirty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Date is that of the commit, or the beginning of 1970 where none was recorded.
	Date time.Time `json:"-"`
}

// ThisBuild is (devel) where the toolchain recorded no version.
func ThisBuild() Build {
	b := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Unix(0, 0).UTC()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			if date, err := time.Parse(time.RFC3339, s.Value); err == nil {
				b.Date = date
			}
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		}
	}
	return b
}
