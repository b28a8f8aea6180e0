package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	tablescmd "github.com/olafctl/olaf/cmd/olafctl/tables"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/p4ctl"
)

// stateDocument describes the state of a switch program on a device.
type stateDocument struct {
	Device   string     `json:"device"`
	Running  string     `json:"running"` // name of the program that precedes the queue
	H        int        `json:"h,omitempty"`
	Built    int        `json:"built_slots"`
	Occupied int        `json:"held_slots"`
	Jobs     []stateJob `json:"jobs,omitempty"`   // jobs in the tables
	Untold   string     `json:"untold,omitempty"` // why the tables were not read
}

// stateJob describes a job according to its table entries.
type stateJob struct {
	Job     olaf.ClusterID  `json:"job"`
	Members []olaf.WorkerID `json:"members"`
	Fan     int             `json:"fan,omitempty"` // set if an entry sets it
	First   int             `json:"first_slot,omitempty"`
	Slots   int             `json:"slots,omitempty"` // set if the job has its own slots
	Above   bool            `json:"above,omitempty"` // sums are sent to a parent switch
}

// readState reads the state of a program on a device. If the device was not built with the program, the error has the
// kind olaf.Device.
func readState(ctx context.Context, env *cli.Env, address string, d *program.Description) (h *stateDocument,
	err error) {
	if d.Completes == "" {
		return nil, cli.UsageError("-d %s: %s keeps no state on a device; leave out -d", address, d.Name)
	}
	row, _, err := env.Devices.Lookup(address)
	if err != nil {
		return nil, err
	}
	if row.Lend != nil { // for other devices, only the agent knows their build
		if err := env.Devices.NotBuilt(address, d); err != nil {
			return nil, err
		}
	}
	access, err := env.Access()
	if err != nil {
		return nil, err
	}
	dev, err := testbed.OpenDevice(ctx, address, testbed.DeviceOptions{Access: access, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	if err := fpga.CheckProgramBuilt(dev, d); err != nil {
		return nil, err
	}
	if h, err = readRegisters(dev, env.Programs, d); err != nil {
		return nil, err
	}
	if !row.Can(testbed.Dialled) {
		h.Untold = "a device without an agent starts every command with empty tables"
		return h, nil
	}
	target, err := testbed.AgentTarget(address)
	if err != nil {
		return nil, err
	}
	tables, err := tablescmd.ReadTarget(ctx, env, target)
	h.Jobs = collectJobs(&tables, d)
	return h, err
}

// readRegisters reads the state of a program from the device's registers.
func readRegisters(dev fpga.Device, known []program.Description, d *program.Description) (*stateDocument, error) {
	h := &stateDocument{Device: dev.Identity().Address}
	var running, fan, built, held uint32
	for at, value := range map[uint32]*uint32{
		regmap.AggregatorProgram: &running, regmap.AggregatorH: &fan, regmap.AggregatorBuiltSlots: &built,
		regmap.AggregatorOccupied: &held,
	} {
		var err error
		if *value, err = dev.Read32(at); err != nil {
			return nil, err
		}
	}
	h.Running, h.Built = program.ProgramName(known, running), int(built)
	if running == d.Code {
		h.H, h.Occupied = int(fan), int(held)
	}
	return h, nil
}

// collectJobs returns the jobs of a program from its table entries. A job without member entries has the members of its
// multicast group.
func collectJobs(t *p4ctl.Tables, d *program.Description) (jobs []stateJob) {
	var entries []program.Entry
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Table.Program.Code == d.Code {
			entries = append(entries, program.Entry{Table: e.Table.Place, Key: e.Key, Params: e.Params})
		}
	}
	for _, j := range d.Jobs(entries, func(job olaf.ClusterID) []program.Member { return groupMembers(t, job) }) {
		one := stateJob{Job: j.ID, Members: []olaf.WorkerID{}, Fan: j.Fan, First: j.Base, Slots: j.Slots,
			Above: j.Parent}
		for _, m := range j.Members {
			one.Members = append(one.Members, m.Worker)
		}
		jobs = append(jobs, one)
	}
	return jobs
}

// groupMembers returns the members of a job's multicast group.
func groupMembers(t *p4ctl.Tables, job olaf.ClusterID) (members []program.Member) {
	for _, c := range t.Clusters {
		for _, g := range t.Groups {
			if c.ID != job || g.ID != c.Group {
				continue
			}
			for _, m := range g.Members {
				members = append(members, program.Member{Worker: olaf.WorkerID(m.Instance), Port: program.Port(m.Port)})
			}
		}
	}
	return members
}

func (h *stateDocument) write(w io.Writer, name string) {
	fmt.Fprintf(w, "on\t%s\n", h.Device)
	if h.Running != name {
		fmt.Fprintf(w, "runs\t%s; %s is built in, but has no state and no H\n", h.Running, name)
	} else {
		fmt.Fprintf(w, "H\t%d\n", h.H)
		fmt.Fprintf(w, "holds\t%d of %d slots; 'olafctl device reg slots -d %s' lists them\n", h.Occupied, h.Built,
			h.Device)
	}
	if h.Untold != "" {
		fmt.Fprintf(w, "members\tnot known: %s\n", h.Untold)
	} else if len(h.Jobs) == 0 {
		fmt.Fprintf(w, "members\tnone: no table names any\n")
	}
	for i := range h.Jobs {
		fmt.Fprintf(w, "%s\t%s\n", headFirst(i, "members"), h.Jobs[i].lineText())
	}
}

// lineText describes a job in one line.
func (j *stateJob) lineText() string {
	workers := olaf.Map(j.Members, func(m olaf.WorkerID) string { return "w" + strconv.Itoa(int(m)) })
	line := fmt.Sprintf("job %d: %s", j.Job, strings.Join(workers, " "))
	if len(workers) == 0 {
		line += "nobody"
	}
	if j.Fan > 0 {
		line += fmt.Sprintf(", %d complete a sum", j.Fan)
	}
	if j.Slots > 0 {
		line += fmt.Sprintf(", slots %d to %d", j.First, j.First+j.Slots-1)
	}
	if j.Above {
		line += ", sums go to the switch above"
	}
	return line
}
