package repo

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// protections are what docs/security.md promises, and the tests that attack it.
var protections = []struct{ what, tests string }{
	{"who joins a job, stops it or reads its messages",
		"TestAttacksOnTheStore TestGateRejectsAttackers FuzzGreeting"},
	{"that a job starts in spite of garbage and half-open connections, which delay it",
		"TestAttackGarbage TestAttackHalfOpenHandshakes TestAgentPassesHalfOpenHandshakes"},
	{"the start of a job without a launcher, against replayed beacons",
		"TestAttackReplayedBeacons TestAttackBeaconsOfRunningJob TestReplayedBeacon FuzzBeacon"},
	{"a job, against other jobs and recorded handshakes",
		"TestAttackOtherJobAndReplay"},
	{"the store, against misuse of HTTP/2",
		"TestAttackMember"},
	{"the token: nobody else reads or chooses it",
		"TestTokenFileIsRefused TestTokenFileOfAnotherUser TestTokenFileRace"},
	{"secrets: in no message, argument, worker's variable or file",
		"TestSecretsAreNotVisible TestNoSecretOnDisk TestSecretsAreNotPrinted"},
	{"exported values: in no message, report or file",
		"TestExportIsNotVisible"},
	{"which file `--report` or `--events` writes",
		"TestReportThroughLinkOfOtherUser TestLinkOfOtherUser"},
	{"what an agent answers to `rdzv status` of its user",
		"TestOtherUser TestOverflowUser"},
	{"that jobs start, if another user occupies socket addresses",
		"TestAttackLocalUser TestAllPortsAreClaimed"},
	{"one MASTER_PORT for one job",
		"TestAllPortsAreClaimed TestManyMasterPorts"},
	{"that a job ends, even if one of its processes is stopped",
		"TestAttackFrozenProcess"},
	{"that an agent ends, even if a file does not respond",
		"TestSignalsOnHungFileSystem TestReportOnHungFileSystem TestReportToFIFO"},
	{"a job, against scans of MASTER_PORT",
		"TestAttackPortScan"},
	{"that jobs work with wrong or changing clocks",
		"TestAttackClocks TestCertificatesNeedNoClock"},
}

var protection = regexp.MustCompile(`(?m)^\| (.+) \| (?:yes|-) \| (?:yes|-) \| (?:yes|no|-) \|$`)

// What the page promises is tested: each line of its table, by tests that exist.
func TestTestsOfSecurityPage(t *testing.T) {
	var promised, tested []string
	for _, m := range protection.FindAllStringSubmatch(readPage(t, "docs/security.md"), -1) {
		promised = append(promised, m[1])
	}
	out, err := exec.CommandContext(t.Context(), "grep", "-rh", "--include=*_test.go", "^func ",
		".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range protections {
		tested = append(tested, p.what)
		for _, name := range strings.Fields(p.tests) {
			if !strings.Contains(string(out), "func "+name+"(") {
				t.Errorf("%s: the test %s does not exist", p.what, name)
			}
		}
	}
	if !slices.Equal(promised, tested) {
		t.Errorf("the page promises\n%s\ntests are named for\n%s", strings.Join(promised, "\n"),
			strings.Join(tested, "\n"))
	}
}
