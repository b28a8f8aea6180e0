// Package sshlinktest provides hosts for tests, each with an sshd, in network namespaces of this machine.
package sshlinktest
