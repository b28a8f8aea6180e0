package pcie

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestRegisterAccessIsOneMove checks the compiler's code for a register access on amd64. A locked instruction or an
// exchange would read the register before writing it, which neither a mapped file nor a fake card can show.
func TestRegisterAccessIsOneMove(t *testing.T) {
	object := filepath.Join(t.TempDir(), "pcie.a")
	build := exec.Command("go", "build", "-o", object, ".")
	build.Env = append(os.Environ(), "GOARCH=amd64", "GOOS=linux", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the package for amd64: %v\n%s", err, text)
	}
	code := func(functions string) string {
		text, err := exec.Command("go", "tool", "objdump", "-s", `pcie\.`+functions, object).CombinedOutput()
		if err != nil {
			t.Fatalf("disassemble %s: %v\n%s", functions, err, text)
		}
		return string(text)
	}
	for _, c := range []struct{ function, move string }{
		{"load32", `MOVL 0\(\w+\), \w+\b`}, {"store32", `MOVL \w+, 0\(\w+\)`},
	} {
		text := code(c.function + "$")
		if n := len(regexp.MustCompile(c.move).FindAllString(text, -1)); n != 1 {
			t.Errorf("%s has %d moves of 32 bits to or from the register, want 1:\n%s", c.function, n, text)
		}
		operands := regexp.MustCompile(`(?m)^TEXT.*$`).ReplaceAllString(text, "")
		if touches := regexp.MustCompile(`\(\w+\)`).FindAllString(operands, -1); len(touches) != 1 {
			t.Errorf("%s touches memory %d times, want once:\n%s", c.function, len(touches), text)
		}
	}
	mapping := code(`\(\*mapping\)`)
	if !regexp.MustCompile(`CALL.*load32`).MatchString(mapping) || !regexp.MustCompile(`CALL.*store32`).MatchString(mapping) {
		t.Error("the mapping's methods do not call load32 and store32")
	}
	if found := regexp.MustCompile(`.*\b(LOCK|XCHG\w*.*\(|CMPXCHG|XADD).*`).FindAllString(mapping, -1); found != nil {
		t.Errorf("the mapping has locked instructions: %q", found)
	}
}
