package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdzv/envmap"
	"rdzv/rdzv/secret"
)

// platformEnvs are the environments of the last node of each platform, from package envmap.
func platformEnvs(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../../envmap/testdata/platform-*-rank1.env")
	if err != nil || len(files) < 10 {
		t.Fatalf("environments of platforms: %d, %v", len(files), err)
	}
	envs := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var env []string
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
				env = append(env, line)
			}
		}
		envs[filepath.Base(file)] = env
	}
	return envs
}

// On every platform an agent of several does not create a token, and says how that platform gives
// all of them the same.
func TestTokenOfPlatforms(t *testing.T) {
	advised := map[string]bool{}
	for name, env := range platformEnvs(t) {
		home := t.TempDir()
		c := Config{
			Program: []string{"true"}, Environ: append(env, "HOME="+home), Nodes: 3,
			Root: os.DirFS(t.TempDir()),
		}
		l, err := Plan(c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = l.loadToken(l.tokenSource(&reporter{events: func(Event) {}}))
		if advice := tokenAdvice()[l.platform()]; advice == "" || Hint(err) != advice {
			t.Errorf("%s: %s: error %v, hint %q, want %q", name, l.platform(), err, Hint(err), advice)
		}
		advised[l.platform()] = true
		if left, _ := os.ReadDir(home); len(left) > 0 {
			t.Errorf("%s: files were created: %v", name, left)
		}
		l.Config.Token = secret.NewToken()
		if _, err := l.loadToken(l.tokenSource(&reporter{events: func(Event) {}})); err != nil {
			t.Errorf("%s: with RDZV_TOKEN: %v", name, err)
		}
		l.Config.Token = ""
		if _, err := secret.LoadToken(secret.TokenSource{Home: home, UID: os.Geteuid()}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.loadToken(l.tokenSource(&reporter{events: func(Event) {}})); err != nil {
			t.Errorf("%s: with a token file: %v", name, err)
		}
	}
	for platform := range tokenAdvice() {
		if !advised[platform] {
			t.Errorf("there is advice for %q, which is no platform", platform)
		}
	}
}

// A job of one node creates its token as elsewhere, and so does one outside a platform.
func TestTokenIsCreatedElsewhere(t *testing.T) {
	for name, l := range map[string]*Local{
		"one node":    {Placement: envmap.Placement{Platform: "JobSet", Launcher: envmap.JobSet, Nodes: 1, Size: 1}},
		"no platform": {Placement: envmap.Placement{Launcher: envmap.None, Nodes: -1, Size: -1}},
	} {
		l.env = envmap.Env{"HOME": t.TempDir()}
		if _, err := l.loadToken(l.tokenSource(&reporter{events: func(Event) {}})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
