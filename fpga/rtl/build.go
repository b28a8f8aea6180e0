package rtl

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/lockfile"
)

//go:generate go run ./gen

// sources contains all files to compile, except for the header with the register map.
//
//go:embed sv/*.sv sim/harness.cpp sim/olaf_sim.sv sim/lint.vlt
var sources embed.FS

var (
	// ErrTools is returned if a program needed for building the simulation is missing.
	ErrTools = olaf.NewError(olaf.Device, "a tool is missing")
	// ErrBuild is returned if the simulation could not be built.
	ErrBuild = olaf.NewError(olaf.Failed, "the RTL can't be built")
	// ErrSize is the error for a size that the logic does not support.
	ErrSize = olaf.NewError(olaf.Usage, "the RTL is not built in that size")
)

// Build describes the size of the logic. A field that is 0 selects the default.
type Build struct {
	Slots       int // capacity in updates, 1 … 4,096; default 64
	Clusters    int // 1 … 65,536; default 1,024
	FrameBytes  int // longest frame, 64 … 9,600; default 9,036
	Ports       int // read ports of the gradient memory, 1 or 2; default 2
	Descriptors int // descriptors in the generator, 1 … 2^20; default 32,768
	Flows       int // flows in the generator, 1 … 65,536; default 1,024
}

// templates is the number of templates in the generator. The first template is built in.
const templates = 16

// sizes describes the fields of a Build. Each has a name for addresses, an RTL parameter, a range and a default.
var sizes = []struct {
	word, parameter  string
	low, high, usual int
	of               func(*Build) *int
}{
	{"slots", "SLOTS", 1, 4096, 64, func(b *Build) *int { return &b.Slots }},
	{"clusters", "CLUSTERS", 1, 1 << 16, 1024, func(b *Build) *int { return &b.Clusters }},
	{"frame", "MAX_BYTES", 64, 9600, int(olaf.MaxFrame), func(b *Build) *int { return &b.FrameBytes }},
	{"ports", "PORTS", 1, 2, 2, func(b *Build) *int { return &b.Ports }},
	{"descriptors", "DESCRIPTORS", 1, 1 << 20, 1 << 15, func(b *Build) *int { return &b.Descriptors }},
	{"flows", "FLOWS", 1, 1 << 16, 1024, func(b *Build) *int { return &b.Flows }},
}

// ParseBuild parses the sizes in a device address, such as ports=1,slots=8. An empty text selects the defaults. The
// error matches ErrSize.
func ParseBuild(text string) (Build, error) {
	var b Build
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		word, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		if err != nil || b.sizeField(word) == nil {
			return b, fmt.Errorf("%w: %q; write sizes as in rtl:ports=1,slots=8; there are %s", ErrSize, part,
				sizeWords())
		}
		if n == 0 { // 0 would select the default
			return b, fmt.Errorf("%w: %s is 0; leave it out for the usual size", ErrSize, word)
		}
		*b.sizeField(word) = n
	}
	b.setDefaults()
	return b, b.Validate()
}

func (b *Build) sizeField(word string) *int {
	for i := range sizes {
		if sizes[i].word == word {
			return sizes[i].of(b)
		}
	}
	return nil
}

func sizeWords() string {
	words := make([]string, len(sizes))
	for i, s := range sizes {
		words[i] = s.word
	}
	return strings.Join(words, ", ")
}

func (b *Build) setDefaults() {
	for _, s := range sizes {
		*s.of(b) = cmp.Or(*s.of(b), s.usual)
	}
}

// Validate returns an error for the first size that is out of range. The error matches ErrSize.
func (b *Build) Validate() error {
	for _, s := range sizes {
		if n := *s.of(b); n < s.low || n > s.high {
			return fmt.Errorf("%w: %s is %d; it must be %d to %d", ErrSize, s.word, n, s.low, s.high)
		}
	}
	return nil
}

