package rdzv

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"rdzv/rdzv/internal/record"
)

// onNode is a member with facts written as "name=value", "name/scope=value", and "$NAME=value" for
// a variable.
func onNode(node, program string, facts ...string) Member {
	m := Member{ID: fmt.Sprint(node, program, facts), Host: node, Node: node}
	m.Facts = Facts{Program: program, Variables: map[string]string{}}
	for _, text := range facts {
		name, value, _ := strings.Cut(text, "=")
		if variable, ok := strings.CutPrefix(name, "$"); ok {
			m.Facts.Variables[variable] = value
			continue
		}
		name, scope, _ := strings.Cut(name, "/")
		m.Facts.Known = append(m.Facts.Known, Fact{Name: name, Value: value, Scope: scope})
	}
	return m
}

func TestDifferences(t *testing.T) {
	many := func(n int, fact string) (members []Member) {
		for i := range n {
			members = append(members, onNode(fmt.Sprintf("node%d", i+1), "", fact))
		}
		return members
	}
	for name, c := range map[string]struct {
		members []Member
		want    []string
	}{
		"equal":    {many(3, "python=3.11"), nil},
		"no facts": {[]Member{onNode("a", ""), onNode("b", "")}, nil},
		"one of two": {
			[]Member{onNode("b", "", "python=3.9"), onNode("a", "", "python=3.11")},
			[]string{"python is 3.11 on a, but 3.9 on b"},
		},
		"majority first": {
			append(many(3, "python=3.9"), onNode("a", "", "python=3.11")),
			[]string{"python is 3.9 on node1, node2, node3, but 3.11 on a"},
		},
		"many hosts": {
			append(many(9, "x=3.9"), onNode("a", "", "x=3.11"), onNode("b", "", "x=3.10")),
			[]string{"x is 3.9 on node1, node2 and 7 more, but 3.11 on a, 3.10 on b"},
		},
		"many values": {
			[]Member{
				onNode("a", "", "x=1"), onNode("b", "", "x=2"), onNode("c", "", "x=3"),
				onNode("d", "", "x=4"), onNode("e", "", "x=5"), onNode("f", "", "x=6"),
				onNode("g", "", "x=7"), onNode("h", "", "x=8"), onNode("i", "", "x=9"),
			},
			[]string{"x is 1 on a, but 2 on b, 3 on c, 4 on d, 5 on e, 6 on f, 7 on g, 8 on h " +
				"and 1 other value"},
		},
		"unknown on one":  {append(many(2, "torch=2.6.0"), onNode("a", "")), nil},
		"another program": {append(many(2, "python=3.9"), onNode("a", "x", "python=3.11")), nil},
		"another scope":   {[]Member{onNode("a", "", "s/1=x"), onNode("b", "", "s/2=y")}, nil},
		"same scope": {
			[]Member{onNode("a", "", "s/1=x"), onNode("b", "", "s/1=y")},
			[]string{"s is x on a, but y on b"},
		},
		"ranks of one node": {
			[]Member{onNode("a", "", "$N=1"), onNode("a", "", "$N=2"), onNode("b", "", "$N=1")},
			nil,
		},
		"unset on one rank": {
			[]Member{onNode("a", "", "$N=1"), onNode("a", ""), onNode("b", "", "$N=1")}, nil,
		},
		"unset": {
			append(many(2, "x=1"), onNode("node3", "", "x=1", "$NCCL_DEBUG=INFO")),
			[]string{"NCCL_DEBUG is not set on node1, node2, but INFO on node3"},
		},
		"quoted": {
			[]Member{onNode("a", "", "$N="), onNode("b", "", "$N=a,b"), onNode("c", "", "$N=a,b")},
			[]string{`N is "a,b" on b, c, but "" on a`},
		},
		"its own value each": {
			[]Member{onNode("a", "", "$N=1"), onNode("b", "", "$N=2"), onNode("c", "", "$N=3")},
			nil,
		},
		"order": {
			[]Member{onNode("a", "", "s=1", "$B=1", "$A=1", "p=1"), onNode("b", "", "s=2", "p=2")},
			[]string{
				"s is 1 on a, but 2 on b", "p is 1 on a, but 2 on b",
				"A is 1 on a, but not set on b", "B is 1 on a, but not set on b",
			},
		},
	} {
		var got []string
		for _, c := range Compare(c.members) {
			if c.Differs() {
				got = append(got, c.String())
			}
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Different numbers of GPUs are allowed, but not none beside some. Agents that run different programs,
// and those that have been given a number of workers, are not compared.
func TestLackGPUs(t *testing.T) {
	const some, fewer, none = record.GPUs + "=8", record.GPUs + "=4", record.GPUs + "=0"
	for name, c := range map[string]struct {
		members []Member
		lacking string
	}{
		"equal":           {[]Member{onNode("a", "", some), onNode("b", "", some)}, ""},
		"fewer":           {[]Member{onNode("a", "", some), onNode("b", "", fewer)}, ""},
		"none at all":     {[]Member{onNode("a", "", none), onNode("b", "", none)}, ""},
		"given":           {[]Member{onNode("a", "", some), onNode("b", "")}, ""},
		"another program": {[]Member{onNode("a", "x", some), onNode("b", "y", none)}, ""},
		"another fact":    {[]Member{onNode("a", "", "python=1"), onNode("b", "", "python=0")}, ""},
		"one has none": {
			[]Member{onNode("a", "", some), onNode("b", "", none), onNode("c", "", fewer)},
			"cannot start one worker per GPU: number of GPUs is 8 on a, but 0 on b, 4 on c",
		},
		"agents of one host": {
			[]Member{onNode("a", "", some), onNode("a", "", none), onNode("b", "", some)},
			"cannot start one worker per GPU: number of GPUs is 8 on a, b, but 0 on a",
		},
	} {
		lacking := ""
		for _, c := range Compare(c.members) {
			if p, is := c.Problem(false); is {
				lacking += p.Text
			}
		}
		if lacking != c.lacking {
			t.Errorf("%s: %q, want %q", name, lacking, c.lacking)
		}
	}
}

// The leader compares the facts when all have joined. Differences are reported, or prevent the start if
// one agent is strict.
func TestStrict(t *testing.T) {
	for _, strict := range []bool{false, true} {
		var told []Notice
		j := start(t, LeaderConfig{Tasks: 2, Notify: func(n Notice) { told = append(told, n) }})
		sessions := make([]*Session, 2)
		for i := range sessions {
			m := member(i)
			m.Hosting, m.Strict = i == 0, strict && i == 1
			m.Facts.Known = []Fact{{Name: "python", Value: fmt.Sprint("3.", i)}, {Name: "n"}}
			sessions[i] = j.join(m)
		}
		const text = "python is 3.0 on node0, but 3.1 on node1"
		_, err := sessions[1].World(j.ctx)
		const want = "cannot start: " + text + " (--strict)"
		v, isVerdict := err.(*Verdict)
		if strict && (!isVerdict || v.Error() != want || v.Problems[0].Kind != DifferenceProblem) {
			t.Errorf("World: %v, want %q", err, want)
		} else if !strict && err != nil {
			t.Error(err)
		}
		each(sessions, func(i int, s *Session) { j.settle(s, succeeded(i)); j.leave(s) })
		if err := <-j.led; err != nil {
			t.Error(err)
		}
		var differences []string
		if !strict {
			differences = []string{"warning: " + text}
		}
		var got []string
		for _, n := range told {
			got = append(got, n.(NodesDiffer).String())
		}
		if !slices.Equal(got, differences) {
			t.Errorf("strict %v: the notices are %q, want %q", strict, got, differences)
		}
	}
}

// Of many differences the first are reported, and the number of the others.
func TestStrictManyDifferences(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := make([]*Session, 2)
	for i := range sessions {
		m := member(i)
		m.Hosting, m.Strict, m.Facts.Variables = i == 0, true, map[string]string{}
		for n := range record.MaxShown + 3 {
			m.Facts.Variables[fmt.Sprintf("NCCL_%02d", n)] = fmt.Sprint(i)
		}
		sessions[i] = j.join(m)
	}
	_, err := sessions[1].World(j.ctx)
	v, isVerdict := err.(*Verdict)
	if !isVerdict || len(v.Problems) != record.MaxShown || !strings.HasSuffix(v.Error(), "\nand 3 more") {
		t.Errorf("World: %v, want %d differences and 3 more", err, record.MaxShown)
	}
	each(sessions, func(i int, s *Session) { j.settle(s); j.leave(s) })
}

// What agents publish is limited, and valid UTF-8.
func TestFactsAreClipped(t *testing.T) {
	long := strings.Repeat("é", record.MaxFactValue)
	f := Facts{Program: long, Variables: map[string]string{"A\xff": long}}
	for i := range 2 * record.MaxFacts {
		f.Known = append(f.Known, Fact{Name: long, Value: "\xff", Scope: long})
		f.Variables[fmt.Sprint(i)] = "x"
	}
	b, err := json.Marshal(f.Clipped())
	if err != nil || len(b) > record.MaxFacts*4*record.MaxFactValue || !utf8.Valid(b) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if got := f.Clipped().Variables; len(got) != record.MaxFacts || len(f.Variables) != 2*record.MaxFacts+1 {
		t.Errorf("%d of %d variables, want %d", len(got), len(f.Variables), record.MaxFacts)
	}
}

// Facts of any agents can be compared, and the lines that people read are limited.
func FuzzCompare(f *testing.F) {
	f.Add(`{"known":[{"name":"a","value":"1"}]}`, `{"known":[{"name":"a","value":"2"}]}`)
	f.Add(`{"variables":{"A":"\u0000"}}`, `{"program":"x","variables":{"A":""}}`)
	f.Fuzz(func(t *testing.T, one, other string) {
		members := []Member{{ID: "1", Host: "node1"}, {ID: "2", Host: "node2"}}
		for i, text := range []string{one, other} {
			if json.Unmarshal([]byte(text), &members[i].Facts) != nil {
				return
			}
			members[i].Facts = members[i].Facts.Clipped()
		}
		for _, c := range Compare(members) {
			hosts := 0
			for _, g := range c.Groups {
				hosts += len(g.Hosts)
			}
			if c.Differs() && (hosts != 2 || len(c.String()) > 20*record.MaxFactValue) {
				t.Errorf("%+v: %q", c, c)
			}
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	var members []Member
	for i := range 1024 {
		members = append(members, onNode(fmt.Sprint("node", i), "", "script=1", "python=3.11",
			"torch=2.6.0", "$NCCL_DEBUG=INFO", "$OMP_NUM_THREADS=8"))
	}
	for b.Loop() {
		Compare(members)
	}
}
