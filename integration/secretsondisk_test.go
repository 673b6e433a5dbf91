package integration

import (
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// No secret is in any file except the token's, neither while a script runs jobs nor after its end:
// not the token, not the secret that mpirun makes, not the key that the ranks of a Hydra keep for
// the next job.
func TestNoSecretOnDisk(t *testing.T) {
	script := `rdzv=$1 self=$2 one=$3 two=$4 end=$5; shift 5
		"$rdzv" exec "$@" -- "$self" worker record "$one" &&
			"$rdzv" exec "$@" -- "$self" worker until "$two" "$end"`
	for _, c := range []struct {
		name  string
		place func(t *testing.T) *place
		lines func(p *place, line []string) [][]string
	}{
		{"direct", newPlace, func(_ *place, line []string) [][]string {
			line = append(line, "--nodes", "2", "--store", freeAddress(t), "--node-rank")
			return [][]string{append(slices.Clip(line), "0"), append(slices.Clip(line), "1")}
		}},
		{"openmpi", newPlace, func(_ *place, line []string) [][]string {
			return [][]string{append(mpirunCommand(2), line...)}
		}},
		{"hydra", newPlace, func(_ *place, line []string) [][]string {
			return [][]string{append([]string{"mpiexec.hydra", "-n", "2"}, line...)}
		}},
		{"srun", newSlurm, func(p *place, line []string) [][]string {
			srun := strings.Fields("on 1 srun --quiet --overcommit -n 2")
			return [][]string{p.ownCluster().slurm(append(srun, line...)...)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.place(t)
			one, two, end := p.dir("one"), p.dir("two"), filepath.Join(p.root, "end")
			script := []string{"sh", "-c", script, "sh", *rdzvBin, self, one, two, end}
			var commands []*process
			for _, line := range c.lines(p, append(script, joinSoon...)) {
				// A job of one agent has no key.
				commands = append(commands, p.startWith([]string{"RDZV_LAUNCHER=" + choice(c.name)}, line...))
			}
			records(t, one, 2)
			secrets := p.secrets(c.name, records(t, two, 2))
			p.checkDisk("while the second job runs", secrets)
			if err := os.WriteFile(end, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			checkCodes(0, commands...)
			p.checkDisk("after the end", secrets)
			if !eventually(waitLimit, func() bool { return len(p.keepers()) == 0 }) {
				t.Errorf("after the end the key is still available at %q", p.keepers())
			}
		})
	}
}

// secrets returns the job's secret, which is the user's or the launcher's, as text and as bytes.
func (p *place) secrets(launcher string, all []record) (secrets []string) {
	p.t.Helper()
	if token, err := os.ReadFile(filepath.Join(p.root, "home/.config/rdzv/token")); err == nil {
		secrets = append(secrets, strings.TrimSpace(string(token)))
	}
	key := all[0].Env["OMPI_MCA_orte_precondition_transports"] // Open MPI 5 sets none
	if launcher == "openmpi" && key != "" {
		secrets = append(secrets, key)
	}
	if launcher == "hydra" {
		for _, address := range p.keepers() {
			secrets = append(secrets, p.keptKey(address))
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
		p.t.Fatalf("the secrets of the job are %q, want at least one as text and as bytes", secrets)
	}
	return secrets
}

// checkDisk searches the files in the directories that rdzv may use, without those of Open MPI.
func (p *place) checkDisk(when string, secrets []string) {
	p.t.Helper()
	for _, name := range []string{"home", "tmp"} {
		for _, path := range filesWith(p.t, filepath.Join(p.root, name), secrets) {
			relative := strings.TrimPrefix(path, p.root+"/")
			ofOpenMPI := slices.ContainsFunc(strings.Split(relative, "/"), isOpenMPIDirectory)
			if relative != "home/.config/rdzv/token" && !ofOpenMPI {
				p.t.Errorf("%s a secret is in the file %s", when, relative)
			}
		}
	}
}

// keepers returns the addresses of the processes that keep the keys of this place's Hydras.
func (p *place) keepers() []string {
	files, err := filepath.Glob(filepath.Join(p.root, "tmp/rdzv-*/rdzv-keeper-*"))
	if err != nil {
		p.t.Fatal(err)
	}
	return files
}

// keptKey asks such a process for its key.
func (p *place) keptKey(address string) string {
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
