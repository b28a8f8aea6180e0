package num

import (
	"math"
	"testing"
	"time"

	"github.com/olafctl/olaf"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{NS(0), "0"}, {NS(1), "1.00 ns"}, {NS(999.9), "1.00 µs"}, {NS(12345), "12.3 µs"}, {NS(4.2e9), "4.20 s"}, {NS(math.NaN()), Unknown}, {NS(math.Inf(1)), Unknown},
		{Short(52 * olaf.Nanosecond), "52ns"}, {Short(4 * olaf.Nanosecond), "4.0ns"}, {Short(1234 * olaf.Nanosecond), "1.2µs"}, {Short(136 * olaf.Nanosecond), "136ns"}, {Short(0), "0"},
		{Rate(60e9), "60.0Gbps"}, {Hertz(250_000_000), "250MHz"}, {Rate(0), "0.00bps"}, {Rate(999.96e6), "1.00Gbps"},
		{Percent(12.34), "12.3 %"}, {Percent(math.NaN()), Unknown},
		{Count(9999), "9999"}, {Count(13500), "13.5k"}, {Count(-3), "-3"}, {Count(2_500_000), "2.50M"},
		{Instant(1_234_567, 5_000_000), "1.234 µs"}, {Instant(1_234_567, olaf.Time(olaf.Second)), "0.001 ms"}, {Instant(0, 0), "0.000 µs"},
		{Instant(olaf.Time(12345*olaf.Millisecond), olaf.Time(20*olaf.Second)), "12.345 s"}, {Instant(999_999, 5_000_000), "0.999 µs"},
		{End(olaf.Time(8409298 * olaf.Microsecond)), "8409 ms"}, {End(460_800_000), "461 µs"}, {End(olaf.Time(20 * olaf.Second)), "20.0 s"},
		{Duration(olaf.Microsecond), "1.00 µs"}, {Speed(1e-5), "10.0 µs/s"}, {Speed(1), "1.00 s/s"},
		{Wait(-1), Unknown}, {Wait(0), "0:00"}, {Wait(61500 * time.Millisecond), "1:02"}, {Wait(3661 * time.Second), "1:01 h"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
