package results

import (
	"testing"

	"github.com/olafctl/olaf"
)

// TestAgeAt checks the age of a sawtooth between deliveries, before the first, and where the window specifies it.
func TestAgeAt(t *testing.T) {
	open := Window{To: 100, InitialAge: UnknownAge}
	var a Age
	a.Begin(open)
	if _, known := a.At(5); known {
		t.Error("an age is known before the first delivery")
	}
	a.Deliver(open, 10, 4)
	a.Deliver(open, 20, 2) // older than the stored update
	if age, known := a.At(25); !known || age != olaf.Duration(21) {
		t.Errorf("age %d, %v; want 21", age, known)
	}
	var given Age
	given.Begin(Window{From: 10, To: 100, InitialAge: 3})
	if age, known := given.At(15); !known || age != 8 {
		t.Errorf("age %d, %v; want 8", age, known)
	}
}
