package exactmath

import "math"

// Coefficients from FreeBSD's s_erf.c, highest power first.
var (
	erfP = [...]float64{
		-2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02,
		-3.25042107247001499370e-01, 1.28379167095512558561e-01,
	}
	erfQ = [...]float64{
		-3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03,
		6.50222499887672944485e-02, 3.97917223959155352819e-01, 1,
	}
	erfPA = [...]float64{
		-2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01,
		3.18346619901161753674e-01,
		-3.72207876035701323847e-01, 4.14856118683748331666e-01, -2.36211856075265944077e-03,
	}
	erfQA = [...]float64{
		1.19844998467991074170e-02, 1.36370839120290507362e-02, 1.26171219808761642112e-01, 7.18286544141962662868e-02,
		5.40397917702171048937e-01, 1.06420880400844228286e-01, 1,
	}
	erfRA = [...]float64{
		-9.81432934416914548592e+00, -8.12874355063065934246e+01, -1.84605092906711035994e+02,
		-1.62396669462573470355e+02,
		-6.23753324503260060396e+01, -1.05586262253232909814e+01, -6.93858572707181764372e-01,
		-9.86494403484714822705e-03,
	}
	erfSA = [...]float64{
		-6.04244152148580987438e-02, 6.57024977031928170135e+00, 1.08635005541779435134e+02, 4.29008140027567833386e+02,
		6.45387271733267880336e+02, 4.34565877475229228821e+02, 1.37657754143519042600e+02, 1.96512716674392571292e+01,
		1,
	}
	erfRB = [...]float64{
		-4.83519191608651397019e+02, -1.02509513161107724954e+03, -6.37566443368389627722e+02,
		-1.60636384855821916062e+02,
		-1.77579549177547519889e+01, -7.99283237680523006574e-01, -9.86494292470009928597e-03,
	}
	erfSB = [...]float64{
		-2.24409524465858183362e+01, 4.74528541206955367215e+02, 2.55305040643316442583e+03, 3.19985821950859553908e+03,
		1.53672958608443695994e+03, 3.25792512996573918826e+02, 3.03380607434824582924e+01, 1,
	}
)

// erf returns the error function.
func erf(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	if x < 0 {
		return -erf(-x)
	}
	const efx, efx8, atOne = 1.28379167095512586316e-01, 1.02703333676410069053e+00, 8.45062911510467529297e-01
	switch {
	case x < 2.848094538889218e-306:
		return 0.125 * (float64(8*x) + float64(efx8*x))
	case x < 1.0/(1<<28):
		return x + float64(efx*x)
	case x < 0.84375:
		z := float64(x * x)
		return x + float64(x*(horner(z, erfP[:])/horner(z, erfQ[:])))
	case x < 1.25:
		return atOne + horner(x-1, erfPA[:])/horner(x-1, erfQA[:])
	case x >= 6:
		return 1
	}
	s, r := 1/float64(x*x), 0.0
	if x < 1/0.35 {
		r = horner(s, erfRA[:]) / horner(s, erfSA[:])
	} else {
		r = horner(s, erfRB[:]) / horner(s, erfSB[:])
	}
	z := math.Float64frombits(math.Float64bits(x) &^ (1<<32 - 1)) // so that z*z is exact
	return 1 - float64(Exp(float64(-z*z)-0.5625)*Exp(float64((z-x)*(z+x))+r))/x
}

