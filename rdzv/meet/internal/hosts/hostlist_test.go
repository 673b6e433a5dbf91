package hosts

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseNodeRegex(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"node[1:1-3]@0(3)", "node1 node2 node3"},
		{"node[1:1,3,2]@0(3)", "node1 node3 node2"},
		{"n[2:8-10].x,login@0(4)", "n08.x n09.x n10.x login"},
		{"alone@0(1)", "alone"},
		{"rack-a[3:7]-ib,b[1:1-2],c[0:12]", "rack-a007-ib b1 b2 c12"},
		{recorded(t, "openmpi4-launchernode-ip-rank2")["OMPI_MCA_orte_node_regex"],
			"node1 10.77.0.12 10.77.0.13"},
		{recorded(t, "openmpi4-headrank-rank2")["OMPI_MCA_orte_node_regex"], "node1 node2"},
	} {
		got, err := ParseNodeRegex(row.text)
		if err != nil || strings.Join(got, " ") != row.want {
			t.Errorf("%q: got %v, %v, want %s", row.text, got, err, row.want)
		}
	}
	for _, bad := range []string{
		"", "@0(3)", "node[1:1-3", "node[1-3]", "node[1:3-1]", "node[1:a]", "node[x:1]",
		"node[1:1]b[1:2]", "node[1:0-99999999]", "n[1:-1]", "n[99:1]",
	} {
		if got, err := ParseNodeRegex(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
}

func FuzzNodeRegex(f *testing.F) {
	f.Add("node[1:1-3],[2:10].77.0.12@0(3)")
	f.Add("n[0:0-65535],m[0:0-65535]")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := ParseNodeRegex(text)
		if err == nil && (len(names) == 0 || len(names) > maxNodes) {
			t.Errorf("%q: %d names", text, len(names))
		}
	})
}

func TestParseHostlist(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"node1", "node1"},
		{"node[1-3,7],gpu[08-10]-ib,login",
			"node1 node2 node3 node7 gpu08-ib gpu09-ib gpu10-ib login"},
		{"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
		{"n[098-101]", "n098 n099 n100 n101"},
		{"a[0-1]", "a0 a1"},
		{"cloud-[0,00,000].example.org",
			"cloud-0.example.org cloud-00.example.org cloud-000.example.org"},
		{recorded(t, "slurm22-srun-rank2")["SLURM_STEP_NODELIST"], "node1 node2"},
	} {
		got, err := ParseHostlist(row.text)
		if err != nil || strings.Join(got, " ") != row.want {
			t.Errorf("%q: got %v, %v, want %s", row.text, got, err, row.want)
		}
	}
	for _, bad := range []string{
		"", ",", "node[", "node]", "node[]", "node[3-1]", "node[1-]", "a,,b", "n[1-70000]",
		"n[1-300]m[1-300]", "n[[1]]", "n[-1]", "n[9223372036854775807]",
	} {
		if got, err := ParseHostlist(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
}

func FuzzHostlist(f *testing.F) {
	f.Add("node[1-3,7],gpu[08-10]-ib,login")
	f.Add("r[1-9]n[1-9]x[1-9]y[1-9]z[1-9]")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := ParseHostlist(text)
		if err == nil && (len(names) == 0 || len(names) > maxNodes) {
			t.Errorf("%q: %d names", text, len(names))
		}
	})
}

func TestParseScontrol(t *testing.T) {
	text := "NodeName=node1 Arch=x86_64 CPUTot=4 NodeAddr=10.77.0.11 NodeHostName=node1 #1 SMP\n" +
		"NodeName=node2 State=DOWN\nNodeName=n3\n   NodeAddr=n3.x\n"
	got := fmt.Sprint(ParseScontrol(text))
	if want := "[{node1 10.77.0.11} {node2 node2} {n3 n3.x}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzScontrol(f *testing.F) {
	f.Add("NodeName=node1 NodeAddr=10.77.0.11\n")
	f.Fuzz(func(t *testing.T, text string) { ParseScontrol(text) })
}
