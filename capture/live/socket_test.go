//go:build linux

package live_test

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
)

func TestQuick(t *testing.T) {
	inNamespace(t)
	up(t, "lo")
	s, err := live.Open(live.Options{Interface: "lo"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Log(s.Info())
	var p capture.Packet
	if err := s.Next(&p); !errors.Is(err, capture.ErrIdle) {
		t.Fatal(err)
	}
	tx := sender(t, "lo")
	tx.update(t, 7)
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Next(&p); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", p)
	t.Log(s.Stamped())
	t.Log(s.Drops())
	if err := s.Next(&p); !errors.Is(err, capture.ErrIdle) {
		t.Fatal(err)
	}
	d := capture.NewDecoder(s)
	tx.update(t, 8)
	var a capture.Arrival
	t.Log(s.Wait(t.Context()))
	t.Log(d.Next(&a), a.Update, d.Next(&a))
	down(t, "lo")
	t.Log(s.Wait(t.Context()))
	t.Log(d.Next(&a))
}
