package check

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rdzv/rdzv"
)

// node is the only agent of a node, with these facts: "name=value" in turn.
func node(name string, facts ...string) Node {
	m := Node{Member: rdzv.Member{ID: name, Node: name, Host: name, PID: 7, Tasks: rdzv.Unplaced(1)}}
	for _, f := range facts {
		fact, value, _ := strings.Cut(f, "=")
		m.NodeFacts = append(m.NodeFacts, Fact{Name: fact, Value: value})
	}
	return m
}

// problem, warning, own, known, variables and runs add to a member.
func problem(m Node, text, hint string) Node {
	m.Problems = append(m.Problems, rdzv.Problem{Kind: rdzv.OtherProblem, Text: text, Hint: hint})
	return m
}

func warning(m Node, fact, value, text, hint string) Node {
	f := Fact{Name: fact, Value: value, Warning: text, Hint: hint}
	m.NodeFacts = append(m.NodeFacts, f)
	return m
}

func own(m Node, fact, value string) Node {
	m.NodeFacts = append(m.NodeFacts, Fact{Name: fact, Value: value, Own: true})
	return m
}

func known(m Node, fact, value string) Node {
	m.Facts.Known = append(m.Facts.Known, rdzv.Fact{Name: fact, Value: value})
	return m
}

func variables(m Node, v map[string]string) Node {
	m.Facts.Variables = v
	return m
}

func runs(m Node, program string) Node {
	m.Facts.Program = program
	return m
}

// agent is another agent of a node.
func agent(of Node, id string) Node {
	of.ID, of.PID = id, of.PID+1
	return of
}

// text writes a row in a line: "!fact: value on nodes | value on nodes".
func (r Row) text() string {
	mark := ""
	if r.Warned {
		mark = "!"
	} else if r.Differs() {
		mark = "*"
	}
	var groups []string
	for _, g := range r.Groups {
		groups = append(groups, g.Value+" on "+strings.Join(g.Nodes, " "))
	}
	return mark + r.Fact + ": " + strings.Join(groups, " | ")
}

func (f Finding) text() string {
	return strings.TrimSpace(fmt.Sprintf("%s (%s) %s", f.Text, f.Hint, strings.Join(f.Nodes, " ")))
}

func texts[T interface{ text() string }](list []T) (lines []string) {
	for _, x := range list {
		lines = append(lines, x.text())
	}
	return lines
}

// differ is the warning that the nodes differ in these facts.
func differ(facts string) string {
	return "the nodes differ in what should be the same for a job: " + facts +
		" (exec warns of this; with --strict it does not start)"
}

