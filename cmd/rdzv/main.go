// Command rdzv stands in front of a PyTorch program that runs as several
// processes, and makes one job of them under any launcher. Run "rdzv help".
package main

import "os"

func main() {
	os.Exit(newApp(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr).run())
}
