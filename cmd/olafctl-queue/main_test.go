package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandLine checks exit codes and messages for invalid command lines and for --help.
func TestCommandLine(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		line, says string
		code       int
	}{
		{"--help", "folder for jobs and results", 0},
		{"--folder " + folder, "flag provided but not defined: -folder", 2},
		{"--store " + folder + " more", `unexpected argument "more"; --help lists`, 2},
		{"--listen 127.0.0.1:0", "name the folder for jobs and results with -store", 2},
		{"--store " + folder + " --listen 4222", "-listen 4222: use HOST:PORT", 1},
		{"--store " + folder + " --listen 127.0.0.1:x", "-listen 127.0.0.1:x: use HOST:PORT", 1},
		{"--store " + folder + " --token-file " + filepath.Join(folder, "none"), "none: no such file", 1},
	} {
		var out, said bytes.Buffer
		if code := begin(strings.Fields(c.line), strings.NewReader(""), &out, &said); code != c.code || strings.Count(said.String(), c.says) != 1 || out.Len() > 0 {
			t.Errorf("%s: %d, want %d; %q; %q, want %q", c.line, code, c.code, out.String(), said.String(), c.says)
		}
	}
}

// TestServesUntilItsInputEnds checks that a server prints its address and exits at the end of its input.
func TestServesUntilItsInputEnds(t *testing.T) {
	var out, said bytes.Buffer
	if code := begin([]string{"--store", t.TempDir(), "--listen", "127.0.0.1:0"}, strings.NewReader("ignored"), &out, &said); code != 0 || !strings.HasPrefix(out.String(), "127.0.0.1:") || said.Len() > 0 {
		t.Errorf("%d, %q, %q", code, out.String(), said.String())
	}
}
