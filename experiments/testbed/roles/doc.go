// Package roles runs testbeds whose generator, queue and parameter server are devices or interfaces of several hosts.
// ResolveRoles converts a testbed file (package lab) to a Plan. Each command connects to the plan's hosts. BringUp
// reserves them and starts a holder on each, which keeps the host's part of the testbed until TakeDown. Testbeds whose
// nodes are built on several hosts are brought up in the same way.
package roles
