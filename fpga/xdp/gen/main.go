// Command gen compiles the programs of fpga/xdp with bpf2go. It records the hashes of the sources, so that a test can
// detect outdated objects without a compiler.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// programs lists the names of the programs. For each NAME, bpf/NAME.c is compiled to NAME_bpfel.o, which NAME_bpfel.go
// embeds.
var programs = []string{"fanout", "fifo", "olaf", "xagg"}

// The compiler version is fixed, because other versions generate code that was not tested and measured.
const (
	compiler = "clang-14"
	stripper = "llvm-strip-14"
)

// flags are compiler flags that make the objects independent of the machine on which they are built.
var flags = []string{"-mcpu=v3", "-nostdinc", "-Wall", "-Werror"}

// recordFile is the file that lists the inputs from which the objects were built.
const recordFile = "objects.txt"

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("gen: ", err)
	}
}

func run() error {
	if err := compilePrograms(".", "."); err != nil {
		return err
	}
	version, err := compilerVersion()
	if err != nil {
		return err
	}
	record, err := buildRecord(".", version)
	if err != nil {
		return err
	}
	return renameio.WriteFile(recordFile, record, 0o644)
}

// compilerVersion returns the first line that the compiler prints for --version.
func compilerVersion() (string, error) {
	out, err := exec.Command(compiler, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w; it comes with Debian's package of that name", compiler, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}

// compilePrograms compiles all programs in the package folder room and writes the objects to the folder target.
func compilePrograms(room, target string) error {
	for _, name := range programs {
		args := []string{"tool", "bpf2go", "-cc", compiler, "-strip", stripper, "-target", "bpfel", "-tags", "linux",
			"-no-global-types", "-go-package", "xdp", "-output-dir", target, name, filepath.Join("bpf", name+".c"),
			"--"}
		cmd := exec.Command("go", append(args, flags...)...)
		cmd.Dir = room
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compile %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// buildRecord returns the record of the compiler version, the sources and the objects in the package.
func buildRecord(room, version string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "compiler %s\nflags %s\n", version, strings.Join(flags, " "))
	files, err := filepath.Glob(filepath.Join(room, "bpf", "*.[ch]"))
	if err != nil {
		return nil, err
	}
	for _, name := range programs {
		files = append(files, filepath.Join(room, name+"_bpfel.o"))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%x %s\n", sha256.Sum256(text), filepath.Base(file))
	}
	return b.Bytes(), nil
}
