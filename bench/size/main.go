// Size prints what is in a Go program, as Markdown: its sections, then its modules
// and its largest packages by the code and the data that bear their names.
//
//	go run ./bench/size STRIPPED WITH-SYMBOLS
//
// Both are the same program; the stripped one is what users get.
package main

import (
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: size STRIPPED WITH-SYMBOLS")
		os.Exit(2)
	}
	if err := report(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func report(w io.Writer, stripped, full string) error {
	if err := sections(w, stripped); err != nil {
		return err
	}
	packages, err := measure(full)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(full)
	if err != nil {
		return err
	}
	modules := map[string]weight{}
	for name, has := range packages {
		modules[module(name, info)] = modules[module(name, info)].plus(has)
	}
	table(w, "module", modules, 20)
	table(w, "package", packages, 25)
	return nil
}

// sections prints where the bytes of the file are.
func sections(w io.Writer, path string) error {
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	program, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer program.Close()
	fmt.Fprintf(w, "| section | kB of %d |\n| --- | --- |\n", file.Size()/1000)
	for _, s := range program.Sections {
		if s.Type != elf.SHT_NOBITS && s.Size >= 1000 {
			fmt.Fprintf(w, "| %s | %d |\n", s.Name, s.Size/1000)
		}
	}
	return nil
}

// weight is what a package or a module has in a program, in bytes.
type weight struct{ code, data uint64 }

func (a weight) plus(b weight) weight { return weight{a.code + b.code, a.data + b.data} }

// measure adds up the symbols of each package. What takes no room in the file is left out.
func measure(path string) (map[string]weight, error) {
	program, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	symbols, err := program.Symbols()
	if err != nil {
		return nil, fmt.Errorf("cannot read the symbols of %q: %w", path, err)
	}
	packages := map[string]weight{}
	for _, s := range symbols {
		if int(s.Section) >= len(program.Sections) || s.Section == elf.SHN_UNDEF {
			continue
		}
		name, in := packageOf(s.Name), program.Sections[s.Section]
		switch {
		case in.Type == elf.SHT_NOBITS:
		case in.Flags&elf.SHF_EXECINSTR != 0:
			packages[name] = packages[name].plus(weight{code: s.Size})
		default:
			packages[name] = packages[name].plus(weight{data: s.Size})
		}
	}
	return packages, nil
}

const linkers = "(of the linker)"

// packageOf is the import path in the name of a symbol: "net/http" of "net/http.(*Client).Do".
func packageOf(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, "[") // a type argument has paths of its own
	symbol, _, _ = strings.Cut(symbol, "(")
	slash := strings.LastIndex(symbol, "/") + 1
	last, _, found := strings.Cut(symbol[slash:], ".")
	if !found || strings.Contains(symbol, ":") {
		return linkers
	}
	path, err := url.PathUnescape(symbol[:slash] + last) // dots in the last element are written %2e
	if err != nil {
		return linkers
	}
	return path
}

// module is the module of a package.
func module(path string, info *buildinfo.BuildInfo) string {
	best := ""
	for _, dep := range info.Deps {
		if (path == dep.Path || strings.HasPrefix(path, dep.Path+"/")) && len(dep.Path) > len(best) {
			best = dep.Path
		}
	}
	switch {
	case best != "":
		return best
	case path == linkers:
		return linkers
	case path == "main" || strings.HasPrefix(path, info.Main.Path+"/"):
		return info.Main.Path
	default:
		return "standard library"
	}
}

// table prints the heaviest.
func table(w io.Writer, what string, all map[string]weight, most int) {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b].code+all[b].data, all[a].code+all[a].data), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "\n| %s | code, kB | data, kB |\n| --- | --- | --- |\n", what)
	shown := min(most, len(names))
	for _, name := range names[:shown] {
		fmt.Fprintf(w, "| %s | %d | %d |\n", name, all[name].code/1000, all[name].data/1000)
	}
	var rest weight
	for _, name := range names[shown:] {
		rest = rest.plus(all[name])
	}
	fmt.Fprintf(w, "| %d others | %d | %d |\n", len(names)-shown, rest.code/1000, rest.data/1000)
}
