//go:build !linux

package process

import (
	"errors"
	"net"

	"golang.org/x/net/ipv4"
)

const joinedControl = 0

func addChecksums(*net.UDPConn) error  { return errors.ErrUnsupported }
func receiveJoined(*net.UDPConn) error { return errors.ErrUnsupported }
func segments(int) []byte              { return nil }
func joinedSize(m *ipv4.Message) int   { return max(m.N, 1) }
