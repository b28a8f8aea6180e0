// Package versus compares systems of different papers on one bench, which no paper has done.
package versus