func TestOf(t *testing.T) {
	a := node("a", "kernel=6.1")
	for name, c := range map[string]struct {
		members                  []Node
		rows, problems, warnings []string
	}{
		"no agent": {},
		"one node": {
			members: []Node{variables(known(a, "python", "3.11"),
				map[string]string{"NCCL_DEBUG": "INFO"})},
			rows: []string{"kernel: 6.1 on a", "python: 3.11 on a"},
		},
		"the same": {
			members: []Node{a, node("b", "kernel=6.1")},
			rows:    []string{"kernel: 6.1 on a b"},
		},
		"majority first": {
			members: []Node{node("a", "x=1"), node("b", "x=2"), node("c", "x=2"), node("d", "x=3")},
			rows:    []string{"*x: 2 on b c | 1 on a | 3 on d"},
		},
		"own values keep the order of the nodes": {
			members: []Node{own(node("b"), "address", "10.0.0.2"),
				own(node("a"), "address", "10.0.0.1"), own(node("c"), "address", "10.0.0.1")},
			rows: []string{"address: 10.0.0.2 on b | 10.0.0.1 on a c"},
		},
		"only some nodes have it": {
			members: []Node{a, node("b", "kernel=6.1", "GPUs=8"), node("c", "GPUs=8")},
			rows:    []string{"kernel: 6.1 on a b", "GPUs: 8 on b c"},
		},
		"agents of one node": {
			members: []Node{node("a", "CPUs=2", "kernel=6.1"),
				agent(node("a", "CPUs=4", "kernel=6.1"), "a2"), node("b", "CPUs=2")},
			rows: []string{"*CPUs: 2; 4 on a | 2 on b", "kernel: 6.1 on a"},
		},
		"what exec compares": {
			members: []Node{
				variables(known(node("a"), "python", "3.11"), map[string]string{"NCCL_DEBUG": "INFO"}),
				variables(known(node("b"), "python", "3.9"), map[string]string{"NCCL_IB_TC": "1"}),
				variables(known(node("c"), "python", "3.11"), map[string]string{"NCCL_IB_TC": "1"}),
			},
			rows: []string{
				"!python: 3.11 on a c | 3.9 on b",
				"!NCCL_DEBUG: not set on b c | INFO on a",
				"!NCCL_IB_TC: 1 on b c | not set on a",
			},
			warnings: []string{differ("python, NCCL_DEBUG, NCCL_IB_TC")},
		},
		"two programs, of which each differs": {
			members: []Node{
				runs(known(node("a"), "python", "3.11"), "x"), runs(known(node("b"), "python", "3.9"), "x"),
				runs(known(node("c"), "python", "3.11"), "y"), runs(known(node("d"), "python", "3.8"), "y"),
			},
			rows:     []string{"!python: 3.11 on a c | 3.9 on b | 3.8 on d"},
			warnings: []string{differ("python")},
		},
		"a variable that each node has for itself": {
			members: []Node{
				variables(a, map[string]string{"NCCL_X": "1"}),
				variables(node("b"), map[string]string{"NCCL_X": "2"}),
				variables(node("c"), map[string]string{"NCCL_X": "3"}),
			},
			rows: []string{"kernel: 6.1 on a"},
		},
		"problems": {
			members: []Node{
				problem(node("a"), "no GPU", "see nvidia-smi"),
				agent(problem(node("a"), "no GPU", "see nvidia-smi"), "a2"),
				problem(problem(node("b"), "no script", ""), "no GPU", "see nvidia-smi"),
			},
			problems: []string{"no GPU (see nvidia-smi) a b", "no script () b"},
		},
		"warnings": {
			members: []Node{
				warning(node("a"), "shm", "1 MiB", "small", "enlarge it"), node("b", "shm=12 GiB"),
				warning(node("c"), "shm", "1 MiB", "small", "enlarge it"),
			},
			rows:     []string{"!shm: 1 MiB on a c | 12 GiB on b"},
			warnings: []string{"small (enlarge it) a c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Of("check-x", 9, c.members)
			for _, got := range []struct{ got, want []string }{
				{texts(r.Rows), c.rows}, {texts(r.Problems), c.problems}, {texts(r.Warnings), c.warnings},
			} {
				if !slices.Equal(got.got, got.want) {
					t.Errorf("%q, want %q", got.got, got.want)
				}
			}
		})
	}
}

