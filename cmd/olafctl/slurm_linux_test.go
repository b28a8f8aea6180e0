package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// slurm is a cluster on this machine, built from the Debian packages slurmctld, slurmd, slurm-client and munge.
type slurm struct{ dir string }

var slurmConf = `ClusterName=olaf
SlurmctldHost=HOST(127.0.0.1)
SlurmctldPort=PORT1
SlurmdPort=PORT2
AuthType=auth/munge
AuthInfo=socket=DIR/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd.pid
SlurmdSpoolDir=DIR/spool
StateSaveLocation=DIR/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=HOST NodeAddr=127.0.0.1 CPUs=CORES State=UNKNOWN
PartitionName=all Nodes=HOST Default=YES MaxTime=INFINITE State=UP
`

// startSlurm starts a cluster that runs until the end of the test. It skips the test if the programs or rights are
// missing.
func startSlurm(t *testing.T) *slurm {
	t.Helper()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("without %s; Debian has it in slurmctld, slurmd, slurm-client and munge", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("slurmd starts jobs as root")
	}
	s := &slurm{t.TempDir()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"spool", "state"} {
		must(os.Mkdir(filepath.Join(s.dir, sub), 0o755))
	}
	key := make([]byte, 1024)
	_, err := rand.Read(key)
	must(err)
	must(os.WriteFile(filepath.Join(s.dir, "key"), key, 0o600))
	host, err := os.Hostname()
	must(err)
	host, _, _ = strings.Cut(host, ".")
	replace := strings.NewReplacer("DIR", s.dir, "HOST", host, "PORT1", port(t), "PORT2", port(t), "CORES", fmt.Sprint(runtime.NumCPU()))
	must(os.WriteFile(filepath.Join(s.dir, "slurm.conf"), []byte(replace.Replace(slurmConf)), 0o644))
	s.daemon(t, "Seeded PRNG", "munged", "--foreground", "--force", "--key-file="+s.dir+"/key", "--socket="+s.dir+"/munge.sock", "--pid-file="+s.dir+"/munge.pid",
		"--log-file="+s.dir+"/munge.log", "--seed-file="+s.dir+"/munge.seed")
	s.daemon(t, "Running as primary controller", "slurmctld", "-D", "-f", s.dir+"/slurm.conf")
	s.daemon(t, "slurmd started on", "slurmd", "-D", "-f", s.dir+"/slurm.conf", "-N", host)
	return s
}

// port returns a free port of this host.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// daemon starts a program and waits until it prints ready.
func (s *slurm) daemon(t *testing.T, ready, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = s.environment()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have exited
		_ = cmd.Wait()
	})
	var said strings.Builder
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatalf("%s ended: %s", program, &said)
		}
		if fmt.Fprintln(&said, lines.Text()); strings.Contains(lines.Text(), ready) {
			go func() { // discard further output
				for lines.Scan() {
				}
			}()
			return
		}
	}
}

func (s *slurm) environment() []string {
	return append(os.Environ(), "SLURM_CONF="+s.dir+"/slurm.conf", "OLAFCTL_HOME="+s.dir+"/store", "PATH="+s.dir+":"+os.Getenv("PATH"))
}

// run runs a program in the cluster's folder and returns its output.
func (s *slurm) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = s.dir, s.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestSlurm runs a sweep on a real Slurm with the array from 'sweep export'. It checks that sbatch --test-only accepts
// the array, that all tasks end, and that their results equal those of the same sweep on this machine. Submitting the
// array again must not compute anything.
func TestSlurm(t *testing.T) {
	s := startSlurm(t)
	if err := os.Link(linkedProgram(t), filepath.Join(s.dir, "olafctl")); err != nil {
		t.Skip(err)
	}
	spec := "command: bench\noptions: {updates: 20, versus: none, out-rate: 20G}\nsweep: [slots=2..13]\nmetrics: [aom_cluster_ns]\nruns: 12\n"
	if err := os.WriteFile(filepath.Join(s.dir, "slots.yaml"), []byte(spec), 0o644); err != nil {
		t.Fatal(err)
	}
	s.run(t, "olafctl", "sweep", "export", "slots.yaml", "--slurm", "sweep.sbatch", "--shards", "4")
	if said := s.run(t, "sbatch", "--test-only", "sweep.sbatch"); !strings.Contains(said, "to start at") {
		t.Errorf("sbatch --test-only says %q", said)
	}
	for range 2 {
		s.run(t, "sbatch", "--wait", "sweep.sbatch")
	}
	logs, err := filepath.Glob(filepath.Join(s.dir, "olaf-slots-*_*.log"))
	if err != nil || len(logs) != 8 {
		t.Errorf("%d logs of 8 tasks, %v", len(logs), err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil || !strings.Contains(string(text), "3 of 3 cells done, 0 failed") {
			t.Errorf("%s: %s, %v", filepath.Base(log), text, err)
		}
	}
	found := s.run(t, "olafctl", "sweep", "run", "slots.yaml", "-q")
	alone := s.run(t, "olafctl", "sweep", "run", "slots.yaml", "-q", "--store", "alone")
	if digest := regexp.MustCompile(`digest [0-9a-f]{64}`).FindString(found); digest == "" || found != alone {
		t.Errorf("through Slurm:\n%s\nalone:\n%s", found, alone)
	}
	if n := strings.Count(s.run(t, "find", "store/singles", "-type", "f"), "\n"); n != 24 {
		t.Errorf("%d results, want 12 cells × 2 lots", n)
	}
}
