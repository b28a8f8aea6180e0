package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
)

// TestReserveForTwoUsers checks that for a second user a reserved testbed, its interface (for up and for bench) and its
// card are refused with the first user's name, until that user releases them.
func TestReserveForTwoUsers(t *testing.T) {
	locks := t.TempDir()
	file := filepath.Join(t.TempDir(), "paper.yaml")
	const text = "hosts: {here: {}}\nroles:\n  queue: {host: here, device: \"pci:0000:3b:00.0\"}\n  server: {host: here, interface: eth7}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(who string, args ...string) (code int, said string) {
		t.Setenv("SUDO_USER", who)
		var out bytes.Buffer
		env := testEnvironment(&out, &out)
		env.Bus.Locks, env.Bus.Sysfs = locks, locks
		code = run(t.Context(), env, args)
		return code, out.String()
	}
	expect := func(who string, code int, said string, args ...string) {
		t.Helper()
		if c, all := as(who, args...); c != code || !strings.Contains(all, said) {
			t.Errorf("%s, %v: exit code %d, %q; want %d and %q", who, args, c, all, code, said)
		}
	}
	expect("alice", cli.ExitUsage, "use more than 0s", "testbed", "reserve", file, "--for", "0s")
	expect("alice", cli.ExitUsage, "you have no reservation of testbed paper", "testbed", "release", file)
	expect("alice", cli.ExitDone, "paper is reserved until ", "testbed", "reserve", file, "--for", "1h", "--note", "table 1 runs")
	expect("bob", cli.ExitDevice, "host here: pci:0000:3b:00: it is reserved by alice@", "testbed", "reserve", file)
	expect("bob", cli.ExitUsage, "you have no reservation", "testbed", "release", file)
	lab := filepath.Join(t.TempDir(), "lab.yaml")
	const cable = "nodes: [{name: w, role: worker}, {name: s, role: aggregator}, {name: ps, role: server}]\n" +
		"links: [{child: w, parent: s, interfaces: [eth6, eth7]}, {child: s, parent: ps}]\n"
	if err := os.WriteFile(lab, []byte(cable), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("bob", cli.ExitDevice, "interface eth7: it is reserved by alice@", "testbed", "up", lab)
	expect("bob", cli.ExitDevice, "interface eth7: it is reserved by alice@", "bench", "--system", "xagg", "-d", "xdp:"+lab)
	queue := writeFile(t, "queue.yaml", "nodes: [{name: w, role: worker, rate: 300kbps}, {name: s, role: switch}, {name: ps, role: server}]\n"+
		"links: [{child: w, parent: s, interfaces: [eth6, eth7]}, {child: s, parent: ps}]\n"+
		"devices: [{node: s, program: olaf}]\njob: {lanes: 48}\n")
	expect("bob", cli.ExitDevice, "interface eth7: it is reserved by alice@", "bench", "-d", "xdp:"+queue)
	expect("alice", cli.ExitDone, "paper is released", "testbed", "release", file)
	expect("bob", cli.ExitDone, "paper is reserved", "testbed", "reserve", file, "--wait")
}

// commandsOfDevices lists every command that takes a device or a P4Runtime server, with its arguments for a reserved DEVICE, its
// AGENT, or the P4Runtime server of that agent (TABLES). An entry after " -d" or " --" is another case of the same command.
var commandsOfDevices = map[string]struct {
	args   string
	writes bool
}{
	"bench":               {"--runs 1 -q --keep=false -d DEVICE", true},
	"bench -d":            {"--runs 1 -q --keep=false -d AGENT", true},
	"bench --generator":   {"--runs 1 -q --keep=false -d twin2: --generator DEVICE", true},
	"device doctor":       {"-d DEVICE", true}, // it latches and writes scratch registers
	"device info":         {"-d DEVICE", false},
	"device info -d":      {"-d AGENT", false},
	"device reg diff":     {"SNAPSHOT -d DEVICE", true}, // a latch, as in each of these
	"device reg dump":     {"-d DEVICE", true},
	"device reg flows":    {"-d DEVICE", true},
	"device reg read":     {"queue.depth -d DEVICE", false},
	"device reg read -d":  {"queue.depth -d AGENT", false},
	"device reg slots":    {"-d DEVICE", true},
	"device reg snapshot": {"-d DEVICE", true},
	"device reg write":    {"queue.depth=8 -d DEVICE", true},
	"device reg write -d": {"queue.depth=8 -d AGENT", true},
	"device reset":        {"-d DEVICE", true},
	"device serve":        {"--listen unix:SOCKET -d DEVICE", true},
	"device watch":        {"--count 1 -d DEVICE", true},
	"experiment run":      {"table1 -q --keep=false -d DEVICE", true},
	"reproduce":           {"table1 -q -d AGENT", true},
	"schedule apply":      {"PLAN --unit r1 --hosts 64 -d DEVICE", true},
	"system program show": {"switchml -d DEVICE", false},
	"tables apply":        {"FILE --target TABLES", true},
	"tables clear":        {"--yes --target TABLES", true},
	"tables cluster add":  {"10.0.0.1=1 --cluster 1 --target TABLES", true},
	"tables cluster list": {"--target TABLES", false},
	"tables cluster move": {"10.0.0.1 --to 2 --target TABLES", true},
	"tables cluster rm":   {"10.0.0.1 --target TABLES", true},
	"tables conformance":  {"--write -d TABLES", true},
	"tables diff":         {"FILE --target TABLES", false},
	"tables get":          {"--target TABLES", false},
	"tables show":         {"--target TABLES", false},
	"tables show -d":      {"-d DEVICE", true}, // as its primary controller
	"tables takeover":     {"--target TABLES", true},
	"train":               {"-q --keep=false -d host:", true},
	"train --system":      {"-q --keep=false --system xagg -d xdp:", true},
	"train --program":     {"-q --keep=false --program true -d host:", true},
	"train --program 2":   {"-q --keep=false --program true --system xagg -d xdp:", true},
	"train --program 3":   {"-q --keep=false --program true --system switchml -d host:", true},
	"tui":                 {"--plain -d DEVICE", true},
}

