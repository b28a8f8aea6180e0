// Package testbedtest provides what tests of testbeds share: hosts in network namespaces on which sshd runs, mishaps on
// interfaces, and traces that a test must not leave on its host.
package testbedtest

import "testing"

func requireNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
