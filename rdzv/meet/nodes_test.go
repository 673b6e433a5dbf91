package meet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The nodes of a job under Open MPI 4 are known on other hosts than mpirun's from the environment,
// on mpirun's from the command line of an ssh, and only if all hosts of the list have ranks.
func TestNodesUnderOpenMPI4(t *testing.T) {
	const list = "node[1:1-2]@0(2)"
	ssh := `ssh -x node2 orted -mca ess "env" -mca orte_node_regex "` + list + `" -mca plm "rsh"`
	for name, test := range map[string]struct {
		variable, command, count string
		want                     []string
	}{
		"other host":              {list, "sleep 1", "2", []string{"node1", "node2"}},
		"mpirun's host":           {"", ssh, "2", []string{"node1", "node2"}},
		"mpirun's has no ranks":   {list, "sleep 1", "1", nil},
		"all on mpirun's host":    {"", "sleep 1", "1", nil},
		"malformed":               {"node[1:", "sleep 1", "1", nil},
		"variable takes priority": {"node1", ssh, "1", []string{"node1"}},
	} {
		c := orteConfig(t, 0, 2)
		c.Env["OMPI_MCA_orte_node_regex"] = test.variable
		c.Env["OMPI_MCA_orte_num_nodes"] = test.count
		c.PID, c.Proc = 30, fstest.MapFS{ // 20 is mpirun, its children this agent and 40
			"30/stat": {Data: fmt.Appendf(nil, "30 (rdzv) S 20 %s",
				strings.Repeat("1 ", 20))},
			"20/stat": {Data: fmt.Appendf(nil, "20 (mpirun) S 1 %s",
				strings.Repeat("1 ", 20))},
			"20/task/20/children": {Data: []byte("30 40 ")},
			"40/cmdline": {Data: []byte(strings.ReplaceAll(test.command, " ",
				"\x00") + "\x00")},
		}
		if got := NodesOf(c); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
