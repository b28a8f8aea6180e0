package olaf_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/olafctl/olaf"
)

func TestMap(t *testing.T) {
	if got := olaf.Map([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("Map returns %q; it must keep the order of the list", got)
	}
	if got := olaf.Map([]int{}, strconv.Itoa); got != nil {
		t.Errorf("Map of an empty list returns %q; want nil, which JSON writes like a list that was never filled", got)
	}
}