// Of 64 nodes with 8 agents each, three differ.
func TestManyNodes(t *testing.T) {
	var members []Node
	for i := range 64 {
		m := node(fmt.Sprintf("n%02d", i), "kernel=6.8")
		switch i {
		case 0: // the first node is not the majority
			m = node("n00", "kernel=5.15")
		case 20:
			m = problem(m, "no script", "copy it")
		case 63:
			m = warning(m, "GPU links", "x8", "narrow", "check the slot")
		}
		for rank := range 8 {
			members = append(members, agent(m, fmt.Sprint(i, " ", rank)))
		}
	}
	r := Of("check-x", 512, members)
	if r.Joined != 512 || r.Workers != 512 || len(r.Nodes) != 64 || r.Nodes[63] != "n63" {
		t.Errorf("%d agents, %d workers, nodes %q", r.Joined, r.Workers, r.Nodes)
	}
	kernel := r.Rows[0].Groups
	if len(kernel) != 2 || kernel[0].Value != "6.8" || len(kernel[0].Nodes) != 63 ||
		!reflect.DeepEqual(kernel[1], Group{Value: "5.15", Nodes: []string{"n00"}}) {
		t.Errorf("kernels %+v", kernel)
	}
	got := slices.Concat(texts(r.Rows[1:]), texts(r.Problems), texts(r.Warnings))
	want := []string{"!GPU links: x8 on n63", "no script (copy it) n20", "narrow (check the slot) n63"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nodes that have the same host name, such as containers, are told apart by a process.
func TestNodeNames(t *testing.T) {
	one, two, alone := node("x"), node("x"), node("y")
	one.Node, two.Node, two.PID, alone.Node = "1", "2", 9, ""
	r := Of("check-x", 3, []Node{one, two, agent(two, "third"), alone})
	if want := []string{"x", "x (pid 9)", "y"}; !slices.Equal(r.Nodes, want) {
		t.Errorf("nodes %q, want %q", r.Nodes, want)
	}
}

// The problems of a verdict that are not those of members are added.
func TestAddProblems(t *testing.T) {
	for name, c := range map[string]struct {
		verdict *rdzv.Verdict
		want    []string
	}{
		"none":    {nil, []string{"no GPU () a"}},
		"success": {&rdzv.Verdict{Kind: rdzv.Done}, []string{"no GPU () a"}},
		"known": {&rdzv.Verdict{Kind: rdzv.Unready, Problems: []rdzv.NodeProblem{
			{Problem: rdzv.Problem{Text: "no GPU"}, Hosts: []string{"a"}},
		}}, []string{"no GPU () a"}},
		"of a node": {&rdzv.Verdict{Kind: rdzv.Unready, Problems: []rdzv.NodeProblem{
			{Problem: rdzv.Problem{Text: "port in use", Hint: "use another"}, Hosts: []string{"a", "b"}},
		}}, []string{"no GPU () a", "port in use (use another) a b"}},
		"lost": {&rdzv.Verdict{Kind: rdzv.Lost, Text: "connection reset"}, []string{"no GPU () a"}},
		"of the job": {&rdzv.Verdict{Kind: rdzv.Unready, Text: "cannot assign ranks"},
			[]string{"no GPU () a", "cannot assign ranks ()"}},
	} {
		r := Of("check-x", 2, []Node{problem(node("a"), "no GPU", ""), node("b")})
		if r.AddProblems(c.verdict); !slices.Equal(texts(r.Problems), c.want) {
			t.Errorf("%s: %q, want %q", name, texts(r.Problems), c.want)
		}
	}
}

// Programs that read the report find lists, also if they are empty.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(Of("check-x", 1, nil))
	const want = `{"job":"check-x","tasks":1,"joined":0,"workers":0,"nodes":[],"facts":[],` +
		`"problems":[],"warnings":[]}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}

// A value that is not known is no difference, and is told with the reason.
func TestNotCompared(t *testing.T) {
	unknown := node("node2")
	unknown.NodeFacts = []Fact{
		{Name: "torch", Value: "/opt/python3 is a script that chooses the python", Unknown: true},
	}
	r := Of("job", 2, []Node{known(node("node1"), "torch", "2.6.0"), unknown})
	if len(r.Rows) != 1 || len(r.Rows[0].Groups) != 2 || r.Rows[0].Differs() || len(r.Warnings) > 0 {
		t.Fatalf("%+v, want a row with two values and no difference", r)
	}
	const want = "not compared: /opt/python3 is a script that chooses the python"
	if g := r.Rows[0].Groups[1]; g.Value != want || !g.Unknown || g.Nodes[0] != "node2" {
		t.Errorf("%+v, want %q on node2", g, want)
	}
}

// With Strict a difference is a problem.
func TestStrict(t *testing.T) {
	strict := known(node("b"), "python", "3.9")
	strict.Strict = true
	r := Of("job", 3, []Node{known(node("a"), "python", "3.11"), problem(strict, "bad", "")})
	want := []string{
		"bad () b", "cannot start: python is 3.11 on a, but 3.9 on b (--strict) ()",
	}
	if got := texts(r.Problems); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if of := r.VerdictProblems(); len(of) != 2 || of[0].Hosts[0] != "b" || of[1].Text == "" {
		t.Errorf("problems of the verdict: %+v", of)
	}
}
