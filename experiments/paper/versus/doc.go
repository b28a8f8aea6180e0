// Package versus sets systems of different papers beside each other on one bench: what no paper has measured.
package versus
