package testbed

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/roles"
)

// isFile reports whether an argument is the name of a file rather than of a running testbed.
func isFile(arg string) bool {
	return strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml")
}

// findRoles returns the plan of the testbed that the argument names if its file has roles. Otherwise, and without an
// argument, it returns nil.
func findRoles(env *cli.Env, args []string) (*roles.Plan, testbed.Access, error) {
	access, err := env.Access()
	if err != nil || len(args) == 0 {
		return nil, access, err
	}
	if !isFile(args[0]) {
		p, err := roles.FindPlan(args[0])
		if err != nil {
			return nil, access, nil // it may be a testbed of nodes
		}
		return p, access, nil
	}
	f, err := parseFile(env, args[0])
	if err != nil {
		return nil, access, err
	}
	p, err := roles.ResolveHosts(f)
	return p, access, err
}

// showRoles prints the hosts of a testbed and, if it is up, the processes that run it. It returns an error if the
// testbed has a fault.
func showRoles(ctx context.Context, env *cli.Env, out cli.Format, p *roles.Plan, isUp bool, access testbed.Access) error {
	all, err := roles.DescribeHosts(ctx, p, isUp, access)
	if err != nil {
		return err
	}
	if err := printHosts(env, out, p, all, nil); err != nil {
		return err
	}
	if out != cli.JSON {
		if err := printActivity(env, p, all); err != nil {
			return err
		}
	}
	return roles.Fault(all, false)
}

// doctorRoles prints the hosts of a testbed and checks the links between them. It returns an error if there is a fault.
func doctorRoles(ctx context.Context, env *cli.Env, out cli.Format, p *roles.Plan, access testbed.Access) error {
	all, links, err := roles.ExamineHosts(ctx, p, access)
	if err != nil {
		return err
	}
	if err := printHosts(env, out, p, all, links); err != nil {
		return err
	}
	if out != cli.JSON {
		if err := printLinks(env, links); err != nil {
			return err
		}
	}
	return cmp.Or(roles.Fault(all, false), roles.LinkFault(links))
}

// printLinks prints for each link whether a probe frame arrived or the reason why none did.
func printLinks(env *cli.Env, links []roles.LinkCheck) error {
	if len(links) == 0 {
		return nil
	}
	list := cli.Grid{Header: []string{"LINK", "FROM", "TO", "PROBE FRAME"}}
	var lines []string
	for i := range links {
		c := &links[i]
		seen := "arrived"
		switch {
		case c.Fault != "":
			seen = "FAILED"
		case c.Unchecked != "":
			seen = "not sent"
		}
		list.Add(c.From.Role+" to "+c.To.Role, c.From.String(), c.To.String(), seen)
		if why := c.Fault + c.Unchecked; why != "" {
			lines = append(lines, fmt.Sprintf("link from %s to %s: %s\n", c.From.Role, c.To.Role, why))
		}
	}
	fmt.Fprintln(env.Stdout)
	if err := list.Write(env, cli.Table); err != nil {
		return err
	}
	_, err := fmt.Fprint(env.Stdout, strings.Join(lines, ""))
	return err
}

// printActivity prints the hosts' counters. If the testbed is up, it also prints the last error of a command.
func printActivity(env *cli.Env, p *roles.Plan, all []roles.Examination) error {
	list := cli.Grid{Header: []string{"HOST", "OF", "COUNTER", "VALUE"}}
	for i := range all {
		for _, c := range all[i].Counts {
			list.Add(all[i].Name, c.Of, c.Name, strconv.FormatUint(c.Value, 10))
		}
	}
	if len(list.Rows) > 0 {
		fmt.Fprintln(env.Stdout)
		if err := list.Write(env, cli.Table); err != nil {
			return err
		}
	}
	last := roles.FindLastError(p.Name)
	if last == nil {
		return nil
	}
	_, err := fmt.Fprintf(env.Stdout, "\nlast error, %s: %s\n", last.At.Local().Format(time.DateTime), last.Error)
	return err
}

// printHosts prints the descriptions of the hosts side by side.
func printHosts(env *cli.Env, out cli.Format, p *roles.Plan, all []roles.Examination, links []roles.LinkCheck) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			*roles.Plan
			Examined  []roles.Examination `json:"examined"`
			Links     []roles.LinkCheck   `json:"links,omitempty"`
			LastError *testbed.LastError  `json:"last_error,omitempty"`
		}{cli.Check("hosts"), p, all, links, roles.FindLastError(p.Name)})
	}
	list := cli.Grid{Header: []string{"HOST", "ROLES", "DEVICE", "KERNEL", "RIGHTS", "CLOCK", "RESERVED"}}
	for i := range all {
		e := &all[i]
		what := []string{}
		if e.Device != "" {
			what = append(what, e.Device)
		}
		if e.NIC != nil {
			what = append(what, fmt.Sprintf("%s (%s, MTU %d)", e.NIC.Name, e.NIC.Driver, e.NIC.MTU))
		}
		rights := "user"
		if e.Root {
			rights = "root"
		}
		clock := "this one"
		if e.SSH != "" {
			clock = fmt.Sprintf("%v ± %v", time.Duration(e.Clock.OffsetNS), time.Duration(e.Clock.BoundNS))
		}
		list.Add(e.Name, strings.Join(e.Roles, ", "), cli.OrDash(strings.Join(what, ", ")), e.Kernel, rights, clock, cli.OrDash(describeHolder(e)))
	}
	if err := list.Write(env, cli.Table); err != nil {
		return err
	}
	if p.Nodes == nil {
		fmt.Fprintf(env.Stdout, "clocks for ages: %s\n", p.DescribeClocks())
	}
	if err := printNodes(env, all); err != nil {
		return err
	}
	for i := range all {
		if all[i].User != "" {
			fmt.Fprintf(env.Stdout, "%s: in use by %s\n", all[i].Name, all[i].User)
		}
		for _, fault := range all[i].Faults {
			fmt.Fprintf(env.Stdout, "%s: %s\n", all[i].Name, fault)
		}
	}
	return nil
}

// printNodes prints the nodes that are up on each host of a testbed.
func printNodes(env *cli.Env, all []roles.Examination) error {
	list := cli.Grid{Header: []string{"HOST", "NODE", "ROLE", "ADDRESS", "NAMESPACE", "COUNTED"}}
	for i := range all {
		if held := all[i].Testbed; held != nil {
			for k := range held.Nodes {
				n := &held.Nodes[k]
				list.Add(all[i].Name, n.Name, n.Role, n.Address, n.Path, formatCounts(n.Counts))
			}
		}
	}
	if len(list.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(env.Stdout)
	return list.Write(env, cli.Table)
}

// describeHolder describes the testbed's reservation on a host, or the reservation that prevents it. It returns "" if
// there is neither.
func describeHolder(e *roles.Examination) string {
	r := e.Holder
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s for %s, %v left", r.Owner, r.Testbed, r.Left.Round(time.Second))
}
