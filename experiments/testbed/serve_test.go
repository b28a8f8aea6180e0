package testbed

import (
	"path/filepath"
	"testing"
)

// A service that is closed before its goroutine came to serve has served to its end.
func TestCloseAtOnce(t *testing.T) {
	dir := t.TempDir()
	for range 50 {
		s, err := Serve(t.Context(), "twin:", ServeOptions{Listen: "unix:" + filepath.Join(dir, "s")})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