// reservedTwin makes twin, xdp: and host: devices reservable like a card, and adds a twin that is not reservable.
func reservedTwin(env *cli.Env, locks string) {
	env.Bus.Locks, env.Bus.Sysfs = locks, locks
	env.Devices = slices.Clone(env.Devices)
	for i := range env.Devices {
		row := &env.Devices[i]
		if row.Prefix == "twin:" {
			other := *row
			other.Prefix = "twin2:"
			env.Devices = append(env.Devices, other)
			row = &env.Devices[i]
		}
		if slices.Contains([]string{"twin:", "xdp:", "host:"}, row.Prefix) {
			row.Uses = func(string) []string { return []string{"pci:0000:3b:00"} }
		}
	}
}

// TestCommandsRespectReservations calls every command that takes a device or a P4Runtime server with a device that
// another user has reserved. It checks that commands that write are refused with that user's name and exit code 3, and
// that the others are not.
func TestCommandsRespectReservations(t *testing.T) {
	_, all, _ := tree(t)
	for _, cmd := range all {
		name := strings.TrimPrefix(cmd.CommandPath(), "olafctl ")
		if _, known := commandsOfDevices[name]; !known && (cmd.Flags().Lookup("device") != nil || cmd.Flags().Lookup("target") != nil) {
			t.Errorf("%s takes a device, and is not in the table", name)
		}
	}
	locks := t.TempDir()
	t.Setenv("SUDO_USER", "alice")
	target := "unix:" + filepath.Join(t.TempDir(), "s")
	serveIn(t, func(env *cli.Env) { reservedTwin(env, locks) }, "-d", "twin:", "--listen", target)
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	for _, args := range []string{"schedule jobs --jobs 8 --units 4 --ports 2 -w " + file("jobs.yaml"),
		"schedule plan " + file("jobs.yaml") + " --policy tw -q -w " + file("plan.json"), "device reg snapshot -w " + file("snapshot.json")} {
		step{args: args}.run(t, strings.NewReplacer())
	}
	replace := strings.NewReplacer("DEVICE", "twin:", "AGENT", "grpc:"+target, "TABLES", target, "SOCKET", filepath.Join(t.TempDir(), "s"),
		"FILE", writeFile(t, "tables.yaml", storyTables), "PLAN", file("plan.json"), "SNAPSHOT", file("snapshot.json"))
	reservations := &testbed.Reservations{Dir: filepath.Join(locks, "olafctl")}
	if err := reservations.Take(testbed.Reservation{Testbed: "paper", Owner: "alice@desk", Resources: []string{"pci:0000:3b:00"}}, time.Hour); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUDO_USER", "bob")
	for name, c := range commandsOfDevices {
		var out bytes.Buffer
		env := testEnvironment(&out, &out)
		reservedTwin(env, locks)
		command, _, _ := strings.Cut(name, " -")
		code := run(t.Context(), env, strings.Fields(command+" "+replace.Replace(c.args)))
		refused := code == cli.ExitDevice && strings.Contains(out.String(), "pci:0000:3b:00: it is reserved by alice@desk since ")
		if refused != c.writes || !c.writes && code != cli.ExitDone {
			t.Errorf("%s: exit code %d; it writes: %t\n%s", name, code, c.writes, &out)
		}
	}
}
