package pcivm

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/olafctl/olaf/internal/test/peer"
)

var matrix = flag.Bool("matrix", false, "run all cases, not only the core ('make pci')")

func needMatrix(t *testing.T) {
	t.Helper()
	if !*matrix {
		t.Skip("only with -matrix; 'make pci' runs it")
	}
}

// kernelPackage depends on the newest kernel of its kind. Drivers for the devices that QEMU emulates are built in or
// available as modules.
const kernelPackage = "linux-image-cloud-amd64"

// modules lists the modules that cases load, by file name without .ko.
var modules = []string{
	"uio", "uio_pci_generic", "uio_cif",
	"irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci",
	"failover", "net_failover",
	"virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_net",
}

// findKernel returns the folder of an unpacked kernel package. It downloads the newest package that apt-get offers,
// once.
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
	dir := filepath.Join(cache, "olafctl", "kernels", name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, download(name, dir)
})

// download downloads a package and unpacks it into dir, which is created completely or not at all.
func download(name, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
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
	err = os.Rename(filepath.Join(work, "unpacked"), dir)
	if errors.Is(err, os.ErrExist) {
		return nil // another process was quicker
	}
	return err
}

// needImages returns the paths of the kernel and of the initramfs, or skips the test.
func needImages(t *testing.T) (image, initramfs string) {
	t.Helper()
	programs := []string{"qemu-system-x86_64", "apt-get", "apt-cache", "dpkg-deb"}
	if *matrix {
		programs = append(append(programs, "gcc", "ssh", "ssh-keygen"), hostPrograms...)
	}
	for _, program := range programs {
		peer.NeedProgram(t, program)
	}
	dir, err := findKernel()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("without Debian's kernel: %v", err)
	}
	if err == nil {
		initramfs, err = buildInitramfs()
	}
	images, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	if err != nil || len(images) != 1 {
		t.Fatalf("%s has %d kernels: %v", dir, len(images), err)
	}
	return images[0], initramfs
}

// standInSymbol is the name of the configuration that the stand-in for AMD's driver exports.
const standInSymbol = ":XilVitisNetP4TargetConfig_standin"

// driverFlags specify the stand-in drivers in the guest.
const driverFlags = "--vnp4-1 /lib/driver1.so" + standInSymbol + " --vnp4-2 /lib/driver2.so" + standInSymbol

// buildFolder returns the folder in which the guests' programs are built.
var buildFolder string

func TestMain(m *testing.M) {
	code := m.Run()
	if buildFolder != "" {
		_ = os.RemoveAll(buildFolder)
	}
	os.Exit(code)
}

// buildInitramfs builds the initramfs for all guests. It contains the programs and modules and, for the matrix, the
// drivers for the card's tables with the C library that they need.
var buildInitramfs = sync.OnceValues(func() (path string, err error) {
	if buildFolder, err = os.MkdirTemp("", "olafctl-pcivm-"); err != nil {
		return "", err
	}
	var a archive
	olafctl := []string{"../../../cmd/olafctl"}
	if *matrix {
		olafctl = []string{"-tags", "vnp4", "../../../cmd/olafctl"}
	}
	err = errors.Join(a.addProgram("init", "./guest"), a.addProgram("bin/olafctl", olafctl...), a.addModules())
	if *matrix {
		err = errors.Join(err, a.addDrivers(), a.addPrograms())
	}
	a.add("TRAILER!!!", 0, nil)
	path = filepath.Join(buildFolder, "initramfs")
	return path, errors.Join(err, os.WriteFile(path, a.Bytes(), 0o644))
})

// archive is an initramfs in the format newc.
type archive struct {
	bytes.Buffer
	inode int
	made  map[string]bool
}

// add appends a file, preceded by its parent folders.
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

// addProgram builds a program and appends it. Its source comes last in args.
func (a *archive) addProgram(name string, args ...string) error {
	path := filepath.Join(buildFolder, filepath.Base(name))
	args = append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", path}, args...)
	if _, err := output("go", args...); err != nil {
		return err
	}
	return a.addFile(name, path)
}

// addModules appends the modules that the kernel has as files. Others are built in, or belong to another kernel.
func (a *archive) addModules() error {
	dir, err := findKernel()
	if err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(dir, "lib", "modules"), func(path string, _ os.DirEntry, err error) error {
		name, ok := strings.CutSuffix(filepath.Base(path), ".ko")
		if err == nil && ok && slices.Contains(modules, name) {
			err = a.addFile("modules/"+name+".ko", path)
		}
		return err
	})
}

// addDrivers appends two stand-ins for AMD's driver, since one shared object has one set of tables.
func (a *archive) addDrivers() error {
	for _, name := range []string{"driver1.so", "driver2.so"} {
		path := filepath.Join(buildFolder, name)
		if _, err := output("gcc", "-shared", "-fPIC", "-o", path, "../../../p4ctl/vnp4/testdata/standin.c"); err != nil {
			return err
		}
		if err := a.addFile("lib/"+name, path); err != nil {
			return err
		}
	}
	return nil
}

// hostPrograms lists this host's programs for guests of the matrix: sshd, its shell, and the programs that the shell
// needs.
var hostPrograms = []string{"/usr/sbin/sshd", "/bin/sh", "/bin/uname", "/bin/mkdir", "/bin/rm", "/bin/ip"}

// addPrograms appends hostPrograms, and the libraries of all programs.
func (a *archive) addPrograms() error {
	libraries, err := output("ldd", append(hostPrograms, filepath.Join(buildFolder, "olafctl"))...)
	for _, path := range hostPrograms {
		err = errors.Join(err, a.addFile("bin/"+filepath.Base(path), path))
	}
	found := regexp.MustCompile(`/[^ \n:]+ \(`).FindAllString(libraries, -1)
	slices.Sort(found)
	for _, path := range slices.Compact(found) {
		err = errors.Join(err, a.addFile(path[1:len(path)-2], path[:len(path)-2]))
	}
	return err
}

func output(name string, args ...string) (string, error) {
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return string(text), nil
}
