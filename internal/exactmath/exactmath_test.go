package exactmath

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"golang.org/x/sys/cpu"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// pair is a function under test, its reference, and the argument that the n-th sample uses.
type pair struct {
	name      string
	ours      func(r *rand.Rand) float64
	reference func(r *rand.Rand) float64
}

// one pairs two functions of a drawn argument.
func one(name string, draw func(*rand.Rand) float64, ours, reference func(float64) float64) pair {
	of := func(f func(float64) float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return f(draw(r)) }
	}
	return pair{name, of(ours), of(reference)}
}

// signed draws numbers of either sign with exponents of 2 up to exponent.
func signed(exponent float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		x := math.Ldexp(1+r.Float64(), int(exponent*(float64(2*r.Float64())-1)))
		if r.IntN(2) == 0 {
			return -x
		}
		return x
	}
}

// positive draws numbers as signed does, without the sign.
func positive(exponent float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Abs(signed(exponent)(r)) }
}

// specials are the arguments at which implementations differ most often.
var specials = []float64{
	0, math.Copysign(0, -1), 1, -1, 2, 0.5, -0.5, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, -math.MaxFloat64,
	math.SmallestNonzeroFloat64, 1e-310, 709.78, 709.79, -708, -744, -745.2, -746, 1 << 53, 1 << 60, 1e300,
	math.Sqrt2, math.Sqrt2 / 2, 1e-17, -1e-17, 1e-10, -1e-10, 0.41421356, -0.2928932,
}

// special draws one of the specials now and then.
func special(draw func(*rand.Rand) float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		if n := r.IntN(20 * len(specials)); n < len(specials) {
			return specials[n]
		}
		return draw(r)
	}
}

// degrees draws degrees of freedom, half of them integers.
func degrees(r *rand.Rand) float64 {
	if r.IntN(2) == 0 {
		return float64(1 + r.IntN(400))
	}
	return 1 + float64(300*r.Float64()*r.Float64())
}

// sample draws the values of a statistic.
func sample(r *rand.Rand) []float64 {
	x := make([]float64, 2+r.IntN(60))
	for i := range x {
		x[i] = 100 + float64(r.Float64()*10)
	}
	return x
}

var student = func(nu float64) distuv.StudentsT { return distuv.StudentsT{Sigma: 1, Nu: nu} }

var pairs = []pair{
	one("Exp", special(signed(11)), Exp, math.Exp),
	one("Exp of small numbers", signed(4), Exp, math.Exp),
	one("Log", special(positive(1020)), Log, math.Log),
	one("Log of shares", func(r *rand.Rand) float64 { return r.Float64() }, Log, math.Log),
	one("Log1p", special(signed(60)), Log1p, math.Log1p),
	one("Log1p of shares", func(r *rand.Rand) float64 { return -r.Float64() }, Log1p, math.Log1p),
	one("erf", special(signed(4)), erf, math.Erf),
	one("lgamma", positive(8), lgamma, func(x float64) float64 { y, _ := math.Lgamma(x); return y }),
	one("NormalSurvival", signed(3), NormalSurvival, distuv.UnitNormal.Survival),
	{"Pow", func(r *rand.Rand) float64 { return Pow(special(positive(9))(r), special(signed(7))(r)) },
		func(r *rand.Rand) float64 { return math.Pow(special(positive(9))(r), special(signed(7))(r)) }},
	{"Pow to a whole number", func(r *rand.Rand) float64 { return Pow(special(signed(9))(r), float64(r.IntN(90)-45)) },
		func(r *rand.Rand) float64 { return math.Pow(special(signed(9))(r), float64(r.IntN(90)-45)) }},
	{"StudentQuantile", func(r *rand.Rand) float64 { return StudentQuantile(degrees(r), r.Float64()) },
		func(r *rand.Rand) float64 { return student(degrees(r)).Quantile(r.Float64()) }},
	{"StudentQuantile in the tail", func(r *rand.Rand) float64 { return StudentQuantile(degrees(r), 1-r.Float64()/50) },
		func(r *rand.Rand) float64 { return student(degrees(r)).Quantile(1 - r.Float64()/50) }},
	{"StudentSurvival", func(r *rand.Rand) float64 { return StudentSurvival(degrees(r), signed(5)(r)) },
		func(r *rand.Rand) float64 { return student(degrees(r)).Survival(signed(5)(r)) }},
	{"NormFloat64", NormFloat64, (*rand.Rand).NormFloat64},
	{"ExpFloat64", ExpFloat64, (*rand.Rand).ExpFloat64},
	{"Mean", func(r *rand.Rand) float64 { return Mean(sample(r)) },
		func(r *rand.Rand) float64 { return stat.Mean(sample(r), nil) }},
	{"MeanStdDev", func(r *rand.Rand) float64 { _, sd := MeanStdDev(sample(r)); return sd },
		func(r *rand.Rand) float64 { _, sd := stat.MeanStdDev(sample(r), nil); return sd }},
	{"PopMeanVariance", func(r *rand.Rand) float64 { _, v := PopMeanVariance(sample(r)); return v },
		func(r *rand.Rand) float64 { _, v := stat.PopMeanVariance(sample(r), nil); return v }},
	{"SortedQuantile", func(r *rand.Rand) float64 {
		return SortedQuantile(r.Float64(), slices.Sorted(slices.Values(sample(r))))
	},
		func(r *rand.Rand) float64 {
			return stat.Quantile(r.Float64(), stat.LinInterp, slices.Sorted(slices.Values(sample(r))), nil)
		}},
}

