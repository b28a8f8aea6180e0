//go:build !linux

package main

func canReal() bool { return false }
