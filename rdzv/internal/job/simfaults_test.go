package job

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fault is a mistake in this package that the simulation must find.
type fault struct {
	name string
	file string
	edit []string // what stands there, and what the mistake is instead
}

var faults = []fault{
	{"the world has no condition", "world.go", []string{
		"[]Cond{absent(g.keys.Verdict()), absent(g.keys.World())},", "[]Cond{absent(g.keys.World())},"}},
	{"a verdict has no condition", "ending.go", []string{
		"append([]Cond{absent(k.Verdict())}, one.conds...)", "append([]Cond{}, one.conds...)"}},
	{"an agent that returns is lost", "agents.go", []string{
		"[]Cond{absent(run.Agents().Of(m.id)), absent(run.Lost().Of(m.id))},", "[]Cond{absent(run.Lost().Of(m.id))},"}},
	{"Restore swaps two seats", "restore.go", []string{
		"	t.restoring = false\n", "	t.restoring = false\n	if all := s.attempt.members.all; len(all) > 1 {\n" +
			"		all[0].seat, all[1].seat = all[1].seat, all[0].seat\n	}\n"}},
	{"a new leader takes a living agent for lost", "restore.go", []string{
		"	s.missAbsent(now)\n",
		"	if all := s.attempt.members.all; len(all) > 0 && !all[0].lost {\n" +
			"		s.attempt.losses.loseRunning(t, all[0], &s.attempt.end, nil)\n	}\n	s.missAbsent(now)\n"}},
	{"a new leader does not know the attempt", "state.go", []string{
		"v.Attempt > s.attempt.number {", "v.Attempt > s.attempt.number && !t.restoring {"}},
	{"the previous attempt is forgotten before there is a world", "state.go", []string{
		"a.phase.later && a.phase.world != nil", "a.phase.later && a.phase.complete"}},
	{"SIGTERM between two attempts is lost", "withdraw.go", []string{
		"	case e.verdict != nil:\n", "	case e.verdict != nil, !l.phase.complete:\n"}},
	{"the next world does not wait for the workers of a silent agent", "overlap.go", []string{
		"wait += c.LostGrace\n", "wait += 0\n"}},
	{"the end of a connection proves the end of all processes", "overlap.go", []string{
		"case l.Ended:", "case l.After == 0 && !c.Elected:"}},
	{"a connection that was reset has been silent before", "overlap.go", []string{
		"wait += max(c.PeerTimeout, c.LeaseTTL) + c.LostGrace",
		"wait += c.LostGrace\n		if c.Elected {\n			wait += c.LeaseTTL\n		}"}},
	{"a lease is never revoked early", "overlap.go", []string{"max(c.PeerTimeout, c.LeaseTTL)", "c.PeerTimeout"}},
	{"the next world does not wait for the processes of an agent that leaves", "attempt.go", []string{
		"		a.agents.depart(&m.Member)\n", ""}},
	{"an agent that is lost while it leaves has ended all processes", "state.go", []string{
		"		s.overlap.await(since, loss, s.agents.departing[id].Host, &s.config)\n", ""}},
	{"an interrupted watch forgets a loss", "restore.go", []string{"if !before.agents.gone[id] {", "if !before.agents.gone[id] && false {"}},
	{"a restored leader gives no time to register again", "restore.go", []string{
		"s.config.returnTime())", "0)"}},
	{"a late request settles an attempt that is forgotten", "next.go", []string{
		"[]Cond{absent(a.keys.Settled()), unchanged}", "[]Cond{absent(a.keys.Settled()), {Key: unchanged.Key, " +
			"Exists: unchanged.Exists}}"}},
	{"a holder looks at lease and agent only while workers run", "simtree_test.go", []string{
		"func (a *agent) holderLooks() bool { return a.busy() }",
		"func (a *agent) holderLooks() bool { return a.working() }"}},
	{"a new run does not wait for the processes of the one before", "simtree_test.go", []string{
		"a.later(a.outlives()+a.between", "a.later(a.between"}},
	{"an agent that is lost while its world is published stays", "absorb.go", []string{
		"if m.lost {\n			a.losses.loseRunning(t, m, &a.end, a.leave.unsettled(m.ID, a.keys))",
		"if m.lost {\n			m.settled = false"}},
	{"an agent that leaves takes its seat with it", "attempt.go", []string{
		"	m.lost, m.withdrawn = true, true\n", "	m.withdrawn = true\n"}},
	{"a new leader does not know who was lost before", "restore.go", []string{
		"	s.missAbsent(now)\n", "	if s.attempt.phase.world != nil {\n		s.missAbsent(now)\n	}\n"}},
	{"the world is agreed with an agent that may be lost", "gather.go", []string{
		" && !g.agents.await(g.members.all)", ""}},
	{"the world waits for as many agents as there are tasks", "gather.go", []string{
		"		return m.here >= g.config.Tasks\n", "		return m.here >= g.config.Tasks && len(m.all) >= g.config.Tasks\n"}},
	{"an agent that is lost is missed as one task", "members.go", []string{
		"m.count(one, -1)", "m.here--\n		m.joined--"}},
	{"an agent takes over the seat of one with more workers", "vacancy.go", []string{
		"if one.Workers() != lost.seat.Workers() {", "if len(one.Tasks) != len(lost.Tasks) {"}},
}

// The faults can be made: what they change is there.
func TestFaultsExist(t *testing.T) {
	for _, f := range faults {
		if _, err := f.source(); err != nil {
			t.Error(err)
		}
	}
}

// source is the file with the fault.
func (f fault) source() (string, error) {
	b, err := os.ReadFile(f.file)
	if err != nil {
		return "", err
	}
	text := string(b)
	for i := 0; i < len(f.edit); i += 2 {
		if n := strings.Count(text, f.edit[i]); n != 1 {
			return "", fmt.Errorf("%s: %q is %d times in %s", f.name, f.edit[i], n, f.file)
		}
		text = strings.Replace(text, f.edit[i], f.edit[i+1], 1)
	}
	return text, nil
}

var simFaults = flag.Bool("faults", false, "find the seeded faults, which takes minutes")

// Each fault can be put into the present code, and with -faults is found within so many schedules:
// this runs the simulation of a package that has it.
func TestSimulationFindsFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			text, err := f.source()
			if err != nil {
				t.Fatal(err)
			}
			if *simFaults {
				f.find(t, text)
			}
		})
	}
}

func (f fault) find(t *testing.T, text string) {
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, f.file), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(f.file)
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{changed: text, overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-count=1", "-run", "^TestSimulation$",
		".", "-args", "-schedules", "100000").CombinedOutput()
	found := regexp.MustCompile(`seed \d+: .*`).FindString(string(out))
	if err == nil || found == "" {
		t.Fatalf("not found: %v\n%s", err, out)
	}
	t.Log(found)
}
