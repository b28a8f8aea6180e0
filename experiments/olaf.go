package experiments

// Experiments lists what reproduces the paper, in its order.
func Experiments() Set {
	return Set{table1, table1Trace, fig6, fig2, fig3, fig7, fig8, table2, table3, fig10}
}
