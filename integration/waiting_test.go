package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Who is missing is said again and again, as far as the launcher lets it be known.
func TestWaiting(t *testing.T) {
	b := newBed(t, 2)
	absent := `[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 2 ] && exec "$1" worker until "$2" "$2/end"; shift 2; exec "$@"`
	underOpenMPI := func(t *testing.T) {
		s := b.stay(t)
		line := append([]string{"--host", "node1:2,node2:2", "-np", "4", "sh", "-c", absent, "sh", self, s.dir("absent")}, rdzvExec([]string{"--join-timeout", "11s"}, []string{"true"})...)
		job := s.on(1, s.openMPI(line...)...)
		if code := job.code(); code != 124 {
			t.Errorf("mpirun ended with %d, want 124", code)
		}
		if n := len(job.linesWith("rdzv: 3 of 4 agents joined; waiting for rank 2")); n < 2 {
			t.Errorf("in 11 s it was said %d times who is missing", n)
		}
		if len(job.linesWith("rdzv: timed out after 11s (--join-timeout): 3 of 4 agents joined; waiting for rank 2")) == 0 {
			t.Error("it was not said in the end that rank 2 is missing")
		}
	}
	underHydra := func(t *testing.T) {
		s := b.stay(t)
		line := append([]string{"-hosts", "node1,node2", "-ppn", "2", "-np", "4", "sh", "-c", absent, "sh", self, s.dir("absent")}, rdzvExec([]string{"--join-timeout", "7s"}, []string{"true"})...)
		job := s.on(1, s.hydra(line...)...)
		job.waitFor("Hydra does not report which are missing")
		job.waitFor("not all of its 4 agents joined within 7s (--join-timeout)")
		if err := os.WriteFile(filepath.Join(s.root, "absent", "end"), nil, 0o600); err != nil { // Hydra waits for that rank
			t.Fatal(err)
		}
		job.code()
	}
	// Whoever finds no store says what each address answered.
	nobody := func(t *testing.T) {
		s := b.stay(t)
		agent := s.on(2, rdzvExec([]string{"--nodes", "2", "--store", "node1", "--join-timeout", "2s"}, []string{"true"})...)
		if code := agent.code(); code != 124 {
			t.Errorf("rdzv ended with %d, want 124", code)
		}
		if lines := agent.linesWith("rdzv:", "10.77.0.11"); len(lines) == 0 || !tried.MatchString(strings.Join(lines, " ")) {
			t.Errorf("the addresses tried, and their answers, are not in %q", lines)
		}
		if len(agent.linesWith("rdzv: hint:", `"node1"`)) == 0 {
			t.Error("there is no hint")
		}
	}
	// A terminal has one line that renews itself, and that is gone when the job begins.
	terminal := func(t *testing.T) {
		s := b.stay(t)
		line := s.exec("--nodes", "2", "--store", "node1")
		shown := filepath.Join(s.root, "shown")
		first := s.startWith([]string{"TERM=xterm"}, b.on(1, "script", "-qfec", quoted(line), shown)...)
		text := func() string { text, _ := os.ReadFile(shown); return string(text) }
		if !eventually(waitLimit, func() bool { return strings.Contains(text(), "1 of 2 agents joined (from node1) (10s)") }) {
			t.Error("the terminal does not show who is here")
		}
		second := s.on(2, line...)
		for _, agent := range []*process{first, second} {
			if code := agent.code(); code != 0 {
				t.Errorf("an agent ended with %d", code)
			}
		}
		const before, renewed = "\r\x1b[Krdzv: 1 of 2 agents joined (from node1) (5s)", "\r\x1b[Krdzv: 1 of 2 agents joined (from node1) (10s)\r\x1b[K"
		if !strings.Contains(text(), before+renewed) {
			t.Errorf("the terminal was shown %q", text())
		}
	}
	// The time counts from the start of the first agent, whichever of the two hosts the store, and not anew from there.
	once := func(t *testing.T) {
		s := b.stay(t)
		line := rdzvExec([]string{"--nodes", "3", "--join-timeout", "5s"}, []string{"true"})
		first := s.on(1, line...)
		first.waitFor("no other agent has connected after 3s")
		second := s.on(2, line...)
		for _, agent := range []*process{first, second} {
			if code := agent.code(); code != 124 {
				t.Errorf("an agent ended with %d, want 124", code)
			}
		}
		if took := time.Since(first.started); took > 7*time.Second {
			t.Errorf("the agents gave up %v after the first had started, want 5s", took.Round(time.Millisecond))
		}
	}
	runConcurrently(t, []scenario{
		{"openmpi", underOpenMPI}, {"hydra", underHydra}, {"nobody", nobody}, {"terminal", terminal}, {"once", once},
	})
}
