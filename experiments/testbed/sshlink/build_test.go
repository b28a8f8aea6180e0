package sshlink

import (
	"errors"
	"strings"
	"testing"
)

// TestOtherArchitecture checks that a program is not copied to a host with another architecture, and that the message
// has the command that builds it.
func TestOtherArchitecture(t *testing.T) {
	at, _, err := Parse("ssh://lab@far/")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{build: Build{Platform: "linux/amd64"}, MayCopy: nil}
	err = o.copyTo(t.Context(), at, &otherBuild{platform: platformOf("Linux", "aarch64")})
	const want = "lab@far has no olafctl, and is linux/arm64 where this one is built for linux/amd64; run 'GOOS=linux GOARCH=arm64 go build"
	if !errors.Is(err, ErrBuild) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want one line with %q", err, want)
	}
}
