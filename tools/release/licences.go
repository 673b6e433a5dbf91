package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenceFile is the name of a file with a licence, or with a notice that Apache 2.0 (4d) requires.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([._-].*)?$`)

// licences are those of all modules that the programs contain, and of Go's standard library.
func (g toolchain) licences(programs []program) ([]byte, error) {
	modules := map[string]module{}
	for _, p := range programs {
		found, err := g.modules(p)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			known := modules[m.name]
			m.dirs = append(m.dirs, known.dirs...)
			modules[m.name] = m
		}
	}
	goroot, err := g.output(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	root := strings.TrimSpace(string(goroot))
	modules["Go's standard library"] = module{"Go's standard library", root, []string{root}}
	return collect(modules)
}

// module is a module, or another collection of packages, in a program.
type module struct {
	name string
	root string
	dirs []string // of the packages in the program
}

// modules lists the modules in a program. The go command says where their packages are; the program
// says that there are no others.
func (g toolchain) modules(p program) ([]module, error) {
	out, err := g.output(goEnviron(p.arch), "go", "list", "-deps", "-f", "{{with .Module}}"+
		"{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/rdzv")
	if err != nil {
		return nil, err
	}
	found := map[string]module{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			continue
		}
		m := found[fields[0]]
		found[fields[0]] = module{fields[0], fields[1], append(m.dirs, fields[2])}
	}
	return linked(p, found)
}

// linked are the modules in a program, each of which must be among those that were found.
func linked(p program, found map[string]module) (modules []module, err error) {
	info, err := buildinfo.Read(bytes.NewReader(p.data))
	if err != nil {
		return nil, fmt.Errorf("cannot read which modules are in the program for %s: %w", p.arch, err)
	}
	for _, d := range info.Deps {
		m, ok := found[d.Path+" "+d.Version]
		if !ok || d.Replace != nil {
			return nil, fmt.Errorf("cannot find the licence of %s %s, which is in the program for %s",
				d.Path, d.Version, p.arch)
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// collect reads the licences of modules, sorted by their names.
func collect(modules map[string]module) ([]byte, error) {
	names := make([]string, 0, len(modules))
	for name := range modules {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	b.WriteString("The program rdzv contains the following modules. Their licences follow.\n\n")
	for _, name := range names {
		fmt.Fprintln(&b, "    "+name)
	}
	for _, name := range names {
		if err := modules[name].writeLicences(&b); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// writeLicences writes the licences in the module's root, and in the directories between it and a
// package, where copied code has its own.
func (m module) writeLicences(b *bytes.Buffer) error {
	dirs := []string{m.root}
	for _, d := range m.dirs {
		for ; strings.HasPrefix(d, m.root+"/"); d = filepath.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs)
	written := 0
	for _, d := range slices.Compact(dirs) {
		entries, err := os.ReadDir(d)
		if err != nil {
			return fmt.Errorf("cannot look for the licence of %s: %w", m.name, err)
		}
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			path := filepath.Join(d, e.Name())
			text, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("cannot read the licence of %s: %w", m.name, err)
			}
			fmt.Fprintf(b, "\n%[1]s\n%[2]s: %[3]s\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 100), m.name,
				strings.TrimPrefix(path, m.root+"/"), bytes.TrimSpace(text))
			written++
		}
	}
	if written == 0 {
		return fmt.Errorf("cannot find a licence of %s in %s", m.name, m.root)
	}
	return nil
}