// isReference reports whether math and gonum have the reference's bits in this build.
func isReference() bool {
	if runtime.GOARCH != "amd64" || !cpu.X86.HasFMA {
		return false
	}
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "GOAMD64", Value: "v1"})
}

func TestBitsAreThoseOfTheReference(t *testing.T) {
	if !isReference() {
		t.Skip("math has other bits here: the reference is amd64 with GOAMD64=v1 and FMA")
	}
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			for seed := range uint64(10_000) {
				ours := p.ours(rand.New(rand.NewPCG(seed, 1)))
				want := p.reference(rand.New(rand.NewPCG(seed, 1)))
				if math.Float64bits(ours) != math.Float64bits(want) && !(math.IsNaN(ours) && math.IsNaN(want)) {
					t.Fatalf("seed %d: got %v (%#x), want the reference's %v (%#x)",
						seed, ours, math.Float64bits(ours), want, math.Float64bits(want))
				}
			}
		})
	}
}

// hashBits hashes the bits of the first results, with every NaN as one.
func hashBits(f func(*rand.Rand) float64) uint64 {
	h := fnv.New64a()
	for seed := range uint64(5_000) {
		bits := math.Float64bits(f(rand.New(rand.NewPCG(seed, 2))))
		if v := math.Float64frombits(bits); math.IsNaN(v) {
			bits = math.Float64bits(math.NaN())
		}
		for shift := 0; shift < 64; shift += 8 {
			h.Write([]byte{byte(bits >> shift)})
		}
	}
	return h.Sum64()
}

func TestBitsAreTheSameOnEveryArchitecture(t *testing.T) {
	for _, p := range pairs {
		if got := hashBits(p.ours); got != golden[p.name] {
			t.Errorf("%s: its bits hash to %#x, want %#x as on the reference", p.name, got, golden[p.name])
		}
	}
}

// golden contains the hashes from the reference.
var golden = map[string]uint64{
	"Exp":                         0x34c4e5dbc9acfaf5,
	"Exp of small numbers":        0x259cc4fa358d711e,
	"Log":                         0x2e2a494fb38aa047,
	"Log of shares":               0x60f553cf2cea546,
	"Log1p":                       0xdea8865fc81bd902,
	"Log1p of shares":             0xf5e644c8e9f467c0,
	"erf":                         0x44f1b459bda22f50,
	"lgamma":                      0x7f1496947c026926,
	"NormalSurvival":              0x134c37b84fb7ae9e,
	"Pow":                         0xdd17f7184aea170d,
	"Pow to a whole number":       0xab638aa6ca80b2e4,
	"StudentQuantile":             0xe6257ef587f315a7,
	"StudentQuantile in the tail": 0x11974878ce1343a,
	"StudentSurvival":             0x9039705857fe2327,
	"NormFloat64":                 0x49e24d1442396d3d,
	"ExpFloat64":                  0x590b9c1e49d67cc5,
	"Mean":                        0x95c813e2cf877bd4,
	"MeanStdDev":                  0x7f2577ecf4e2bf8b,
	"PopMeanVariance":             0xaefdd4b30c7a89cb,
	"SortedQuantile":              0x2b8d0bf2a03553ed,
}
