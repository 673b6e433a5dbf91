package integration

import (
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// While a job runs under a script, and when it is over, no secret of it is in any file but the token's: not the token, not
// what mpirun made, not the key that the ranks of a Hydra have for the next job.
func TestNoSecretOnDisk(t *testing.T) {
	script := `rdzv=$1 self=$2 one=$3 two=$4 end=$5; shift 5
		"$rdzv" exec "$@" -- "$self" worker record "$one" && "$rdzv" exec "$@" -- "$self" worker until "$two" "$end"`
	for _, c := range []struct {
		name  string
		place func(t *testing.T) *place
		lines func(p *place, line []string) [][]string
	}{
		{"byhand", newPlace, func(_ *place, line []string) [][]string {
			line = append(line, "--nodes", "2", "--store", freeAddress(t))
			return [][]string{line, line}
		}},
		{"openmpi", newPlace, func(_ *place, line []string) [][]string {
			return [][]string{append(mpirunCommand(2), line...)}
		}},
		{"hydra", newPlace, func(_ *place, line []string) [][]string {
			return [][]string{append([]string{"mpiexec.hydra", "-n", "2"}, line...)}
		}},
		{"srun", newSlurm, func(p *place, line []string) [][]string {
			return [][]string{p.cluster().slurm(append([]string{"on", "1", "srun", "--quiet", "--overcommit", "-n", "2"}, line...)...)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.place(t)
			one, two, end := p.dir("one"), p.dir("two"), filepath.Join(p.root, "end")
			var commands []*process
			for _, line := range c.lines(p, append([]string{"sh", "-c", script, "sh", *rdzvBin, self, one, two, end}, joinSoon...)) {
				commands = append(commands, p.start(line...))
			}
			records(t, one, 2)
			secrets := p.secrets(c.name, records(t, two, 2))
			p.checkDisk("while the second job runs", secrets)
			if err := os.WriteFile(end, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, command := range commands {
				if code := command.code(); code != 0 {
					t.Errorf("%q ended with %d", command.argv, code)
				}
			}
			p.checkDisk("when the job is over", secrets)
			if left := keepers(); len(left) > 0 {
				eventually(waitLimit, func() bool { left = keepers(); return len(left) == 0 })
				if len(left) > 0 {
					t.Errorf("the job is over, and its key is still kept at %q", left)
				}
			}
		})
	}
}

// secrets are the launcher's secret of the job or the user's, as text and as bytes. There must be one.
func (p *place) secrets(launcher string, all []record) (secrets []string) {
	p.t.Helper()
	if token, err := os.ReadFile(filepath.Join(p.root, "home/.config/rdzv/token")); err == nil {
		secrets = append(secrets, strings.TrimSpace(string(token)))
	}
	if launcher == "openmpi" {
		secrets = append(secrets, all[0].Env["OMPI_MCA_orte_precondition_transports"])
	}
	if launcher == "hydra" {
		for _, address := range keepers() {
			secrets = append(secrets, p.kept(address))
		}
	}
	for _, text := range slices.Clone(secrets) {
		if raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", "")); err == nil {
			secrets = append(secrets, string(raw))
		} else if raw, err := base64.RawURLEncoding.DecodeString(text); err == nil {
			secrets = append(secrets, string(raw), hex.EncodeToString(raw))
		}
	}
	if len(secrets) < 2 || slices.Contains(secrets, "") {
		p.t.Fatalf("%d secrets of this job are known", len(secrets))
	}
	return secrets
}

// checkDisk looks at the files in the directories that rdzv may use. What Open MPI writes there is not rdzv's.
func (p *place) checkDisk(when string, secrets []string) {
	p.t.Helper()
	for _, name := range []string{"home", "tmp"} {
		for _, path := range filesWith(p.t, filepath.Join(p.root, name), secrets) {
			relative := strings.TrimPrefix(path, p.root+"/")
			if relative != "home/.config/rdzv/token" && !slices.ContainsFunc(strings.Split(relative, "/"), isOpenMPIDirectory) {
				p.t.Errorf("%s a secret is in the file %s", when, relative)
			}
		}
	}
}

var keptAt = regexp.MustCompile(`@rdzv/pmi/\S+`)

// keepers are the addresses at which the keys of this machine's Hydras are kept in memory.
func keepers() []string {
	text, _ := os.ReadFile("/proc/net/unix")
	return slices.Compact(keptAt.FindAllString(string(text), -1))
}

// kept is the key that is kept at an address.
func (p *place) kept(address string) string {
	p.t.Helper()
	conn, err := net.Dial("unix", address)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		p.t.Fatal(err)
	}
	key, _, _ := strings.Cut(string(text), ";")
	return key
}
