package ras

import (
	"strconv"
	"strings"
)

// parseText reads the report as text. It has a table of groups of communicators with the same
// properties, and below that one section for each communicator of which there is more to say:
//
//	Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
//	    #  in group  per comm  per node  per comm  in group
//	    0         1         4         8        32        32   RUNNING  MISMATCH
//
//	#0-0 (27a079b828ff1a75) MISMATCH
//	  Communicator ranks have different AllReduce operation counts
//	  31 ranks have launched up to operation 6650
//	  Rank 5 has launched up to operation 6649 -- GPU 5 managed by process 77 on node 10.0.0.1
func parseText(text string) (Report, error) {
	p := textParser{sizes: map[string]int{}}
	for line := range strings.Lines(text) {
		p.line(strings.TrimRight(line, "\r\n"))
	}
	p.endComm()
	return p.Report, nil
}

type textParser struct {
	Report
	table bool           // the lines are rows of the table of groups
	sizes map[string]int // of the communicators, by the number of their group
	comm  *Comm          // whose section this is; nil outside of sections
	op    *Op            // whose counts follow; nil if something else follows
	lost  bool           // missing ranks follow
}

func (p *textParser) line(line string) {
	words := strings.Fields(line)
	switch {
	case strings.HasPrefix(line, "NCCL version ") && len(words) > 2:
		p.NCCL = words[2]
	case strings.HasPrefix(line, "Group ") && strings.HasSuffix(line, "Errors"):
		p.table = true
	case p.table && len(words) == 8 && number(words[0]) >= 0:
		p.Count += max(number(words[1]), 0)
		p.sizes[words[0]] = number(words[4])
	case p.table && len(words) == 0:
		p.table = false
	case strings.HasPrefix(line, "#"):
		p.section(line, words)
	case len(words) > 0 && !strings.HasPrefix(line, " "):
		p.endComm()
	case p.comm != nil:
		p.detail(strings.TrimSpace(line), words)
	}
}

// section begins a section about a communicator: "#0-0 (27a079b828ff1a75) MISMATCH".
func (p *textParser) section(line string, words []string) {
	p.endComm()
	group, _, _ := strings.Cut(strings.TrimPrefix(words[0], "#"), "-")
	size := p.sizes[group]
	if len(words) < 3 || size < 1 || size > maxSize {
		return
	}
	p.comm = &Comm{ID: strings.Trim(words[1], "()"), Size: size}
}

// endComm ends a section, also where the next one is about the same communicator.
func (p *textParser) endComm() {
	p.endOp()
	p.lost = false
	if p.comm != nil && (len(p.comm.Ops) > 0 || len(p.comm.Missing) > 0) {
		p.Comms = append(p.Comms, *p.comm)
	}
	p.comm = nil
}

func (p *textParser) endOp() {
	if p.op != nil && len(p.op.Groups) > 1 {
		p.comm.add(*p.op)
	}
	p.op = nil
}

const (
	differ   = "Communicator ranks have different "
	launched = " launched up to operation "
	none     = " not launched any operations"
)

// detail reads a line of a section.
func (p *textParser) detail(line string, words []string) {
	switch {
	case strings.HasPrefix(line, differ):
		p.endOp()
		p.lost = false
		name, counts := strings.CutSuffix(strings.TrimPrefix(line, differ), " operation counts")
		if counts {
			p.op = &Op{Name: strings.TrimSuffix(name, "collective")}
		}
	case strings.HasPrefix(line, "Missing communicator data from "):
		p.lost = true
	case p.lost && strings.HasPrefix(line, "The missing rank"):
		_, list, _ := strings.Cut(line, ": ")
		for text := range strings.SplitSeq(list, ",") {
			p.missing(Member{Rank: number(text)})
		}
	case p.lost && strings.HasPrefix(line, "Rank "):
		p.missing(member(line, words))
	case p.op != nil:
		p.count(line, words)
	}
}

func (p *textParser) missing(m Member) {
	if valid(m.Rank, p.comm.Size) && len(p.comm.Missing) < p.comm.Size {
		p.comm.Missing = append(p.comm.Missing, m)
	}
}

// count reads a line about ranks that have launched the same number of operations, or about one of
// those in the line before.
func (p *textParser) count(line string, words []string) {
	_, text, counts := strings.Cut(line, launched)
	if !counts && !strings.Contains(line, none) {
		p.named(line, words)
		return
	}
	text, _, _ = strings.Cut(text, " ")
	g := Group{N: 1}
	g.Count, _ = strconv.ParseUint(text, 10, 64)
	if strings.HasPrefix(line, "Rank ") {
		g.Members = append(g.Members, member(line, words))
	} else {
		g.N = number(words[0])
	}
	if g.N < 1 || g.N > p.comm.Size || len(p.op.Groups) == p.comm.Size {
		return
	}
	p.op.Groups = append(p.op.Groups, g)
}

// named adds a rank of the group in the line before.
func (p *textParser) named(line string, words []string) {
	n := len(p.op.Groups)
	if n == 0 || !strings.HasPrefix(line, "Rank ") {
		return
	}
	g, m := &p.op.Groups[n-1], member(line, words)
	if valid(m.Rank, p.comm.Size) && len(g.Members) < g.N {
		g.Members = append(g.Members, m)
	}
}

// member reads "Rank 5 ... -- GPU 5 managed by process 77 on node 10.0.0.1".
func member(line string, words []string) (m Member) {
	m.Rank = number(words[1])
	if _, process, found := strings.Cut(line, " managed by process "); found {
		pid, host, _ := strings.Cut(process, " on node ")
		m.PID, m.Host = max(number(pid), 0), host
	}
	return m
}

// number is -1 if a text is none.
func number(text string) int {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}
