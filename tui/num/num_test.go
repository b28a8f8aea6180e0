package num

import (
	"math"
	"testing"

	"github.com/olafctl/olaf"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{NS(0), "0"}, {NS(1), "1.00ns"}, {NS(999.9), "1.00us"}, {NS(12345), "12.3us"}, {NS(4.2e9), "4.20s"}, {NS(math.NaN()), Unknown}, {NS(math.Inf(1)), Unknown},
		{Short(52 * olaf.Nanosecond), "52ns"}, {Short(4 * olaf.Nanosecond), "4.0ns"}, {Short(1234 * olaf.Nanosecond), "1.2us"}, {Short(136 * olaf.Nanosecond), "136ns"}, {Short(0), "0"},
		{Rate(60e9), "60.0Gbps"}, {Hertz(250_000_000), "250MHz"}, {Rate(0), "0.00bps"}, {Rate(999.96e6), "1.00Gbps"},
		{Percent(12.34), "12.3 %"}, {Percent(math.NaN()), Unknown},
		{Count(9999), "9999"}, {Count(13500), "13.5k"}, {Count(-3), "-3"}, {Count(2_500_000), "2.50M"},
		{Time(olaf.Time(1234567)), "1.234us"}, {Duration(olaf.Microsecond), "1.00us"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
