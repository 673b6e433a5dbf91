package integration

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

var outputLines = flag.Int("output-lines", 100000, "lines of the ranks of TestOutputOfRanks")

// outputRanks is the number of ranks that write them.
const outputRanks = 16

// numberedLine is line i of a rank. Lines have different lengths.
func numberedLine(rank, i int) string {
	return fmt.Sprintf("rank %d line %d %s end\n", rank, i, strings.Repeat("x", (rank+7*i)%100))
}

// writeLines writes numbered lines to stdout, in pieces that do not end with them.
func writeLines(_ string, args []string) (int, error) {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return 0, err
	}
	rank, err := strconv.Atoi(os.Getenv("RANK"))
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriter(os.Stdout)
	for i := range n {
		out.WriteString(numberedLine(rank, i))
	}
	return 0, out.Flush()
}

// TestOutputOfRanks: with --tag and --log-dir the lines of 16 ranks on two hosts have the right
// tags and are not mixed, and the log of each rank has its output. Open MPI reads from a
// pseudoterminal, in pieces that do not end with a line if it is slower than the ranks.
func TestOutputOfRanks(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	n := *outputLines / outputRanks
	for _, launcher := range jobLaunchers {
		t.Run(launcher, func(t *testing.T) {
			logs := filepath.Join(t.TempDir(), "logs")
			perAgent := outputRanks / workersPerJob
			if launcher == "direct" {
				perAgent = outputRanks / 2
			}
			j := c.startJob(t, launcher, 2, []string{
				"-q", "--nproc-per-node", strconv.Itoa(perAgent), "--tag", "--log-dir", logs,
			}, worker("lines", jobDir, strconv.Itoa(n)))
			j.checkCommands(0)
			checkLogs(t, logs, n)
			shown := map[string]int{}
			for _, line := range j.linesWith("") {
				shown[line]++
			}
			damaged := 0
			for rank := range outputRanks {
				tag := fmt.Sprintf("[%d node%d] ", rank, 1+rank*2/outputRanks)
				for i := range n {
					if shown[tag+strings.TrimSuffix(numberedLine(rank, i), "\n")] != 1 {
						damaged++
					}
				}
			}
			if damaged > 0 && launcher != "openmpi" || damaged > n*outputRanks/10 {
				t.Errorf("%d lines of %d are not shown as they are", damaged, n*outputRanks)
			}
			t.Logf("%d lines of %d were divided", damaged, n*outputRanks)
		})
	}
}

// checkLogs checks that there is one run, with a log of n lines for each rank.
func checkLogs(t *testing.T, dir string, n int) {
	t.Helper()
	if runs, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(runs) != 2 {
		t.Errorf("the directory has %q, %v; want one run, and latest", runs, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "latest/attempt-0/*"))
	if err != nil || len(files) != outputRanks {
		t.Errorf("the last run has %q, %v; want %d logs", files, err, outputRanks)
	}
	for rank := range outputRanks {
		var want bytes.Buffer
		for i := range n {
			want.WriteString(numberedLine(rank, i))
		}
		name := fmt.Sprintf("latest/attempt-0/rank-%05d.log", rank)
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(text, want.Bytes()) {
			t.Errorf("%s has %d bytes, %v; want %d", name, len(text), err, want.Len())
		}
	}
}

// countLines writes numbers to stdout, and after each one to the file DIR/count.RANK.
func countLines(dir string, _ []string) (int, error) {
	f, err := os.Create(filepath.Join(dir, "count."+os.Getenv("RANK")))
	if err == nil {
		err = leaveRecord(dir)
	}
	for i := 1; err == nil; i++ {
		if _, err = fmt.Printf("%d\n", i); err == nil {
			_, err = f.WriteAt(fmt.Appendf(nil, "%09d", i), 0)
		}
	}
	return failCode, err
}

// TestLogsOfKilledAgent: nothing that a worker had written before its agent was killed is missing
// in its log, nor in those of the others, which are stopped.
func TestLogsOfKilledAgent(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	var scenarios []scenario
	for _, launcher := range jobLaunchers {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			logs := filepath.Join(t.TempDir(), "logs")
			j := c.runningJob(t, launcher, 2, []string{"--log-dir", logs, "--show", "none"},
				worker("count", jobDir))
			written := func(rank int) int {
				text, _ := os.ReadFile(filepath.Join(j.records(), fmt.Sprintf("count.%d", rank)))
				n, _ := strconv.Atoi(string(text))
				return n
			}
			if !eventually(waitLimit, func() bool { return written(lastRank) > 1000 }) {
				t.Fatal("the last rank writes nothing")
			}
			j.signal(j.agentOf(lastRank), syscall.SIGKILL)
			for _, command := range j.commands {
				command.code()
			}
			j.checkTree()
			j.removeLeftovers()
			for rank := range workersPerJob {
				name := fmt.Sprintf("latest/attempt-0/rank-%05d.log", rank)
				f, err := os.Open(filepath.Join(logs, name))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				got := 0
				for in := bufio.NewReader(f); ; got++ {
					line, err := in.ReadString('\n')
					if err == io.EOF {
						break
					}
					if line != fmt.Sprintf("%d\n", got+1) {
						t.Fatalf("line %d of %s is %q", got+1, name, line)
					}
				}
				if n := written(rank); got < n {
					t.Errorf("%s has %d lines of %d", name, got, n)
				}
			}
		}})
	}
	runConcurrently(t, scenarios)
}
