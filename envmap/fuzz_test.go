package envmap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No environment and choice make Detect panic or return a placement out of range.
func FuzzDetect(f *testing.F) {
	files, _ := filepath.Glob("testdata/*-rank1.env")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "")
	}
	f.Add("RANK=1\nWORLD_SIZE=2\nTORCHELASTIC_RUN_ID=\n", "torchrun")
	f.Add("SLURM_PROCID=0\nSLURM_STEP_ID=1\nSLURM_NTASKS=1\nSLURM_NODEID=5\n"+
		"SLURM_TASKS_PER_NODE=1(x3)", "slurm")
	f.Fuzz(func(t *testing.T, environ, choice string) {
		p, err := Detect(ParseEnv(strings.Split(environ, "\n")), Launcher(choice))
		if err != nil {
			if err.Error() == "" || p.Launcher != "" {
				t.Errorf("error %q with placement %s", err, numbersOf(p))
			}
			return
		}
		for _, pair := range [][2]int{
			{p.Rank, p.Size}, {p.LocalRank, p.LocalSize}, {p.NodeRank, p.Nodes},
			{p.LocalRank, p.Size}, {p.NodeRank, p.Size},
		} {
			if index, count := pair[0], pair[1]; index < Unknown || count < Unknown || count == 0 ||
				count > MaxTasks || count != Unknown && index >= count {
				t.Errorf("index %d of %d: %s", index, count, numbersOf(p))
			}
		}
		if p.Size != Unknown && (p.LocalSize > p.Size || p.Nodes > p.Size) {
			t.Errorf("more local tasks or nodes than tasks: %s", numbersOf(p))
		}
		if len(p.Explain()) < 1+len(numbers) {
			t.Errorf("explanation too short: %+v", p.Explain())
		}
	})
}

func FuzzTasksOnNode(f *testing.F) {
	for _, list := range []string{
		"2,1(x2)", "2(x2)", "1", "", "3(x", "3(x0)", "-1", "1,,2", "99999999999999999999",
		"1(x99999999999)",
	} {
		f.Add(list, 1)
	}
	f.Fuzz(func(t *testing.T, list string, node int) {
		n, err := tasksOnNode(list, node)
		if n < Unknown || n > MaxTasks || err != nil && n != Unknown {
			t.Errorf("tasksOnNode(%q, %d) = %d, %v", list, node, n, err)
		}
	})
}

func TestTasksOnNode(t *testing.T) {
	for _, row := range []struct {
		list string
		want []int // by node
	}{
		{"2,1(x2)", []int{2, 1, 1, Unknown}},
		{"2(x2)", []int{2, 2, Unknown}},
		{"7", []int{7, Unknown}},
		{"4(x2),3,12(x2)", []int{4, 4, 3, 12, 12, Unknown}},
	} {
		for node, want := range row.want {
			if got, err := tasksOnNode(row.list, node); got != want || err != nil {
				t.Errorf("tasksOnNode(%q, %d) = %d, %v; want %d", row.list, node, got, err, want)
			}
		}
	}
	for _, bad := range []string{"", "x", "2(x", "2(x)", "2(x0)", "2(x2", "-1", "1,", "2(y2)"} {
		if n, err := tasksOnNode(bad, 1); err == nil {
			t.Errorf("tasksOnNode(%q) = %d, want an error", bad, n)
		}
	}
}
