package pcivm

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/internal/lockfile"
	"github.com/olafctl/olaf/internal/peer"
)

// kernelPackage depends on the newest kernel of its kind. Its drivers for what QEMU emulates are built in, or modules.
const kernelPackage = "linux-image-cloud-amd64"

// modules are what cases load, by the names of their files without .ko.
var modules = []string{
	"uio", "uio_pci_generic", "uio_cif",
	"irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci",
	"failover", "net_failover", "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_net",
}

// findKernel returns the folder of an unpacked kernel package. It downloads the newest one that apt-get serves, once.
var findKernel = sync.OnceValues(func() (string, error) {
	text, err := output("apt-cache", "depends", kernelPackage)
	if err != nil {
		return "", err
	}
	name := regexp.MustCompile(`linux-image-[0-9][^ \n]*`).FindString(text)
	if name == "" {
		return "", fmt.Errorf("%s depends on no kernel; apt-get update", kernelPackage)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "olafctl", "kernels")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lock, err := lockfile.Open(filepath.Join(cache, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, download(name, dir)
})

// download fetches a package and unpacks it into dir, which appears whole or not at all.
func download(name, dir string) error {
	work, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	fetch := exec.Command("apt-get", "download", name)
	fetch.Dir = work
	if text, err := fetch.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get download %s: %w: %s", name, err, text)
	}
	files, _ := filepath.Glob(filepath.Join(work, "*.deb"))
	if len(files) != 1 {
		return fmt.Errorf("apt-get download %s: %d files", name, len(files))
	}
	if _, err := output("dpkg-deb", "-x", files[0], filepath.Join(work, "unpacked")); err != nil {
		return err
	}
	return os.Rename(filepath.Join(work, "unpacked"), dir)
}

// needKernel returns the kernel's image and the paths of its modules by name, or skips the test.
func needKernel(t *testing.T) (image string, found map[string]string) {
	t.Helper()
	peer.Need(t, "qemu-system-x86_64")
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		peer.Need(t, program)
	}
	dir, err := findKernel()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("without Debian's kernel: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	images, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	if len(images) != 1 {
		t.Fatalf("%s has %d kernels; delete it", dir, len(images))
	}
	found = map[string]string{}
	err = filepath.WalkDir(filepath.Join(dir, "lib", "modules"), func(path string, _ os.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			found[name] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return images[0], found
}

var built = flag.String("built", "", "folder to build the guests' programs in, and to take those from that are there")

// buildFolder returns the folder of the guests' programs.
var buildFolder = sync.OnceValues(func() (string, error) {
	if *built != "" {
		return *built, os.MkdirAll(*built, 0o755)
	}
	dir, err := os.MkdirTemp("", "olafctl-pcivm-")
	cleanups = append(cleanups, func() { _ = os.RemoveAll(dir) })
	return dir, err
})

// buildProgram builds a program for guests, unless it is there.
func buildProgram(path, source string, tags ...string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	build := exec.Command("go", append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", path}, append(tags, source)...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", source, err, text)
	}
	return nil
}

// buildPrograms builds the programs of all guests, and returns them by their names in the guest.
var buildPrograms = sync.OnceValues(func() (map[string]string, error) {
	dir, err := buildFolder()
	p := map[string]string{"init": filepath.Join(dir, "init"), "bin/olafctl": filepath.Join(dir, "olafctl")}
	return p, errors.Join(err, buildProgram(p["init"], "./guest"), buildProgram(p["bin/olafctl"], "../../../cmd/olafctl"))
})

// standInSymbol is the configuration that the stand-in for AMD's driver exports.
const standInSymbol = ":XilVitisNetP4TargetConfig_standin"

// driverFlags name the stand-in drivers of the guest.
const driverFlags = "--vnp4-1 /lib/driver1.so" + standInSymbol + " --vnp4-2 /lib/driver2.so" + standInSymbol

// buildDriver builds olafctl with the driver for the card's tables, and two stand-ins for AMD's library. They come with the
// C library that they need.
var buildDriver = sync.OnceValues(func() (map[string]string, error) {
	dir, err := buildFolder()
	if err != nil {
		return nil, err
	}
	p := map[string]string{"bin/olafctl": filepath.Join(dir, "olafctl-vnp4")}
	err = buildProgram(p["bin/olafctl"], "../../../cmd/olafctl", "-tags", "vnp4")
	for _, name := range []string{"driver1.so", "driver2.so"} { // one shared object has one set of tables
		p["lib/"+name] = filepath.Join(dir, name)
		_, failed := output("gcc", "-shared", "-fPIC", "-o", p["lib/"+name], "../../../p4ctl/vnp4/testdata/standin.c")
		err = errors.Join(err, failed)
	}
	if err != nil {
		return nil, err
	}
	libraries, err := output("ldd", p["bin/olafctl"])
	for _, path := range regexp.MustCompile(`/[^ \n]+`).FindAllString(libraries, -1) {
		p[strings.TrimPrefix(path, "/")] = path
	}
	return p, err
})

// archive is an initramfs in the format newc.
type archive struct {
	bytes.Buffer
	inode int
	made  map[string]bool
}

// add appends a file, after the folders above it.
func (a *archive) add(name string, mode uint32, data []byte) {
	if a.made == nil {
		a.made = map[string]bool{".": true}
	}
	if dir := filepath.Dir(name); !a.made[dir] {
		a.made[dir] = true
		a.add(dir, 0o040755, nil)
	}
	a.inode++
	fmt.Fprintf(a, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	a.pad()
	a.Write(data)
	a.pad()
}

func (a *archive) pad() { a.Write(make([]byte, -a.Len()&3)) }

// addFile appends a file of the host.
func (a *archive) addFile(name, from string) error {
	data, err := os.ReadFile(from)
	if err == nil {
		a.add(name, 0o100755, data)
	}
	return err
}

// pack writes the initramfs: all modules, and programs by their names in the guest.
func pack(path string, found map[string]string, programs ...map[string]string) error {
	var a archive
	files := map[string]string{}
	for _, m := range modules {
		if found[m] != "" { // else it is built in, or of another kernel
			files["modules/"+m+".ko"] = found[m]
		}
	}
	for _, p := range programs {
		maps.Copy(files, p)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := a.addFile(name, files[name]); err != nil {
			return err
		}
	}
	a.add("TRAILER!!!", 0, nil)
	return os.WriteFile(path, a.Bytes(), 0o644)
}

func output(name string, args ...string) (string, error) {
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(append([]string{name}, args...), " "), err, text)
	}
	return string(text), nil
}