// Coefficients from FreeBSD's e_lgamma_r.c, highest power first.
var (
	gammaA0 = [...]float64{
		2.52144565451257326939e-05, 2.20862790713908385557e-04, 1.19270763183362067845e-03,
		7.38555086081402883957e-03, 6.73523010531292681824e-02, 7.72156649015328655494e-02,
	}
	gammaA1 = [...]float64{
		4.48640949618915160150e-05, 1.08011567247583939954e-04, 5.10069792153511336608e-04,
		2.89051383673415629091e-03, 2.05808084325167332806e-02, 3.22467033424113591611e-01,
	}
	gammaT = [...][5]float64{
		{
			3.15632070903625950361e-04, -1.40346469989232843813e-03, 6.10053870246291332635e-03,
			-3.27885410759859649565e-02, 4.83836122723810047042e-01,
		},
		{
			-3.12754168375120860518e-04, 8.81081882437654011382e-04, -3.68452016781138256760e-03,
			1.79706750811820387126e-02, -1.47587722994593911752e-01,
		},
		{
			3.35529192635519073543e-04, -5.38595305356740546715e-04, 2.25964780900612472250e-03,
			-1.03142241298341437450e-02, 6.46249402391333854778e-02,
		},
	}
	gammaU = [...]float64{
		1.33810918536787660377e-02, 2.28963728064692451092e-01, 9.77717527963372745603e-01,
		1.45492250137234768737e+00, 6.32827064025093366517e-01, -7.72156649015328655494e-02,
	}
	gammaV = [...]float64{
		3.21709242282423911810e-03, 1.04222645593369134254e-01, 7.69285150456672783825e-01,
		2.12848976379893395361e+00, 2.45597793713041134822e+00, 1,
	}
	gammaS = [...]float64{
		3.19475326584100867617e-05, 1.84028451407337715652e-03, 2.66422703033638609560e-02, 1.46350472652464452805e-01,
		3.25778796408930981787e-01, 2.14982415960608852501e-01, -7.72156649015328655494e-02,
	}
	gammaR = [...]float64{
		7.32668430744625636189e-06, 7.77942496381893596434e-04, 1.86459191715652901344e-02, 1.71933865632803078993e-01,
		7.21935547567138069525e-01, 1.39200533467621045958e+00, 1,
	}
	gammaW = [...]float64{
		-1.63092934096575273989e-03, 8.36339918996282139126e-04, -5.95187557450339963135e-04,
		7.93650558643019558500e-04,
		-2.77777777728775536470e-03, 8.33333333333329678849e-02,
	}
)

// lgamma returns the logarithm of the gamma function for a positive number.
func lgamma(x float64) float64 {
	switch {
	case x == 1 || x == 2:
		return 0
	case x < 1.0/(1<<60)/(1<<10):
		return -Log(x)
	case x < 2:
		return lgammaBelow2(x)
	case x < 8:
		whole := math.Floor(x)
		y := x - whole
		gamma := float64(0.5*y) + float64(y*horner(y, gammaS[:]))/horner(y, gammaR[:])
		if whole < 3 {
			return gamma
		}
		z := 1.0
		for n := whole - 1; n >= 2; n-- {
			z = float64(z * (y + n))
		}
		return gamma + Log(z)
	case x < 1<<58:
		z := 1 / x
		w := 4.18938533204672725052e-01 + float64(z*horner(float64(z*z), gammaW[:]))
		return float64((x-0.5)*(Log(x)-1)) + w
	}
	return float64(x * (Log(x) - 1))
}

// lgammaBelow2 returns lgamma for numbers between 0 and 2. It uses a series around 1, around the minimum of the
// function, or around 2.
func lgammaBelow2(x float64) float64 {
	const least, centre = 1.461632144968362245, 1.46163214496836224576
	switch {
	case x < least-1-0.27:
		return -Log(x) + lgammaNear1(x)
	case x < least-1+0.27:
		return -Log(x) + lgammaNearLeast(x-(centre-1))
	case x <= 0.9:
		return -Log(x) + lgammaNear2(1-x)
	case x < least-0.27:
		return lgammaNear1(x - 1)
	case x < least+0.27:
		return lgammaNearLeast(x - centre)
	}
	return lgammaNear2(2 - x)
}

// lgammaNear1 returns log Γ(1+y).
func lgammaNear1(y float64) float64 {
	return float64(-0.5*y) + float64(y*horner(y, gammaU[:]))/horner(y, gammaV[:])
}

// lgammaNear2 returns log Γ(2-y).
func lgammaNear2(y float64) float64 {
	z := float64(y * y)
	p := float64(y*horner(z, gammaA0[:])) + float64(z*horner(z, gammaA1[:]))
	return p - float64(0.5*y)
}

// lgammaNearLeast returns log Γ at the distance y from the minimum of the function.
func lgammaNearLeast(y float64) float64 {
	const value, tail = -1.21486290535849611461e-01, -3.63867699703950536541e-18
	z := float64(y * y)
	w := float64(z * y)
	inner := horner(w, gammaT[1][:]) + float64(y*horner(w, gammaT[2][:]))
	p := float64(z*horner(w, gammaT[0][:])) - (tail - float64(w*inner))
	return value + p
}

// beta returns Euler's beta function for positive numbers.
func beta(a, b float64) float64 { return Exp(lbeta(a, b)) }

// lbeta returns the logarithm of Euler's beta function.
func lbeta(a, b float64) float64 { return lgamma(a) + lgamma(b) - lgamma(a+b) }
