package hosts

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded reads the environment of a rank that a real launcher has started; see dev/launchers.md.
func recorded(t testing.TB, name string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", name+".env"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	env := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		env[name] = value
	}
	return env
}

func TestParseDaemonURI(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"1981022208.0;tcp://172.17.0.1,10.77.0.11,10.78.0.11:44245",
			"[172.17.0.1:44245 10.77.0.11:44245 10.78.0.11:44245]"},
		{"prterun-node1-26213@0.0;tcp://172.17.0.1,10.77.0.11:49133:16,24",
			"[172.17.0.1:49133 10.77.0.11:49133]"},
		{"prterun-my.host-1@0.12;tcp4://127.0.0.1:39457", "[127.0.0.1:39457]"},
		{`"prterun-node1-8022@0.0;tcp://10.77.0.11:33037:24"`, "[10.77.0.11:33037]"},
		{"7.0;tcp6://[fd00::1,fe80::2]:44245;tcp://10.0.0.1:44246",
			"[[fd00::1]:44245 [fe80::2]:44245 10.0.0.1:44246]"},
		{recorded(t, "openmpi5-headrank-rank0")["PMIX_SERVER_URI4"], "[172.17.0.1:34881]"},
		{recorded(t, "openmpi4-launchernode-rank2")["OMPI_MCA_orte_local_daemon_uri"],
			"[172.17.0.1:34417 10.77.0.13:34417 10.78.0.13:34417]"},
	} {
		list, err := ParseDaemonURI(row.text)
		if got := fmt.Sprint(list); err != nil || got != row.want {
			t.Errorf("%q: got %s, %v, want %s", row.text, got, err, row.want)
		}
	}
	for _, bad := range []string{
		"", ";", "1.0", "1.0;", "1;tcp://10.0.0.1:1", ".0;tcp://10.0.0.1:1",
		"1.x;tcp://10.0.0.1:1", "1.0;usock://x", "1.0;tcp://10.0.0.1", "1.0;tcp://10.0.0.1:0",
		"1.0;tcp://10.0.0.1:70000", "1.0;tcp://0.0.0.0:5", "1.0;tcp6://[::1:5",
	} {
		if list, err := ParseDaemonURI(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, list)
		}
	}
}

func FuzzDaemonURI(f *testing.F) {
	f.Add("1981022208.0;tcp://172.17.0.1,10.77.0.11:44245:16,24;tcp6://[::1]:5")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseDaemonURI(text)
		if err == nil && (len(list) == 0 || list[0].Port() == 0) {
			t.Errorf("%q: %v", text, list)
		}
	})
}
