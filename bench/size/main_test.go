package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackageOf(t *testing.T) {
	for symbol, want := range map[string]string{
		"net/http.(*Client).Do":                          "net/http",
		"main.main":                                      "main",
		"gopkg.in/yaml%2ev2.Marshal":                     "gopkg.in/yaml.v2",
		"slices.SortFunc[go.shape.[]net/netip.Addr,x/y]": "slices",
		"google.golang.org/grpc..inittask":               "google.golang.org/grpc",
		"go:func.*":                                      linkers,
		"type:.eq.net/http.connectMethodKey":             linkers,
		"runtime.mheap_":                                 "runtime",
	} {
		if got := packageOf(symbol); got != want {
			t.Errorf("%s is of %s, want %s", symbol, got, want)
		}
	}
}

func TestReportOfThisProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "size") // go test strips its own
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var text strings.Builder
	if err := report(&text, program, program); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| .text | ", "| standard library | ", "| runtime | "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
