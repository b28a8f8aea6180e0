package iswitch

import (
	"testing"

	"github.com/olafctl/olaf/fpga/program/programtest"
)

func TestVectors(t *testing.T) { programtest.Vectors(t, Describe(), 27) }