// addressName returns the part of a device address that follows the scheme, which lists the sizes that differ from the
// default.
func (b *Build) addressName() string {
	var parts []string
	for _, s := range sizes {
		if n := *s.of(b); n != s.usual {
			parts = append(parts, fmt.Sprintf("%s=%d", s.word, n))
		}
	}
	return strings.Join(parts, ",")
}

// The clock edge in the logic, and its replacement in the simulation. The simulation treats every change of clk as a
// clock edge, because evaluating the other edge would take time without effect.
const (
	clocked      = "@(posedge clk)"
	clockedTwice = "@(edge clk)"
)

// listSources returns the names of all sources in the order in which they are compiled, and their contents. Packages
// come first.
func listSources() (names []string, content map[string][]byte) {
	content = map[string][]byte{"olaf_regs.sv": regmap.Verilog}
	err := fs.WalkDir(sources, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(p)
		content[path.Base(p)] = bytes.ReplaceAll(text, []byte(clocked), []byte(clockedTwice))
		return err
	})
	if err != nil {
		panic(err) // the files are embedded, so reading them cannot fail
	}
	names = []string{"lint.vlt", "olaf_pkg.sv", "olaf_regs.sv"}
	err = fs.WalkDir(sources, "sv", func(p string, d fs.DirEntry, err error) error {
		if name := path.Base(p); err == nil && !d.IsDir() && name != "olaf_pkg.sv" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	return append(names, "olaf_sim.sv", "harness.cpp"), content
}

// sourcesHash is the SHA-256 hash of all sources. Its first 32 bits are in register common.build_hash.
var sourcesHash = sync.OnceValue(func() string {
	names, content := listSources()
	h := sha256.New()
	for _, name := range names {
		fmt.Fprintf(h, "%s %d\n", name, len(content[name]))
		h.Write(content[name])
	}
	return hex.EncodeToString(h.Sum(nil))
})

const (
	programName = "olaf-rtl"
	makefile    = "V" + topName + ".mk"
	topName     = "olaf_sim"
	buildTime   = 15 * time.Minute // maximum duration
)

// flags are the command-line flags for Verilator. Signals start with the value that is cheapest to simulate, because
// all relevant signals are reset.
var flags = []string{
	"--cc", "--exe", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--top-module", topName, "-Mdir",
	"build", "-o", programName,
}

// verilatorArgs returns the command-line arguments with which Verilator compiles this build.
func (b *Build) verilatorArgs() []string {
	names, _ := listSources()
	args := slices.Clone(flags)
	for _, s := range sizes {
		args = append(args, fmt.Sprintf("-G%s=%d", s.parameter, *s.of(b)))
	}
	return append(append(args, fmt.Sprintf("-GBUILD_HASH=32'h%s", sourcesHash()[:8])), names...)
}

// findProgram returns the path of the simulation program for this build. It builds the program if the cache does not
// contain it. The cache key is a hash of sources, sizes and compilers, so that an outdated program is never used.
func (c *Config) findProgram(ctx context.Context) (string, error) {
	tools, err := findCompilers()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(strings.Join(append([]string{sourcesHash(), tools, optimize, profiled, trainingKey()},
		c.Build.verilatorArgs()...), "\n")))
	folder := c.Cache
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w: there is no folder for it: %w", ErrBuild, err)
		}
		folder = filepath.Join(user, "olafctl", "rtl")
	}
	program := filepath.Join(folder, hex.EncodeToString(key[:16]))
	if isUsable(program) {
		return program, nil
	}
	if err := c.buildProgram(ctx, folder, program); err != nil {
		return "", fmt.Errorf("%w: %w", ErrBuild, err)
	}
	return program, nil
}

// isUsable reports whether the program exists and was built completely.
func isUsable(program string) bool {
	info, err := os.Stat(program)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o100 != 0 && info.Size() > 0
}

