package olaf

import "testing"

// TestQuantiles checks quantiles of times in any order.
func TestQuantiles(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64((i*37 + 11) % 100)
	}
	for _, c := range []struct {
		times []int64
		want  Quantiles
	}{
		{nil, Quantiles{}},
		{[]int64{7}, Quantiles{7, 7, 7}},
		{[]int64{9, -4}, Quantiles{9, 9, 9}},
		{hundred, Quantiles{50, 99, 99}},
	} {
		if got := QuantilesOf(c.times); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
	worst := Quantiles{1, 9, 20}
	if worst.Worst(&Quantiles{2, 8, 30}); worst != (Quantiles{2, 9, 30}) {
		t.Errorf("the worst is %+v", worst)
	}
}
