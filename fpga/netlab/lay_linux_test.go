package netlab

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestLayCable checks that a cable made of two connected interfaces has each of them in its node.
func TestLayCable(t *testing.T) {
	l := lab(t)
	here, a, b := node(t, l, "here"), node(t, l, "a"), node(t, l, "b")
	if _, err := ConnectNodes(End{here, "card0"}, End{here, "card1"}, 1400); err != nil {
		t.Fatal(err)
	}
	lay := func(lower, upper string, virtual bool) (c *Cable, err error) {
		err = here.Do(func() error {
			c, err = LayCable(End{a, lower}, End{b, upper}, virtual)
			return err
		})
		return c, err
	}
	for _, refused := range []struct {
		lower, upper string
		virtual      bool
		says         string
	}{
		{"card0", "card2", true, "interface card2 for b: Link not found"},
		{"card0", "card1", false, "is of kind veth and would end with the namespace"},
		{"card0", "lo", true, "interface lo for b leads nowhere"},
	} {
		if _, err := lay(refused.lower, refused.upper, refused.virtual); !errors.Is(err, ErrNetwork) ||
			!strings.Contains(err.Error(), refused.says) {
			t.Errorf("%+v: %v", refused, err)
		}
		if _, err := here.Interface("card0"); err != nil {
			t.Fatalf("%+v: it was taken: %v", refused, err)
		}
	}
	c, err := lay("card0", "card1", true)
	if err != nil {
		t.Fatal(err)
	}
	if c.A.Name != "card0" || c.A.Node != a || c.B.Name != "card1" || c.B.Node != b || c.A.MTU != 1400 {
		t.Errorf("%+v, %+v", c.A, c.B)
	}
	if _, err := here.Interface("card0"); err == nil {
		t.Error("card0 is still where it was")
	}
}

// TestUnjoinedCableIsRefused checks that a cable between the ends of two different cables is refused, because no frame
// gets through, and that both ends are named.
func TestUnjoinedCableIsRefused(t *testing.T) {
	l := lab(t)
	left, right := node(t, l, "left"), node(t, l, "right")
	one, err := ConnectNodes(End{left, "one0"}, End{right, "one1"}, 1500)
	if err != nil {
		t.Fatal(err)
	}
	two, err := ConnectNodes(End{left, "two0"}, End{right, "two1"}, 1500)
	if err != nil {
		t.Fatal(err)
	}
	if err := waitForFrame(one.A, two.B, 3*joinPause); !errors.Is(err, ErrNetwork) ||
		!strings.Contains(err.Error(), "no frame got from interface one0 to two1 in 60ms; are they at the two ends of one cable") {
		t.Error(err)
	}
	if err := errors.Join(waitForFrame(one.A, one.B, time.Minute), waitForFrame(two.B, two.A, time.Minute)); err != nil {
		t.Error(err)
	}
}
