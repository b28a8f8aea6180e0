// Package sshlinktest provides hosts for tests that run an sshd each, in network namespaces of this machine.
package sshlinktest
