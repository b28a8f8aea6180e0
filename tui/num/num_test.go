package num

import (
	"math"
	"testing"
	"time"

	"github.com/olafctl/olaf"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{FormatNS(0), "0"}, {FormatNS(1), "1.00 ns"}, {FormatNS(999.9), "1.00 µs"}, {FormatNS(12345), "12.3 µs"},
		{FormatNS(4.2e9), "4.20 s"}, {FormatNS(math.NaN()), Unknown}, {FormatNS(math.Inf(1)), Unknown},
		{FormatShort(52 * olaf.Nanosecond), "52ns"}, {FormatShort(4 * olaf.Nanosecond), "4.0ns"},
		{FormatShort(1234 * olaf.Nanosecond), "1.2µs"}, {FormatShort(136 * olaf.Nanosecond), "136ns"}, {FormatShort(0), "0"},
		{FormatRate(60e9), "60.0Gbps"}, {FormatHertz(250_000_000), "250MHz"}, {FormatRate(0), "0.00bps"},
		{FormatRate(999.96e6), "1.00Gbps"},
		{FormatPercent(12.34), "12.3 %"}, {FormatPercent(math.NaN()), Unknown},
		{FormatCount(9999), "9999"}, {FormatCount(13500), "13.5k"}, {FormatCount(-3), "-3"}, {FormatCount(2_500_000),
			"2.50M"},
		{FormatInstant(1_234_567, 5_000_000), "1.234 µs"}, {FormatInstant(1_234_567, olaf.Time(olaf.Second)),
			"0.001 ms"}, {FormatInstant(0, 0), "0.000 µs"},
		{FormatInstant(olaf.Time(12345*olaf.Millisecond), olaf.Time(20*olaf.Second)), "12.345 s"},
		{FormatInstant(999_999, 5_000_000), "0.999 µs"},
		{FormatEnd(olaf.Time(8409298 * olaf.Microsecond)), "8409 ms"}, {FormatEnd(460_800_000), "461 µs"},
		{FormatEnd(olaf.Time(20 * olaf.Second)), "20.0 s"},
		{FormatDuration(olaf.Microsecond), "1.00 µs"}, {FormatSpeed(1e-5), "10.0 µs/s"}, {FormatSpeed(1), "1.00 s/s"},
		{FormatWait(-1), Unknown}, {FormatWait(0), "0:00"}, {FormatWait(61500 * time.Millisecond), "1:02"},
		{FormatWait(3661 * time.Second), "1:01 h"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
