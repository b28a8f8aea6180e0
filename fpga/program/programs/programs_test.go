package programs

import "testing"

func TestName(t *testing.T) {
	for _, d := range All() {
		if got := Name(d.Code); got != d.Name {
			t.Errorf("code %d is called %s, want %s", d.Code, got, d.Name)
		}
	}
	if got := Name(4711); got != "4711" {
		t.Errorf("a code of nobody is called %s", got)
	}
}
