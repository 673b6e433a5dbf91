// Package node tells what people want to know of a node before a job runs on it: processors,
// memory, limits, accelerators, networks. It reads files below a root, so that any machine can be a
// fixture, and leaves out what they do not tell.
package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Fact is one fact about the node.
type Fact struct {
	Name, Value string
	Warning     string // why the value may cause trouble; "" if it is good
	Hint        string // what to do about it
}

// Files reads facts about a node. Space and OpenFiles are needed by Facts only.
type Files struct {
	Root  fs.FS                           // of the file system
	Space func(dir string) (Space, error) // of the file system with a directory
	// OpenFiles is the soft limit of open files of the workers. This process's own may be higher,
	// because Go raises it. 0 is unknown.
	OpenFiles uint64
	// Processes says that the facts are also about the processes of the node.
	Processes bool
}

// Space is the size of a file system, in bytes.
type Space struct{ Total, Free uint64 }

// Facts are the facts about the node, in the order in which people read them. ctx ends what takes
// long.
func (f Files) Facts(ctx context.Context) (facts []Fact) {
	facts = append(facts, Fact{Name: "kernel", Value: f.text("proc/sys/kernel/osrelease")})
	facts = append(facts, f.memory(), f.sharedMemory())
	ports := f.infiniBand()
	facts = append(facts, f.limits(ports.Value != "")...)
	facts = append(facts, f.gpus(ctx)...)
	facts = append(facts, ports)
	return known(facts)
}

// MTU is that of a network interface.
func (f Files) MTU(name string) Fact {
	if name == "" {
		return Fact{}
	}
	return Fact{Name: "MTU of " + name, Value: f.text("sys/class/net/" + name + "/mtu")}
}

// known are the facts that have a value.
func known(facts []Fact) (all []Fact) {
	for _, fact := range facts {
		if fact.Value != "" {
			all = append(all, fact)
		}
	}
	return all
}

// maxFile is how much of a file is read.
const maxFile = 64 << 10

// text is the text of a small file without the white space around it, "" if it cannot be read.
func (f Files) text(name string) string {
	b, err := fs.ReadFile(f.Root, name)
	if err != nil || len(b) > maxFile {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// list are the names in a directory, in order; none if it cannot be read.
func (f Files) list(dir string) (names []string) {
	entries, err := fs.ReadDir(f.Root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// field returns the rest of the first line that begins with a label, "" if there is none. White
// space around the line and the rest is ignored.
func field(text, label string) string {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), label); found {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// bytesText is a size for people: "64 MiB". Two nodes that hardly differ have the same one.
func bytesText(n uint64) string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case n > 0 && n < mib:
		return fmt.Sprintf("%d KiB", (n+kib/2)/kib)
	case n < 4*gib:
		return fmt.Sprintf("%d MiB", (n+mib/2)/mib)
	}
	return fmt.Sprintf("%d GiB", (n+gib/2)/gib)
}

// tally counts equal texts and lists them in the order of their first occurrence: "7 x A, 1 x B".
func tally(texts []string) string {
	counts := map[string]int{}
	var order []string
	for _, text := range texts {
		if counts[text] == 0 {
			order = append(order, text)
		}
		counts[text]++
	}
	for i, text := range order {
		order[i] = fmt.Sprintf("%d x %s", counts[text], text)
	}
	return strings.Join(order, ", ")
}