// findCompilers returns a text that identifies the build tools by their paths, sizes and modification times, which can
// be determined quickly. The error matches ErrTools.
func findCompilers() (string, error) {
	var all strings.Builder
	for _, tool := range []string{"verilator", "make", "c++"} {
		at, err := exec.LookPath(tool)
		if err != nil {
			return "", fmt.Errorf("%w: %s, which builds the RTL's simulation; install verilator and a C++ compiler, or use the twin", ErrTools, tool)
		}
		if at, err = filepath.EvalSymlinks(at); err != nil {
			return "", fmt.Errorf("%w: %w", ErrTools, err)
		}
		info, err := os.Stat(at)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrTools, err)
		}
		fmt.Fprintf(&all, "%s %d %d\n", at, info.Size(), info.ModTime().UnixNano())
	}
	return all.String(), nil
}

// lockStep is the interval at which a build by another process is polled.
const lockStep = 100 * time.Millisecond

// buildProgram builds the program in a temporary folder and moves it to its place. If several processes need the
// program, only one of them builds it.
func (c *Config) buildProgram(ctx context.Context, folder, program string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	lock, err := waitFor(ctx, filepath.Join(folder, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if isUsable(program) { // another process has built the program meanwhile
		return nil
	}
	if c.Building != nil {
		c.Building()
	}
	left, _ := filepath.Glob(filepath.Join(folder, "build-*")) // left by killed processes, since we have the lock
	for _, old := range left {
		_ = os.RemoveAll(old)
	}
	work, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	_, content := listSources()
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o644); err != nil {
			return err
		}
	}
	if err := runTool(ctx, work, "verilator", c.Build.verilatorArgs()...); err != nil {
		return err
	}
	built, err := c.compileTwice(ctx, filepath.Join(work, "build"))
	if err != nil {
		return err
	}
	return os.Rename(built, program)
}

// Compiler flags for the code that runs in every clock, and for the second build, which uses a profile.
const (
	optimize = "-O2 -fno-strict-aliasing"
	profiled = "-fprofile-use -fprofile-partial-training -Wno-missing-profile"
)

// compileTwice builds the program twice. The second build uses a profile of the first under a saturating stream, which
// makes the program a third faster. If the compiler does not write a profile, the second build is made without it.
func (c *Config) compileTwice(ctx context.Context, folder string) (program string, err error) {
	program = filepath.Join(folder, programName)
	build := func(how string) error {
		return runTool(ctx, folder, "make", "-s", "-j", strconv.Itoa(runtime.GOMAXPROCS(0)), "-f", makefile, "CXX=c++",
			"LINK=c++",
			"OPT_FAST="+optimize+" "+how, "OPT_GLOBAL=-O2 "+how, "OPT_SLOW=-O0", "LDFLAGS="+how)
	}
	if err := build("-fprofile-generate"); err != nil {
		return "", err
	}
	if err := c.trainProgram(ctx, program); err != nil {
		return "", err
	}
	how := profiled
	if notes, _ := filepath.Glob(filepath.Join(folder, "*.gcda")); len(notes) == 0 {
		how = ""
	}
	for _, pattern := range []string{"*.o", "*.a", programName} {
		old, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, file := range old {
			if err := os.Remove(file); err != nil {
				return "", err
			}
		}
	}
	return program, build(how)
}

// runTool runs a program in a folder. The error includes the first error line of its output.
func runTool(ctx context.Context, folder, tool string, args ...string) error {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir, cmd.WaitDelay = folder, time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", tool, err, firstError(output.String()))
	}
	return nil
}

func waitFor(ctx context.Context, path string) (*os.File, error) {
	for {
		lock, err := lockfile.Take(path, 0o644)
		if !errors.Is(err, lockfile.ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process builds: %w", ctx.Err())
		case <-time.After(lockStep):
		}
	}
}

// firstError returns the first line with an error in a compiler's output.
func firstError(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, line := range lines {
		if strings.Contains(line, "rror") {
			return line
		}
	}
	return lines[len(lines)-1]
}
